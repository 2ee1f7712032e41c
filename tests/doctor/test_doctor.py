"""`windvane doctor`: what it finds, and that whatever is broken becomes a sentence."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from windvane.cli import main
from windvane.doctor import Finding, about
from windvane.doctor.devices import Gpu, Gpus, jax_devices, nvidia_gpus, taken_memory
from windvane.doctor.packages import extras, modules_of_requirements, required_packages
from windvane.doctor.probe import ask
from windvane.doctor.surroundings import compilation_cache
from windvane.version import __version__

H200 = Gpu(0, "NVIDIA H200", 143_771, 4, "570.86")
CPU = {"platform": "cpu", "kind": "cpu", "memory": None}
POSIX = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")


def of(topic: str, findings: Iterator[Finding]) -> Finding:
    """The last finding about something."""
    return [finding for finding in findings if finding.topic == topic][-1]


def seen(devices: list[dict[str, Any]], messages: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"devices": {"jax": "0.10.2", "devices": devices, "messages": list(messages)}}


def install(folder: Path, *requirements: str, extras: tuple[str, ...] = ()) -> None:
    """The metadata of another Windvane."""
    home = folder / "windvane-9.9.dist-info"
    home.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: windvane", "Version: 9.9"]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
    (home / "METADATA").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_a_training_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "a training of 256 steps works" in " ".join(said.split())
    assert said.endswith("all that Windvane needs works\n")


def test_everything_works_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--quick"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["windvane"] == __version__ == about()["windvane"]
    assert said["healthy"] is True
    found = {finding["topic"]: finding for finding in said["findings"]}
    assert "trial" not in found
    assert {"packages", "extra studio", "extra cuda", "devices", "machine"} <= set(found)
    assert found["packages"]["facts"].keys() >= {"jax", "equinox", "rich"}
    assert re.match(r"all \d\d required packages can be imported", found["imports"]["text"])


def test_extras_are_those_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path, "numpy", 'no-such-package>=2; extra == "shiny"', 'numpy>=1; extra == "plain"',
        'numpy>=999; extra == "newer"', 'windvane[shiny]; extra == "all"',
        'no-such-package; extra == "elsewhere" and sys_platform == "nowhere"',
        extras=("shiny", "plain", "newer", "all", "elsewhere"),
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {finding.topic: finding for finding in extras()}
    shiny = found["extra shiny"]
    assert (shiny.status, shiny.facts["missing"]) == ("note", ["no-such-package"])
    assert shiny.advice == 'pip install "windvane[shiny]"'
    assert found["extra plain"].status == found["extra elsewhere"].status == "ok"
    assert "numpy>=999 (installed is " in found["extra newer"].text
    assert found["extra all"].facts["missing"] == ["no-such-package"]
    assert "9.9 is installed" in next(required_packages()).text


def test_missing_required_packages_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "numpy", "pillow", "no-such-package")
    monkeypatch.syspath_prepend(str(tmp_path))
    problem = of("packages", required_packages())
    assert problem.status == "problem"
    assert problem.facts["missing"] == ["no-such-package"]
    assert modules_of_requirements() == ["numpy", "PIL"]


def test_a_jax_that_crashes_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jax.py").write_text("import os, sys\nprint('no such chip', file=sys.stderr)\n"
                                     "sys.stderr.flush()\nos.abort()\n")  # fmt: skip
    install(tmp_path, "jax")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("windvane.doctor.modules_of_requirements", lambda: ["jax"])
    assert main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "jax cannot be imported (the process was ended by signal 6: no such chip)" in " ".join(
        said.out.split()
    )
    assert "Traceback" not in said.out + said.err
    assert said.err.startswith("windvane: ")
    assert "do not work; begin with: pip install" in said.err
    assert said.err.count("\n") == 1


def test_a_module_that_raises_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("raise ValueError('numpy.dtype size changed')\n")
    (tmp_path / "noisy.py").write_text("print('hello')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    answers = ask(["half_installed", "noisy"], trial=False, seconds=120)
    assert answers["import half_installed"] == {"error": "ValueError: numpy.dtype size changed"}
    assert "seconds" in answers["import noisy"]
    assert answers["devices"]["devices"]


def test_a_broken_plugin_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "jax_plugins" / "broken_chip"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("def initialize():\n    raise RuntimeError('no driver')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    answers = ask([], trial=False, seconds=120)
    [message] = answers["devices"]["messages"]
    assert "broken_chip" in message
    assert "no driver" in message
    note = of("GPU", jax_devices(answers, None, {}))
    assert note.status == "note"
    assert "no driver" in note.text


def test_what_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sleepy.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    answers = ask(["sleepy"], trial=False, seconds=3)
    # On a busy machine not even the first step may have begun.
    assert "no answer within 3 s" in next(iter(answers.values()))["error"]


WITHOUT_GPU: dict[str, tuple[Gpus | None, Mapping[str, str], bool, str, str]] = {
    "no driver": (None, {}, True, "no NVIDIA driver is here", ""),
    "no plugin": (Gpus((H200,)), {}, True, "JAX lacks what it needs", '"windvane[cuda]"'),
    "told not to": (Gpus((H200,)), {"JAX_PLATFORMS": "cpu"}, True, "told not to", "JAX_PLATFORMS"),
    "hidden": (Gpus((H200,)), {"CUDA_VISIBLE_DEVICES": ""}, False, "told not to", "which is empty"),
    "old driver": (Gpus((H200,)), {}, False, "does not see it", "too old (570.86)"),
    "no answer": (Gpus(fault="nvidia-smi fails: no devices"), {}, True, "no devices", "container"),
}


@pytest.mark.parametrize("case", WITHOUT_GPU)
def test_why_jax_sees_no_gpu(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus, environment, lacking, text, advice = WITHOUT_GPU[case]
    monkeypatch.setattr(
        "windvane.doctor.devices.lacking_of_extra", lambda _: ["jax-plugin"] if lacking else []
    )
    finding = of("GPU", jax_devices(seen([CPU]), gpus, environment))
    assert text in finding.text
    assert advice in finding.advice
    assert finding.status == ("ok" if gpus is None else "note")


def test_gpus_that_jax_sees() -> None:
    device = {"platform": "gpu", "kind": "NVIDIA H200", "memory": 139 * 2**30}
    [finding] = jax_devices(seen([device, device]), Gpus((H200,)), {})
    assert "computes on: NVIDIA H200 with 139 GiB, NVIDIA H200 with 139 GiB" in finding.text
    assert finding.status == "ok"


def test_a_jax_that_finds_no_device_is_a_problem() -> None:
    answers = {"devices": {"error": "RuntimeError: Unable to initialize backend 'cuda'"}}
    [finding] = jax_devices(answers, None, {"JAX_PLATFORMS": "tpu"})
    assert finding.status == "problem"
    assert finding.advice.startswith("unset JAX_PLATFORMS, which is tpu; or pip install")


@POSIX
def test_the_driver_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    script = """#!/bin/sh
case "$1" in
  *compute-apps*) echo "4711, python, 100000" ;;
  *) echo "0, NVIDIA H200, 143771, 100004, 570.86"; echo "1, GB10, [N/A], [N/A], 580.1" ;;
