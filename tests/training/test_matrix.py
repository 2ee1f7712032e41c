"""Every agent x every replay rule x eight environments of MO-Gymnasium, 2,000 steps each."""

import pytest

from tests.training.matrix import COMBINATIONS, train_one


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("agent", "replay", "env"), COMBINATIONS)
def test_all_combinations_train(agent: str, replay: str, env: str) -> None:
    train_one(agent, replay, env)
