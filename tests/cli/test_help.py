"""Help pages: complete, plain, narrow enough, with examples that work, and quick to print."""

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from windvane.agents import AGENTS
from windvane.cli import main, page_for, parse
from windvane.cli.commands import COMMANDS, FIRST
from windvane.cli.options import VALUE_WORDS, Option, options_of
from windvane.cli.training import Train
from windvane.envs import ENVS
from windvane.envs.deep_sea_treasure import MAPS
from windvane.experiments.paper.grids import GridName
from windvane.replay import REPLAYS
from windvane.schedules import SCHEDULES
from windvane.training.presets import PRESETS, SUMMARIES

# What parsers print for types, and words that say nothing to somebody who does not program.
CLUTTER = re.compile(r"\bNone\b|\{|\}|\bINT\b|\bFLOAT\b|\bSTR\b|\bPATH\b|\bBOOL\b|Mapping|<class")
LINES = [line for entry in COMMANDS.values() for line, _ in entry.load().examples]


def options(name: str) -> tuple[Option, ...]:
    command = COMMANDS[name].load()
    return options_of(command.defaults([]) if hasattr(command, "defaults") else command)


@pytest.fixture(params=[36, 80, 100, 200])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("line", ["", *(f"{name} --help-all" for name in COMMANDS), "train -h"])
def test_lines_fit(line: str, columns: int) -> None:
    page = page_for(line.split())
    assert page is not None
    examples = {example for example, _ in FIRST} | set(LINES)
    lines = [line for line in page.splitlines() if line.strip() not in examples]
    assert max(map(len, lines)) <= (min(columns, 100) if columns > 36 else 50)
    assert max(map(len, page.splitlines())) <= 80 or columns > 80
    assert all(line == line.rstrip() for line in page.splitlines())


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_there_once_and_in_plain_words(name: str) -> None:
    page = page_for([name, "--help-all"]) or ""
    _, settings = page.split("\nUsage: ")
    assert not CLUTTER.search(page)
    heads = Counter(re.findall(r"^  (--[\w-]+|[A-Z]+)\b", settings, re.M))
    assert heads == Counter({option.flag: 1 for option in options(name)})
    words = "|".join([*VALUE_WORDS, "N", "NUMBER", "NAME", "NAME=VALUE"])
    for option in options(name):
        assert option.positional or option.value.choices or not option.word or re.fullmatch(
            words, option.word
        ), option.flag  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts_are_sentences_and_say_what_happens_without(name: str) -> None:
    for option in options(name):
        assert option.text[0].isupper(), option.flag
        assert option.text.endswith("."), option.flag
        assert "None" not in option.text, option.flag
        says = "Default: " in option.text
        assert says or option.required or option.default is not None, option.flag


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_begins_with_a_sentence_and_two_examples(name: str) -> None:
    page = (page_for([name, "--help"]) or "").splitlines()
    assert page[0].endswith(".")
    assert page[1:3] == ["", "Examples"]
    examples = COMMANDS[name].load().examples
    assert len(examples) == 2
    for line, _ in examples:
        assert line.startswith(f"windvane {name}")
        assert f"  {line}" in page


@pytest.mark.parametrize("line", [line for line, _ in FIRST] + LINES)
def test_examples_parse(line: str) -> None:
    command = parse(shlex.split(line)[1:])
    if isinstance(command, Train):
        assert command.config.steps > 0  # its settings are allowed together


@pytest.mark.usefixtures("wide")
def test_the_short_help_of_train_names_all_settings_and_explains_the_everyday_ones() -> None:
    page = page_for(["train", "--help"]) or ""
    assert len(page.splitlines()) < 80
    for option in options("train"):
        assert len(re.findall(rf"(?<=\s){option.flag}(?=\s|$)", page.split("\nUsage")[1])) >= 1
    for name in ("agent", "env", "preset", "schedule", "steps", "seeds", "out"):
        assert re.search(rf"^  --{name} [A-Z]", page, re.M)
    assert "Layers" not in page
    assert page.splitlines()[-1].endswith("windvane train --help-all")


@pytest.mark.usefixtures("wide")
def test_names_come_from_the_registries() -> None:
    page = " ".join((page_for(["train", "--help-all"]) or "").split())
    for registry in (AGENTS, ENVS, REPLAYS, SCHEDULES, PRESETS):
        assert f"One of: {', '.join(registry)}." in page
    oracle = page_for(["oracle", "--help"]) or ""
    assert f"for dst alone: {', '.join(MAPS)}, or" in " ".join(oracle.split())
    reproduce = page_for(["reproduce", "--help"]) or ""
    assert all(grid in reproduce for grid in get_args(GridName))
    assert list(SUMMARIES) == list(PRESETS)
    for registry in (AGENTS, ENVS, REPLAYS, SCHEDULES):
        assert all(entry.summary in page for entry in registry.values())