esac
"""
    program.write_text(script)
    program.chmod(0o755)
    gpus = nvidia_gpus()
    assert gpus is not None
    assert gpus.found[0] == Gpu(0, "NVIDIA H200", 143_771, 100_004, "570.86")
    assert gpus.found[1].total == 0
    [taken] = taken_memory(gpus)
    assert "other programs hold 98 of 140 GiB of GPU 0" in taken.text
    assert "python (process 4711, 100000 MiB)" in taken.text
    program.write_text("#!/bin/sh\necho 'Failed to initialize NVML'\nexit 9\n")
    gpus = nvidia_gpus()
    assert gpus is not None
    assert gpus.fault == "nvidia-smi fails: Failed to initialize NVML"
    assert not list(taken_memory(gpus))


def test_where_compiled_programs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [kept] = compilation_cache({"devices": {"cache": str(tmp_path)}})
    assert str(tmp_path) in kept.text
    monkeypatch.setenv("WINDVANE_COMPILATION_CACHE", "0")
    [off] = compilation_cache({"devices": {"cache": None}})
    assert "WINDVANE_COMPILATION_CACHE is 0" in off.text
    monkeypatch.delenv("WINDVANE_COMPILATION_CACHE")
    monkeypatch.setenv("WINDVANE_CACHE", str(tmp_path / "file"))
    [nowhere] = compilation_cache({"devices": {"cache": None}})
    assert "compiles anew" in nowhere.text
    assert "set WINDVANE_CACHE" in nowhere.advice


def test_a_check_that_fails_itself_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    from windvane import doctor

    def fails() -> Iterator[Finding]:
        raise OSError("the disk is gone")

    [finding] = doctor._guarded("machine", fails)
    assert finding.status == "note"
    assert "OSError: the disk is gone" in finding.text


def test_without_rich(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Off, as for users: the tests' own check of types would speak before ours.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setitem(sys.modules, "rich", None)
    install(tmp_path, "numpy", "no-such-rich")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("windvane.doctor.modules_of_requirements", lambda: ["json"])
    assert main(["doctor", "--quick"]) == 1
    assert "these are missing: no-such-rich" in capsys.readouterr().out
    assert main(["doctor", "--fast"]) == 2
    assert "--fast" in capsys.readouterr().err
