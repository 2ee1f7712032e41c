"""The commands about problems: what they write and print, and how they refuse."""

import json
from pathlib import Path
from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest
from PIL import Image

from windvane.cli import main


def test_oracle_dst_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oracle", "dst", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "10 policies" in said
    assert "discounted by 0.95, rewards times 1" in said
    for name in ("dst-map.png", "dst-coverage-set.png", "dst-weight-space.png"):
        with Image.open(tmp_path / name) as picture:
            assert np.asarray(picture).std() > 0, name
    rows = (tmp_path / "dst-coverage-set.csv").read_text().splitlines()
    assert rows[0] == "treasure,time,behaviour"
    assert len(rows) == 11


def test_oracle_minecart_uses_the_shipped_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["oracle", "minecart", "--out", str(tmp_path)]) == 0
    assert "10 distinct behaviours" in capsys.readouterr().out
    assert (tmp_path / "minecart-weight-space.png").exists()


def test_render_an_optimal_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "trip.gif"
    assert main(["render", "minecart", "--weights", "0.2,0.3,0.5", "--out", str(path)]) == 0
    said = capsys.readouterr().out
    assert "terminated" in said
    assert "undiscounted return" in said
    with Image.open(path) as film:
        assert film.n_frames > 10
        width, height = film.size
        assert width == 240
        assert height > 240  # the weights, the step and the return stand below


def test_render_random_actions_as_a_strip(tmp_path: Path) -> None:
    path = tmp_path / "strip.png"
    assert main(["render", "dst", "--out", str(path), "--size", "48", "--steps", "10"]) == 0
    with Image.open(path) as strip:
        assert strip.size[0] > 48


def test_a_map_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "map.txt"
    path.write_text("0 0 0\n5 0 0\n-1 9 0\n")
    assert main(["oracle", "dst", "--map", str(path), "--out", str(tmp_path)]) == 0
    assert "2 policies" in capsys.readouterr().out


BAD = {
    "oracle minecart --gamma 1.5": "1.5",
    "oracle dst --map {binary}": "it is not text",
    "oracle dst --map {large}": "larger than 16,777,216 bytes",
    "oracle dst --map {wide}": "at most 262,144 cells",
    "oracle dst --map {long}": "File name too long",
    "oracle minecart --config {long}": "File name too long",
    "oracle minecart --config {deep}": "nested too deeply",
    "oracle minecart --config {binary}": "it is not text",
    "oracle dst --out {long}": "File name too long",
    "render dst --out {long}.gif": "File name too long",
    "oracle dst --map nowhere.txt": "nowhere.txt",
    "oracle dst --map {broken}": "not a table of numbers",
    "oracle dst --map {file}": "it is empty",
    "oracle dst --map {folder}": "cannot read the map",
    "oracle dst --map {map} --time-limit 3000000000": "3000000000",
    "oracle dst --out {folder}": "dst-map.png: Is a directory",
    "oracle dst --config {outside}": "--config is for minecart only",
    "oracle minecart --map convex": "--map is for dst only",
    "oracle minecart --config {flat}": "mine 0 of the Minecart instance must be an object, not 3",
    "oracle minecart --config {colourful}": "ore colours must be",
    "oracle minecart --config {huge}": "capacity must be a number above 0",
    "render dst --config {outside}": "--config is for minecart only",
    "render dst --deterministic": "--deterministic is for minecart only",
    "render dst --frame-skip 0": "--frame-skip is for minecart only",
    "render dst --gamma 2": "discount factor",
    "render dst --seed -1": "--seed must be a whole number from 0 to 4294967295, not -1",
    "render dst --seed 4294967296": "not 4294967296",
    "oracle dst --time-limit 0": "time_limit",
    "oracle minecart --config {missing}": "cannot read",
    "oracle minecart --config {outside}": "outside the map",
    "oracle minecart --frame-skip 0": "frame_skip",
    "render minecart --weights 0.5,0.5": "3",
    "render minecart --weights 0.5,0.6,-0.1": "-0.1",
    "render minecart --weights a,b,c": "a,b,c",
    "render dst --out film.avi": "film.avi': the name must end in .gif, .mp4 or .png",
    "render dst --size -3": "-3",
    "render dst --out {file}/film.gif": "cannot write",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_code_2(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Off, as for users: the tests' own check of types would speak before ours.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    names = ["missing", "outside", "broken", "file", "folder", "map", "flat", "colourful", "huge"]
    files = {name: tmp_path / name for name in [*names, "binary", "large", "wide", "deep"]}
    files["long"] = tmp_path / ("x" * 300)
    files["binary"].write_bytes(bytes(range(256)))
    files["large"].write_bytes(b"0 " * (2**23 + 1))
    files["wide"].write_text("0 " * 300_000 + "1\n")
    files["deep"].write_text("[" * 10_000 + "]" * 10_000)
    mine = {"x": 3, "y": 0.5, "distributions": [[0.1, 0.1]]}
    inside = mine | {"x": 0.5}
    files["outside"].write_text(json.dumps({"mines": [mine]}))
    files["flat"].write_text(json.dumps({"mines": [3]}))
    files["colourful"].write_text(json.dumps({"mines": [inside], "ore_colors": 7}))
    files["huge"].write_text(json.dumps({"mines": [inside], "capacity": 10**400}))
    files["map"].write_text("0 1\n")
    (files["folder"] / "dst-map.png").mkdir(parents=True)
    files["broken"].write_text("0 0\nx y\n")
    files["file"].write_text("")
    assert main(line.format(**files).split()) == 2
    message = capsys.readouterr().err
    assert BAD[line] in message
    assert message.count("\n") == 1
    assert message.startswith("windvane: ")


def test_paths_are_printed_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "[bold]:smile:" / ("long" * 30) / "film.png"
    assert main(["render", "dst", "--out", str(path), "--size", "12", "--steps", "2"]) == 0
    assert f"written: {path}\n" in capsys.readouterr().out


def test_actions_and_ore_have_keys_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from windvane import rendering

    seen = []

    def film(env: Any, plan: Any, key: Any, *rest: Any) -> rendering.Episode:
        actions, ore = [plan.start()], jax.random.split(key)[1]
        for _ in range(3):
            actions.append(jax.random.split(actions[-1])[1])
        seen.extend(jax.random.key_data(k).tolist() for k in [*actions, key, ore])
        return rendering.Episode(np.zeros((1, 4, 4, 3), np.uint8), np.zeros((1, 3)), False)

    monkeypatch.setattr(rendering, "film", film)
    assert main(["render", "minecart", "--out", str(tmp_path / "film.png")]) == 0
    assert len(set(map(tuple, seen))) == len(seen) == 6
