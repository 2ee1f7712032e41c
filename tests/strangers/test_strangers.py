"""Somebody else's agent, rule, schedule and environment: trained, resumed, evaluated, reported and
drawn by the commands, each from one file outside the package.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.runs.crashes import stop_after
from windvane.cli import main
from windvane.experiments.paper.grids import Grid
from windvane.experiments.runs.reproduce import reproduce
from windvane.runs.records import read_records

PARTS = "tests.strangers.parts"
NAMES = (
    "--env", f"{PARTS}:make_corridor", "--env-args", "length=7",
    "--agent", f"{PARTS}:EvenWeights", "--agent-args", "share=0.25",
    "--replay", f"{PARTS}:EveryOther.build",
    "--schedule", f"{PARTS}:make_schedule", "--schedule-args", "period=6",
)  # fmt: skip
SMALL = ("--steps", "240", "--learning-starts", "40", "--chunk", "40", "--width", "8", "--depth",
         "1", "--batch-size", "8", "--capacity", "100")  # fmt: skip


def test_the_commands_take_the_parts_of_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_after(patch, [120])
        assert main(["train", *NAMES, *SMALL, "--out", str(folder)]) == 130
    assert "stopped at step 120; resume with: windvane resume" in capsys.readouterr().err
    assert main(["resume", str(folder)]) == 2
    assert "would be imported, which runs its code" in capsys.readouterr().err
    assert main(["resume", str(folder), "--trust"]) == 0
    records = read_records(folder)
    # The stranger's schedule swings, and the stranger's corridor is seven long.
    share = 0.5 + 0.5 * np.cos(2 * np.pi * records["episode"] / 6)
    np.testing.assert_allclose(records["weights_0"], share, atol=1e-5)
    assert records["length"].min() >= 3
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--trust"]) == 0
    assert "expected" in capsys.readouterr().out
    assert main(["front", str(folder), "--trust", "--out", str(tmp_path / "front")]) == 0
    assert list((tmp_path / "front").glob("*.png"))
    assert main(["compare", str(folder), "--out", str(tmp_path / "compare.png")]) == 0
    assert (tmp_path / "compare.png").exists()
    capsys.readouterr()
    assert main(["watch", str(folder), "--trust", "--weights", "0.5,0.5"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_reports_have_the_parts_of_strangers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = Grid.of(
        "mine", "default", [f"{PARTS}:EvenWeights", "mo"], [f"{PARTS}:EveryOther.build"],
        [f"{PARTS}:make_schedule"],
    )  # fmt: skip
    result = reproduce(
        grid, tmp_path, seeds=2, env=f"{PARTS}:make_corridor", steps=240, learning_starts=40,
        chunk=40, width=8, depth=1, batch_size=8, capacity=100,
    )  # fmt: skip
    assert result.trained == 4
    assert not result.failures
    assert main(["report", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "EvenWeights" in printed
    report = (tmp_path / "report" / "report.md").read_text()
    assert "utility" in report.lower()
    assert "nan" not in report.lower().split()
    assert list((tmp_path / "report").glob("*.png"))
