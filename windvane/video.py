"""MP4 files from frames, by way of the program ffmpeg.

What may not live here: what is on a frame.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from windvane.errors import InputError
from windvane.files import atomic_write, shown_path

HOLD = 1.5
"""Seconds that the last frame stays."""
_INSTALL = "`apt install ffmpeg`, `brew install ffmpeg` or `winget install ffmpeg`"


def require_ffmpeg() -> str:
    """The path of ffmpeg, or a complaint that says how to install it."""
    found = shutil.which("ffmpeg")
    if found is None:
        raise InputError(
            "an .mp4 needs the program ffmpeg, which is not installed: install it with "
            f"{_INSTALL}, or choose a name that ends in .gif"
        )
    return found


def write_mp4(frames: np.ndarray, path: Path, fps: int) -> None:
    """Write RGB frames as H.264 that every browser plays."""
    program = require_ffmpeg()
    height, width = _even(frames[0]).shape[:2]
    with tempfile.TemporaryDirectory(prefix="windvane-") as folder:
        # ffmpeg goes back to the beginning of an MP4 in the end, so that it needs a real file.
        film = Path(folder) / "film.mp4"
        command = [
            program, "-loglevel", "error", "-f", "rawvideo", "-pixel_format", "rgb24",
            "-video_size", f"{width}x{height}", "-framerate", str(fps), "-i", "pipe:0",
            "-vf", f"tpad=stop_mode=clone:stop_duration={HOLD}", "-c:v", "libx264", "-crf", "18",
            "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(film),
        ]  # fmt: skip
        _encode(command, frames, path, Path(folder) / "complaints")
        atomic_write(path, lambda file: file.write(film.read_bytes()))


def _encode(command: list[str], frames: np.ndarray, path: Path, complaints: Path) -> None:
    with complaints.open("wb") as log:
        encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        assert encoder.stdin is not None
        try:
            with encoder.stdin as pipe:
                for frame in frames:
                    pipe.write(_even(frame).tobytes())
        except OSError:  # it ended before it had read all: its exit code says so, too
            pass
        except BaseException:
            encoder.kill()
            raise
        finally:
            encoder.wait()
    if encoder.returncode:
        said = " ".join(complaints.read_text(errors="replace").split()) or "it does not say why"
        raise InputError(
            f"cannot write {shown_path(path)}: ffmpeg failed ({said[:300]}); choose a name that "
            "ends in .gif"
        )


def _even(frame: np.ndarray) -> np.ndarray:
    """A frame of even height and width, as colours at half the resolution ask for."""
    height, width, _ = frame.shape
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