@pytest.mark.usefixtures("wide")
def test_defaults_are_those_of_the_preset() -> None:
    def page(*arguments: str) -> str:
        return " ".join((page_for(["train", *arguments, "--help-all"]) or "").split())

    assert "Learning rate of the optimiser. Default: 0.02." in page()
    assert "Learning rate of the optimiser. Default: 0.005." in page("--preset", "quick-dst")
    assert "Default: 100_000 steps." in page("--env", "dst")
    assert "Default: minibatches=32 td_lambda=0.75." in page("--preset=fast-minecart")


@pytest.mark.parametrize("line", ["", "--help", "-h", "help", "--help-all"])
def test_the_overview(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in COMMANDS)
    assert all(f"\n  {line}\n" in said for line, _ in FIRST)
    assert "\x1b" not in said


def test_help_of_a_command_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for line in ("front --help", "help front", "front out/cn -h"):
        assert main(line.split()) == 0
        pages.append(capsys.readouterr().out)
    assert len(set(pages)) == 1
    assert "Measure and plot the front" in pages[0]


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("--help", "jax numpy tyro polars gymnasium rich"),
        ("hlep", "jax numpy tyro polars gymnasium rich"),
        ("train --help", "jax equinox polars gymnasium"),
        ("evaluate --help", "jax equinox polars gymnasium"),
        ("oracle --help", "jax equinox polars gymnasium"),
        ("reproduce --help", "jax equinox polars gymnasium"),
    ],
)
def test_help_imports_little(line: str, heavy: str, tmp_path: Path) -> None:
    program = (
        "import sys; from windvane.cli import main; main(sys.argv[1:]); "
        f"print('HEAVY', *({set(heavy.split())} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "HEAVY"


REFUSED = {
    "hlep": "unknown command 'hlep'; did you mean help?",
    "trian --steps 5": "unknown command 'trian'; did you mean train?",
    "fly": "unknown command 'fly'; choose one of: studio, ",
    "train --learnign-rate 0.1": "unknown option '--learnign-rate'; did you mean --learning-rate?",
    "train --Steps 4": "did you mean --steps?",
    "train --nothing-like-it": "windvane train --help lists what there is",
    "train -x": "unknown option '-x'",
    "train steps 100": "unexpected 'steps'; did you mean --steps?",
    "front out/cn help": "unexpected 'help'; did you mean --help?",
    "oracle dst minecart": "unexpected 'minecart'; windvane oracle --help shows what",
    "train --steps abc": "--steps must be a whole number, not 'abc'",
    "train --steps 1e6": "--steps must be a whole number, not '1e6'; write 1000000",
    "train --seeds 3 x": "--seeds must be a whole number, not 'x'",
    "train --seeds -1": "the number of seeds must be a whole number from 1 to 10000, not -1",
    "train --learning-rate fast": "--learning-rate must be a number, not 'fast'",
    "train --observation smell": "--observation must be auto, pixels or features, not 'smell'",
    "train --steps": "--steps needs a value: --steps STEPS, a whole number",
    "train --seeds --out a": "--seeds needs a value",
    "train --oracle=yes": "--oracle takes no value, not 'yes'",
    "oracle chess": "PROBLEM must be minecart or dst, not 'chess'",
    "oracle": "oracle needs PROBLEM: the problem",
    "watch out/cn": "watch needs --weights WEIGHTS: weights, such as 0.3,0.7, one per objective",
    "compare": "compare needs FOLDER: folders of trainings",
    "render dst --steps many": "--steps must be a whole number, not 'many'",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_meant_is_one_sentence_and_code_2(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("windvane: ")
    assert said.err.count("\n") == 1
    assert REFUSED[line] in said.err


def test_ways_to_write_the_same() -> None:
    one = parse(shlex.split("train --env dst --learning-rate 0.5 --no-oracle --seeds 3 4 --out=a"))
    other = parse(
        shlex.split("train --out a --seeds 3 4 --no_oracle --learning_rate=5e-1 --env=dst")
    )
    assert one == other
    assert one.running.oracle is False
    assert one.task.seeds == (3, 4)
    assert one.out == Path("a")
    assert parse(["front", "a", "--reference", "-1,-2"]).reference == "-1,-2"
    assert parse(["compare", "--out", "c.png", "a", "b"]).folders == (Path("a"), Path("b"))
    assert parse(["evaluate", "--", "-x"]).folder == Path("-x")
    assert parse(shlex.split("reproduce dst --known a --together 3")).max_parallel_runs == 3
    assert parse(shlex.split("train --seeds 3 --seeds 1_000")).task.seeds == 1000
