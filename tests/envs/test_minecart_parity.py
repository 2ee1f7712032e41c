"""Minecart against MO-Gymnasium's, step by step, and ore draws against the rectified normal.

The peer plays first and is recorded; ours is then run over the recording. In 32-bit mode ours
starts every step from the peer's state, in 64-bit mode only every episode.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from windvane.envs.minecart import BRAKE, LEFT, MINE, RIGHT, Minecart, MinecartState, Pose
from windvane.envs.minecart_config import MINE_RADIUS, PAPER, MinecartConfig

STEPS = 20_000
KEY = jax.random.key(0)
INSTANCES = ["paper", "random 1", "random 2", "random 3"]


def instance(name: str) -> MinecartConfig:
    """The paper's instance, or one drawn from a key."""
    if name == "paper":
        return PAPER
    return MinecartConfig.random(jax.random.key(int(name.split()[1])))


def unfused_length(vector: np.ndarray) -> float:
    """Length of a vector without fused multiply-add.

    The peer's `np.dot` rounds as its BLAS was built; bit-exact comparison needs one meaning.
    """
    return math.sqrt(vector[0] * vector[0] + vector[1] * vector[1])


def record(config: str | None) -> dict[str, np.ndarray]:
    """Play the peer for `STEPS` steps with actions that drive, stop in mines and mine."""
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    from mo_gymnasium.envs.minecart import minecart as peer_module

    original, peer_module.mag = peer_module.mag, unfused_length
    try:
        if config is None:
            peer = mo_gymnasium.make("minecart-deterministic-v0").unwrapped
        else:
            peer = mo_gymnasium.make("minecart-v0", config=config).unwrapped
        return _play(peer, np.random.default_rng(11))
    finally:
        peer_module.mag = original


def _play(peer: Any, generator: np.random.Generator) -> dict[str, np.ndarray]:
    rows: dict[str, list[Any]] = {
        name: [] for name in ("before", "action", "after", "reward", "ended", "features")
    }
    peer.reset()
    hold, action = 0, 3
    for _ in range(STEPS):
        cart = peer.cart
        in_mine = any(unfused_length(cart.pos - m.pos) <= MINE_RADIUS for m in peer.mines)
        if hold == 0 or (in_mine and generator.random() < 0.3):
            action = int(generator.choice(6, p=[0.05, 0.2, 0.2, 0.4, 0.05, 0.1]))
            if in_mine and generator.random() < 0.5:
                action = BRAKE if cart.speed > 0 else MINE
            hold = int(generator.integers(1, 5))
        hold -= 1
        rows["before"].append(_snapshot(cart))
        features, reward, ended, _, _ = peer.step(action)
        rows["after"].append(_snapshot(cart))
        for name, value in (("action", action), ("reward", reward), ("ended", ended)):
            rows[name].append(value)
        rows["features"].append(features)
        if ended:
            peer.reset()
            hold = 0
    return {name: np.asarray(values) for name, values in rows.items()}


def _snapshot(cart: Any) -> list[float]:
    return [*cart.pos, cart.angle, cart.speed, cart.departed, *cart.content]


def to_state(row: jax.Array) -> MinecartState:
    """A state of ours from a row of the recording."""
    pose, content = Pose(row[0], row[1], row[2], row[3]), row[5:]
    return MinecartState(pose, content, row[4] > 0, pose, content)


def to_row(state: MinecartState) -> jax.Array:
    """The row of a recording that a state of ours would give."""
    pose = state.pose
    departed = state.departed.astype(pose.x.dtype)
    return jnp.concatenate(
        [jnp.stack([pose.x, pose.y, pose.angle, pose.speed, departed]), state.content]
    )


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file with the peer's steps and our instance for every name."""
    folder, files = tmp_path_factory.mktemp("parity"), {}
    for name in INSTANCES:
        instance(name).deterministic().to_json(folder / f"{name}.json")
        config = None if name == "paper" else str(folder / f"{name}.json")
        np.savez(folder / f"{name}.npz", **record(config))
        files[name] = folder / f"{name}.npz"
    return files


@pytest.mark.parametrize("name", INSTANCES)
def test_the_recording_shows_what_matters(recordings: dict[str, Path], name: str):
    peer = np.load(recordings[name])
    turned = peer["before"][:, 2] != peer["after"][:, 2]
    slides = turned & ~np.isin(peer["action"], (LEFT, RIGHT))
    mined = peer["after"][:, 5:].sum(1) > peer["before"][:, 5:].sum(1)
    full = np.isclose(peer["after"][:, 5:].sum(1), 1.5) & mined
    sold = peer["reward"][:, :-1].sum(1) > 0
    counts = {"slides": slides, "mined": mined, "full": full, "ends": peer["ended"], "sold": sold}
    seen = {what: int(steps.sum()) for what, steps in counts.items()}
    assert min(seen.values()) >= 10, seen
    assert slides.sum() >= 500


