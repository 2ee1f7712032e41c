"""Sweeps: configurations that share a program train as each would alone, bit for bit."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from tests.runs.small import small
from windvane.training.build import build
from windvane.training.config import TrainConfig
from windvane.training.fused_session import FusedSession
from windvane.training.sweep import can_sweep, numbers_of, open_sweep, program_of

BASE = small()
OTHER = replace(
    BASE, learning_rate=0.02, momentum=0.5, clip_norm=0.3, epsilon_end=0.05, epsilon_steps=300,
    reward_scale=0.02, priority_exponent=1.0,
)  # fmt: skip


def advance(session: Any, start: int, stop: int, learning: bool = True) -> None:
    session.advance(start, stop, learning, lambda: False)


def networks(session: Any, run: int) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(session.policy_network(run))]


def test_each_configuration_trains_as_it_would_alone() -> None:
    sweep = open_sweep(build(BASE), [BASE, OTHER])
    assert isinstance(sweep, FusedSession)
    sweep.begin(None, 0)
    advance(sweep, 0, 80, learning=False)
    advance(sweep, 80, 160)
    # Seeds 3 and 5 of the first configuration, then of the second; one is padding.
    sweep.keep([2, 3, 3, 1])
    advance(sweep, 160, 240)
    for config, runs in ((OTHER, {0: 0, 1: 1, 2: 1}), (BASE, {3: 1})):
        alone = build(config).session()
        alone.begin(None, 0)
        advance(alone, 0, 80, learning=False)
        advance(alone, 80, 160)
        advance(alone, 160, 240)
        for lane, run in runs.items():
            for one, other in zip(networks(sweep, lane), networks(alone, run), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({"learning_rate": 0.1, "epsilon_steps": 7}, True),
        ({"priority_offset": 0.5}, True),
        ({"width": 9}, False),
        ({"batch_size": 9}, False),
        ({"average_decay": 0.9}, False),  # without an average there is none in the program
        ({"gamma": 0.9}, False),  # DER judges trajectories by it
    ],
)
def test_what_shares_a_program(changes: dict[str, Any], shared: bool) -> None:
    assert (program_of(replace(BASE, **changes)) == program_of(BASE)) is shared


def test_gamma_is_a_number_for_other_replay_rules() -> None:
    standard = replace(BASE, replay="standard")
    assert program_of(replace(standard, gamma=0.9)) == program_of(standard)
    assert "gamma" in numbers_of(standard)
    assert "gamma" not in numbers_of(BASE)


def test_what_cannot_be_swept() -> None:
    assert can_sweep(build(BASE))
    assert not can_sweep(build(TrainConfig.preset("fast-dst", num_envs=32, steps=2**15)))
    assert not can_sweep(build(TrainConfig.preset("gpi-ls-dst", observation="features")))
