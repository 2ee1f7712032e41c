"""Trees of arrays as words and back."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane.packing import Packing

DTYPES = ["bool", "int8", "uint8", "int16", "float16", "int32", "uint32", "float32"]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3)),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 1000),
)
def test_there_and_back(kinds, seed: int) -> None:
    generator = np.random.default_rng(seed)
    tree = [generator.integers(0, 100, shape).astype(dtype) for dtype, shape in kinds]
    packing = Packing.of(tree)
    words = packing.pack(tree)
    assert words.shape == (packing.size,)
    for before, after in zip(tree, packing.unpack(words), strict=True):
        assert after.dtype == before.dtype
        assert np.array_equal(before, after)
    host = np.asarray(words)
    for index, before in enumerate(tree):
        assert np.array_equal(packing.reader(index)(host), before)
    for before, view in zip(tree, packing.views(np.stack([host, host])), strict=True):
        assert np.array_equal(view[1], before)


def test_words_are_not_wasted() -> None:
    tree = {"a": jnp.zeros((48, 48, 3), jnp.uint8), "b": jnp.zeros(()), "c": jnp.zeros((), bool)}
    assert Packing.of(tree).size == 48 * 48 * 3 // 4 + 2
    assert Packing.of(tree) == Packing.of(jax.eval_shape(lambda: tree))