@pytest.mark.parametrize("name", INSTANCES)
def test_32_bit_steps_agree_within_rounding(recordings: dict[str, Path], name: str):
    peer = np.load(recordings[name])
    env = Minecart(instance(name), deterministic=True)

    @jax.jit
    @jax.vmap
    def step(row: jax.Array, action: jax.Array):
        state, reward, ended = env.step(to_state(row), action, KEY)
        ended = ended.astype(jnp.float32)[None]
        return jnp.concatenate([to_row(state), env.features(state), reward, ended])

    def agrees(before: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        ours = step(
            jnp.asarray(before, jnp.float32), jnp.asarray(peer["action"][chosen], jnp.int32)
        )
        return np.isclose(ours, theirs[chosen], rtol=2e-6, atol=2e-6).all(1)

    theirs = np.concatenate(
        [peer["after"], peer["features"], peer["reward"], peer["ended"][:, None]], axis=1
    )
    apart = np.flatnonzero(~agrees(peer["before"], np.arange(STEPS)))
    assert len(apart) <= STEPS // 1000
    # What is left stands on an edge, mostly of touching a wall or not: some start that 32 bits
    # cannot tell from the peer's has to lead to the peer's result.
    explained = np.zeros(len(apart), bool)
    for nudge in np.ndindex(3, 3, 3):
        start = peer["before"][apart].copy()
        start[:, [0, 1, 3]] += (np.asarray(nudge) - 1) * 3e-7
        start[:, :2] = start[:, :2].clip(0, 1)
        explained |= agrees(start, apart)
    assert explained.all()


def test_64_bit_episodes_agree_to_the_last_bit(recordings: dict[str, Path]):
    # Every operation as written and rounded once: no fused multiply-add, no division turned into
    # a multiplication. With them a cart can pass a wall by 1e-16 that the peer's touches.
    flags = "--xla_cpu_max_isa=AVX --xla_disable_hlo_passes=algsimp"
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    files = [str(recordings[name]) for name in INSTANCES]
    done = subprocess.run(
        [sys.executable, __file__, *files], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[0, 0.0]] * len(files)


def compare_64_bit(file: str) -> list[float]:
    """Number of steps whose `ended` differs, and the largest difference of anything else."""
    peer = np.load(file)
    env = Minecart(MinecartConfig.from_json(Path(file).with_suffix(".json")), deterministic=True)
    start = to_row(env.reset(KEY))

    def one(row: jax.Array, step: tuple[jax.Array, jax.Array]):
        action, ended = step
        state, reward, arrived = env.step(to_state(row), action, KEY)
        row = to_row(state)
        return jnp.where(ended, start, row), (row, reward, arrived)

    steps = jnp.asarray(peer["action"]), jnp.asarray(peer["ended"])
    _, (rows, reward, arrived) = jax.jit(lambda: jax.lax.scan(one, start, steps))()
    assert rows.dtype == jnp.float64
    worst = np.abs(np.asarray(rows) - peer["after"]).max()
    # The peer's rewards are 32-bit sums of 32-bit numbers.
    assert np.allclose(reward, peer["reward"], rtol=1e-6, atol=1e-7)
    return [int((np.asarray(arrived) != peer["ended"]).sum()), float(worst)]


@pytest.mark.parametrize("name", INSTANCES)
def test_ore_draws_follow_the_rectified_normal(name: str):
    config = instance(name)
    env = Minecart(config)
    samples = 20_000
    keys = jax.random.split(jax.random.key(5), samples)
    zero = jnp.zeros(())
    for index, mine in enumerate(config.mines):
        pose = Pose(*env.mine_positions[index], zero, zero)
        draws = np.asarray(jax.vmap(lambda key, pose=pose: env.hauls(pose, key))(keys))
        draws = draws.reshape(-1, config.num_ores).astype(np.float64)
        for ore, (mean, deviation) in enumerate(mine.distributions):
            expected, variance = rectified_moments(mean, deviation)
            seen, count = draws[:, ore], len(draws)
            spread = np.mean((seen - seen.mean()) ** 4) - seen.var() ** 2
            assert abs(seen.mean() - expected) <= 4 * np.sqrt(variance / count)
            assert abs(seen.var() - variance) <= 4 * np.sqrt(spread / count)


def rectified_moments(mean: float, deviation: float) -> tuple[float, float]:
    """Mean and variance of max(0, X) for normal X."""
    z = mean / deviation
    first = mean * norm.cdf(z) + deviation * norm.pdf(z)
    second = (mean**2 + deviation**2) * norm.cdf(z) + mean * deviation * norm.pdf(z)
    return float(first), float(second - first**2)


if __name__ == "__main__":
    print(json.dumps([compare_64_bit(file) for file in sys.argv[1:]]))
