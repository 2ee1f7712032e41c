"""The Gymnasium ids. They name their makers by strings, so that registering imports no JAX."""

import gymnasium

TIME_LIMITS = {"Minecart": 1000, "DeepSeaTreasure": 100}
"""Steps after which `gymnasium.make` truncates an episode."""

_MAKERS = {"Minecart": "make_minecart", "DeepSeaTreasure": "make_deep_sea_treasure"}


def register() -> None:
    """Make the ids known to Gymnasium; calling it again changes nothing."""
    for name, maker in _MAKERS.items():
        if f"windvane/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"windvane/{name}-v0",
                entry_point=f"windvane.envs.gymnasium:{maker}",
                vector_entry_point=f"windvane.envs.gymnasium_vector:{maker}",
                max_episode_steps=TIME_LIMITS[name],
                # The checker expects a number where MO-Gymnasium's convention has a vector.
                disable_env_checker=True,
            )
