"""The machine around Windvane: cores, memory, folders, other programs, screen and terminal."""

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from windvane.doctor.finding import Finding
from windvane.doctor.probe import Answers
from windvane.errors import InputError
from windvane.machine import cache_folder, memory_bytes, usable_cores

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LITTLE_MEMORY = 4 * 2**30
"""The paper's settings on pixels need about that much."""


def machine() -> Iterator[Finding]:
    """Cores and memory."""
    cores, memory = usable_cores(), memory_bytes()
    facts = {"cores": cores, "memory": memory}
    text = f"{cores} core{'' if cores == 1 else 's'} can be used"
    if memory is None:
        yield Finding("machine", f"{text}; the system does not say how much memory", facts=facts)
    elif memory < LITTLE_MEMORY:
        yield Finding(
            "machine", f"{text}, with {memory / 2**30:.1f} GiB of memory, which is little", "note",
            "train with a smaller --capacity and --width", facts,
        )  # fmt: skip
    else:
        yield Finding("machine", f"{text}, with {memory / 2**30:.0f} GiB of memory", facts=facts)


def compilation_cache(answers: Answers) -> Iterator[Finding]:
    """Where compiled programs and results of searches are kept, and whether they can be."""
    topic = "compiled programs"
    answer = answers.get("devices", {})
    if "error" in answer or not answer:
        return
    if answer["cache"] is None:
        if os.environ.get("WINDVANE_COMPILATION_CACHE") == "0":
            yield Finding(topic, "are not kept: WINDVANE_COMPILATION_CACHE is 0", "note")
            return
        try:
            where = f"{cache_folder()} cannot be made"
        except InputError as error:
            where = str(error)
        yield Finding(
            topic, f"are not kept, and each training compiles anew ({where})", "note",
            "set WINDVANE_CACHE to a folder that can be written to",
        )  # fmt: skip
        return
    folder, facts = Path(answer["cache"]), {"folder": answer["cache"]}
    if folder.is_dir() and not os.access(folder, os.W_OK):
        yield Finding(
            topic, f"cannot be kept in {folder}, which is read-only for you", "note",
            "set WINDVANE_CACHE to a folder that can be written to", facts,
        )  # fmt: skip
    else:
        yield Finding(topic, f"are kept in {folder}", facts=facts)


def programs() -> Iterator[Finding]:
    """Other programs that some commands call."""
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        yield Finding(
            "ffmpeg", "is not installed; films are .gif, and .mp4 needs it", "note",
            "apt install ffmpeg, brew install ffmpeg or winget install ffmpeg",
        )  # fmt: skip
    else:
        yield Finding("ffmpeg", f"{ffmpeg}, for films as .mp4", facts={"path": ffmpeg})
    browser = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    if browser is None:
        text = "is not installed; any browser shows windvane studio, and only its tests need this"
        yield Finding("Chromium", f"{text} one", "note", "apt install chromium")
    else:
        yield Finding("Chromium", f"{browser}, for the tests of windvane studio")


def screen() -> Iterator[Finding]:
    """Whether windows can be opened, and whether this terminal shows progress bars."""
    display = sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    pygame = find_spec("pygame") is not None
    purpose = "to watch Gymnasium episodes in a window (render_mode 'human')"
    if display and pygame:
        yield Finding("display", f"a display and pygame are here, {purpose}")
    elif display:
        text = f"a display is here, and pygame is not, {purpose}"
        yield Finding("display", text, "note", 'pip install "windvane[human]"')
    else:
        yield Finding(
            "display", f"no display is here, {purpose}", "note",
            "film episodes with `windvane watch`, or look at them with `windvane studio`",
        )  # fmt: skip
    bars = sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    shown = "bars, as this is a terminal" if bars else "a line now and then: this is no terminal"
    yield Finding("progress", f"is shown as {shown}", facts={"bars": bars})
