"""Films as MP4: what ffmpeg reads back, and what is said where there is no ffmpeg or a bad one."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from windvane.cli import main
from windvane.cli.filming import Filming
from windvane.errors import InputError
from windvane.rendering import Episode
from windvane.video import HOLD, write_mp4

needs_ffmpeg = pytest.mark.skipif(
    shutil.which("ffmpeg") is None or shutil.which("ffprobe") is None, reason="needs ffmpeg"
)


def frames(number: int, height: int, width: int) -> np.ndarray:
    """Frames of one grey each, from dark to bright."""
    greys = np.linspace(40, 220, number).astype(np.uint8)
    return np.broadcast_to(greys[:, None, None, None], (number, height, width, 3))


def stream(path: Path) -> dict[str, str]:
    """What ffprobe says of the only stream of a film."""
    fields = "codec_name,pix_fmt,width,height,r_frame_rate,nb_frames"
    line = ["ffprobe", "-v", "error", "-show_entries", f"stream={fields}", "-of", "json", str(path)]
    said = subprocess.run(line, capture_output=True, check=True, text=True).stdout
    [found] = json.loads(said)["streams"]
    return found


def read_back(path: Path, height: int, width: int) -> np.ndarray:
    line = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(line, capture_output=True, check=True).stdout
    return np.frombuffer(data, np.uint8).reshape(-1, height, width, 3)


@needs_ffmpeg
def test_a_film_holds_its_frames_and_keeps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    shown = frames(7, 33, 47)
    write_mp4(shown, path, fps=4)
    about = stream(path)
    assert about["codec_name"] == "h264"
    assert about["pix_fmt"] == "yuv420p"
    assert (about["width"], about["height"]) == (48, 34)  # even, for players that ask for it
    assert about["r_frame_rate"] == "4/1"
    film = read_back(path, 34, 48).astype(int)
    assert len(film) == int(about["nb_frames"]) == 7 + HOLD * 4
    held = np.concatenate([shown, np.repeat(shown[-1:], len(film) - 7, 0)]).astype(int)
    assert np.abs(film[:, :33, :47] - held).max() < 6
    assert [each.name for each in tmp_path.iterdir()] == ["film.mp4"]


@needs_ffmpeg
def test_the_name_of_a_film_chooses_its_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewards = np.asarray([[0.0, -1.0], [5.0, -1.0]])
    episode = Episode(np.ascontiguousarray(frames(3, 48, 48)), rewards, True)
    path = tmp_path / "new" / "dive.MP4"
    filming = Filming(size=48)
    filming.check(path)
    filming.write(Console(), episode, ("treasure", "time"), [0.3, 0.7], path)
    assert f"written: {path}\n" in capsys.readouterr().out
    about = stream(path)
    assert about["codec_name"] == "h264"
    assert int(about["height"]) > 48  # the captions


def test_without_ffmpeg_one_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["render", "dst", "--out", str(tmp_path / "film.mp4")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("windvane: an .mp4 needs the program ffmpeg, which is not installed")
    assert "apt install ffmpeg" in said
    assert ".gif" in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
def test_what_a_failing_ffmpeg_says_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho \"Unknown encoder\n 'libx264'\" >&2\nexit 8\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"ffmpeg failed \(Unknown encoder 'libx264'\); choose"):
        # More than a pipe holds, so that writing to it fails, too.
        write_mp4(frames(100, 200, 200), tmp_path / "film.mp4", fps=4)
    assert not (tmp_path / "film.mp4").exists()
