"""Runs whose files call a map as it was called before: read, resumed, stored and judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windvane
from tests.runs.crashes import stop_after
from tests.runs.small import same_records, small
from windvane.envs.deep_sea_treasure import MAPS
from windvane.experiments.report.summary_files import read_summaries, write_summaries
from windvane.experiments.runs.paths import relative_path
from windvane.experiments.runs.store import Store, read_run
from windvane.policy import Policy
from windvane.runs.runner import read_result, resume, train
from windvane.runs.stopping import TrainingStopped

FORMER, NOW = (
    small(steps=160, seeds=(3,), env_args={"map": name}, precision="float32")
    for name in ("paper", "dcrac")
)


@pytest.mark.usefixtures("keep_checkpoints")
def test_old_files_with_the_former_name_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, expected = tmp_path / "run", train(NOW)
    stop_after(monkeypatch, [80])
    with pytest.raises(TrainingStopped):
        train(FORMER, out=folder, progress=False)
    monkeypatch.undo()
    assert same_records(resume(folder).records, expected.records)

    result = read_result(folder)
    assert result.config == FORMER
    assert same_records(result.records, expected.records)
    [path] = (folder / "policies").glob("*.safetensors")
    policy = Policy.load(path)
    env: Any = policy.env
    assert np.array_equal(np.asarray(env.sea_map), MAPS["dcrac"].astype(np.float32))
    assert np.isfinite(windvane.evaluate(policy, [0.5, 0.5]).regret).all()

    store = Store(tmp_path / "store")
    written = store.write(FORMER, result.records, False, {})
    config, records, *_ = read_run(written)
    assert config == FORMER
    assert len(records["step"]) == len(result.records["step"])
    summaries = list(store.summaries())
    write_summaries(summaries, tmp_path / "summaries")
    assert [run.config for run in read_summaries(tmp_path / "summaries")] == [FORMER]


def test_a_run_of_the_former_name_is_found_where_it_was_written() -> None:
    assert relative_path(FORMER).name == "d1b086021f-seed-3.parquet"
