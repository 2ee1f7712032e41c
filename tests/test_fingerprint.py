"""Fingerprints: equal parameters are equal, any other is not, in every process."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane.agents.conditioned import ConditionedNetwork
from windvane.agents.multi_network import MultiNetwork
from windvane.agents.multi_objective import MultiObjectiveDQN
from windvane.envs.deep_sea_treasure import MAPS, DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.envs.minecart_config import PAPER
from windvane.fingerprint import fingerprint, type_name
from windvane.replay.diverse import DiverseReplay
from windvane.replay.signature import ReturnSignature
from windvane.replay.standard import StandardReplay
from windvane.schedules import FixedWeights, RegularChanges, SparseChanges, WeightSequence

MAP = np.asarray(MAPS["dcrac"])


def changed_map() -> np.ndarray:
    sea_map = MAP.copy()
    rows, columns = np.nonzero(sea_map > 0)
    sea_map[rows[-1], columns[-1]] += 1
    return sea_map


def one_ulp(value: float) -> np.ndarray:
    return np.nextafter(np.float32(value), np.float32(2))


DIFFERENT = {
    "cn": lambda: ConditionedNetwork(),
    "cn on active weights": lambda: ConditionedNetwork(train_on="active"),
    "mo": lambda: MultiObjectiveDQN(),
    "mn": lambda: MultiNetwork(),
    "mn with another kappa": lambda: MultiNetwork(kappa=0.02),
    "mn with more policies": lambda: MultiNetwork(max_policies=25),
    "mn with partial reuse": lambda: MultiNetwork(reuse="partial"),
    "standard replay": lambda: StandardReplay(100),
    "larger replay": lambda: StandardReplay(101),
    "other priorities": lambda: StandardReplay(100, priority_offset=0.02),
    "diverse replay": lambda: DiverseReplay(100, ReturnSignature(2, 0.9)),
    "another signature": lambda: DiverseReplay(100, ReturnSignature(2, 0.95)),
    "sparse": lambda: SparseChanges(2, 10),
    "sparser": lambda: SparseChanges(2, 11),
    "sparse in three": lambda: SparseChanges(3, 10),
    "regular": lambda: RegularChanges(2, 10),
    "fixed": lambda: FixedWeights([0.25, 0.75]),
    "fixed elsewhere": lambda: FixedWeights([0.75, 0.25]),
    "sequence": lambda: WeightSequence([[1.0, 0.0]]),
    "repeated sequence": lambda: WeightSequence([[1.0, 0.0]], repeat=True),
    "sea": lambda: DeepSeaTreasure(),
    "short sea": lambda: DeepSeaTreasure(time_limit=99),
    "another sea": lambda: DeepSeaTreasure(changed_map()),
    "sea in pixels": lambda: DeepSeaTreasure(observation="pixels"),
    "minecart": lambda: Minecart(),
    "another minecart": lambda: Minecart(replace(PAPER, capacity=PAPER.capacity * 2)),
    "minecart with another skip": lambda: Minecart(frame_skip=3),
}


def test_equal_parameters_have_equal_fingerprints() -> None:
    for name, make in DIFFERENT.items():
        assert fingerprint(make()) == fingerprint(make()), name


def test_other_parameters_have_other_fingerprints() -> None:
    found = {name: fingerprint(make()) for name, make in DIFFERENT.items()}
    assert len(set(found.values())) == len(found)
    assert all(len(mark) == 16 and mark.isalnum() for mark in found.values())


class Held(eqx.Module):
    value: Any
    other: Any = 0


VALUES = [
    0, 1, -1, True, False, None, 0.0, 1.0, float("nan"), float("inf"), "", "0", b"", b"0", (), (0,),
    (0, 0), ((0,), 0), (0, (0,)), {}, {"a": 0}, {"b": 0}, {"a": 0, "b": 0}, {"a": {"b": 0}},
    np.zeros(2), np.zeros(3), np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros((2, 1)),
    np.asarray([0, -0.0]), np.asarray([0, 1e-300]), np.float32(0.5), np.float64(0.5),
    jax.random.key(0), jax.random.key(1), np.argmax, np.argmin, FixedWeights,
]  # fmt: skip


def test_every_value_counts() -> None:
    marks = [fingerprint(Held(value)) for value in VALUES]
    assert len(set(marks)) == len(marks)
    assert fingerprint(Held(1, 2)) != fingerprint(Held(2, 1))
    # Nested in one another, too.
    nested = [fingerprint({"a": [Held(value)]}) for value in VALUES]
    assert len(set(nested) | set(marks)) == 2 * len(VALUES)


def test_any_changed_number_of_an_array_counts() -> None:
    array = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    marks = {fingerprint(array)}
    for index in np.ndindex(array.shape):
        changed = array.copy()
        changed[index] = one_ulp(float(array[index]))
        marks.add(fingerprint(changed))
    assert len(marks) == 25


def test_where_an_array_lives_does_not_count() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    same = [jnp.asarray(array), array.copy(), np.asfortranarray(array)]
    assert {fingerprint(one) for one in same} == {fingerprint(array)}
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_gymnasium_environments() -> None:
    import windvane  # noqa: F401

    make = gymnasium.make
    one, again = (make("windvane/DeepSeaTreasure-v0") for _ in range(2))
    assert fingerprint(one) == fingerprint(again)
    assert fingerprint(one) != fingerprint(make("windvane/Minecart-v0"))


def test_the_name_of_a_type() -> None:
    assert type_name(DeepSeaTreasure()) == "windvane.envs.deep_sea_treasure.DeepSeaTreasure"


PROGRAM = """
from windvane.agents.multi_network import MultiNetwork
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.fingerprint import fingerprint
from windvane.schedules import SparseChanges

parts = {"agent": MultiNetwork(0.25), "env": DeepSeaTreasure(), "schedule": SparseChanges(2, 7)}
print(fingerprint(parts))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_other_processes_have_the_same_fingerprints(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    parts = {"agent": MultiNetwork(0.25), "env": DeepSeaTreasure(), "schedule": SparseChanges(2, 7)}
    assert done.stdout.strip() == fingerprint(parts)


def test_gymnasium_objects_differ_in_what_they_were_built_with() -> None:
    from tests.strangers.parts import Shop

    used = Shop(4)
    used.reset(seed=3)
    used.step(0)
    assert fingerprint(Shop(4)) == fingerprint(used)
    assert fingerprint(Shop(4)) != fingerprint(Shop(9))
