"""What a command line means where it says something twice, nothing, or with other dashes."""

import subprocess
import sys

import pytest

from windvane.cli import main, parse


def test_several_values_in_several_places_belong_together() -> None:
    line = "tune --preset quick-dst --space width=32,64 --trials 5 --space momentum=0.5..0.9"
    command = parse(line.split())
    assert command.space == ("width=32,64", "momentum=0.5..0.9")
    assert command.trials == 5


def test_a_single_value_counts_as_it_is_given_last() -> None:
    assert (
        parse(["train", "--preset", "quick-dst", "--steps", "400", "--steps", "800"]).config.steps
        == 800
    )


@pytest.mark.parametrize(
    "line", [["train", "--out="], ["train", "--out", ""], ["train", "--track="]]
)
def test_nothing_is_no_value(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == 2
    assert f"{line[1].rstrip('=')} must not be empty" in capsys.readouterr().err


def test_another_part_gets_no_arguments_of_the_preset_s() -> None:
    assert not parse(["train", "--preset", "envelope-dst", "--agent", "cn"]).config.agent_args
    kept = parse(
        ["train", "--preset", "fast-dst", "--agent-args", "td_lambda=0.5"]
    ).config.agent_args
    assert dict(kept) == {"minibatches": 32, "td_lambda": 0.5}


def test_a_closed_output_is_no_failure() -> None:
    program = "import sys; sys.stdout = None; from windvane.cli import main; sys.exit(main(['-h']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
