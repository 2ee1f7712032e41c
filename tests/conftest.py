"""What holds for every test: types and shapes are checked at run time, and runs are repeatable."""

import hypothesis
import jaxtyping

# Before anything imports windvane: the hook only reaches modules imported after it. The tower lets
# a whole number stand where a float is asked for, as every static checker does.
CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
jaxtyping.install_import_hook(["windvane"], CHECKER)

import jax  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")

hypothesis.settings.register_profile("windvane", derandomize=True, deadline=None)
hypothesis.settings.load_profile("windvane")
