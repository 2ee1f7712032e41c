"""Former names: they work, and whoever types one is told."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from windvane.cli import main
from windvane.deprecation import Renamed, RenamedWarning, current_name
from windvane.envs.deep_sea_treasure import FORMER_NAMES, MAPS, DeepSeaTreasure
from windvane.envs.factories import deep_sea_treasure

FORMER = {"old": Renamed("new", until="0.4")}


def test_a_former_name_that_is_typed_is_answered_with_a_warning() -> None:
    expected = "the map 'old' is called 'new' now: Windvane 0.4 may not know the former name"
    with pytest.warns(RenamedWarning, match=expected) as caught:
        assert current_name("map", "old", FORMER) == "new"
    assert issubclass(RenamedWarning, DeprecationWarning)
    # It names the line that has to be changed.
    assert caught[0].filename == __file__


def test_other_names_and_files_are_answered_in_silence() -> None:
    with warnings.catch_warnings(action="error"):
        assert current_name("map", "new", FORMER) == "new"
        assert current_name("map", "other", FORMER) == "other"
        assert current_name("map", "old", FORMER, typed=False) == "new"


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_former_names_of_maps(name: str) -> None:
    assert re.fullmatch(r"\d+\.\d+", FORMER_NAMES[name].until)
    with pytest.warns(RenamedWarning, match=repr(FORMER_NAMES[name].now)) as caught:
        env = DeepSeaTreasure(name)
    assert caught[0].filename == __file__
    assert np.array_equal(env.sea_map, MAPS[FORMER_NAMES[name].now].astype(np.float32))
    # Run folders build their environments in this way.
    with warnings.catch_warnings(action="error"):
        deep_sea_treasure("features", map=name)


def test_commands_say_it_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oracle", "dst", "--map", "paper", "--gamma", "2"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        "windvane: the map 'paper' is called 'dcrac' now: Windvane 0.4 may not know the former "
        "name any more"
    )
    assert "discount factor" in second  # which is what keeps this test short


def test_a_program_sees_it_without_asking(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from windvane.deprecation import Renamed, current_name\n"
                       "current_name('map', 'old', {'old': Renamed('new', '0.4')})\n")  # fmt: skip
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert "program.py:2: RenamedWarning: the map 'old' is called 'new' now" in done.stderr
