"""What JAX computes on, and NVIDIA GPUs, which may be there without JAX seeing them."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from windvane.doctor.finding import Finding
from windvane.doctor.packages import lacking_of_extra
from windvane.doctor.probe import Answers

INSTALL_CUDA = 'pip install "windvane[cuda]"'
TAKEN = 0.1
"""Share of a GPU's memory that something else may hold before it is worth a note."""
_DRIVER = Path("/proc/driver/nvidia/version")
_SECONDS = 30


@dataclass(frozen=True)
class Gpu:
    """What the driver says of one GPU; memory in MiB."""

    index: int
    name: str
    total: float
    used: float
    driver: str


@dataclass(frozen=True)
class Gpus:
    """All that the driver says; `fault` is why it says nothing though it is installed."""

    found: tuple[Gpu, ...] = ()
    programs: tuple[str, ...] = ()
    """Programs that compute on a GPU."""
    fault: str = ""


def nvidia_gpus() -> Gpus | None:
    """The NVIDIA GPUs of this machine; None where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        if not _DRIVER.exists():
            return None
        return Gpus(fault="nvidia-smi is not installed")
    fields = "index,name,memory.total,memory.used,driver_version"
    lines, fault = _query(program, f"--query-gpu={fields}")
    if fault:
        return Gpus(fault=fault)
    programs, _ = _query(program, "--query-compute-apps=pid,process_name,used_memory")
    named = [f"{line[1]} (process {line[0]}, {line[2]} MiB)" for line in programs if len(line) == 3]
    return Gpus(tuple(_gpu(line) for line in lines if len(line) == 5), tuple(named))


def taken_memory(gpus: Gpus | None) -> Iterator[Finding]:
    """Whether other programs hold much of a GPU's memory."""
    for gpu in gpus.found if gpus is not None else ():
        if gpu.total and gpu.used > TAKEN * gpu.total:
            by = f": {', '.join(gpus.programs)}" if gpus is not None and gpus.programs else ""
            yield Finding(
                "GPU memory", f"other programs hold {_gib(gpu.used)} of {_gib(gpu.total)} GiB of "
                f"GPU {gpu.index}, {gpu.name}{by}", "note",
                "end them, name another GPU in CUDA_VISIBLE_DEVICES, or set "
                "XLA_PYTHON_CLIENT_PREALLOCATE=false", asdict(gpu),
            )  # fmt: skip


def jax_devices(
    answers: Answers, gpus: Gpus | None, environment: Mapping[str, str]
) -> Iterator[Finding]:
    """What JAX sees, what it does not see, and what it complains about."""
    answer = answers.get("devices")
    if answer is None:
        yield Finding("devices", "JAX was not asked, as no process could be started", "problem")
        return
    if "error" in answer:
        hint = _hidden(environment)
        yield Finding(
            "devices", f"JAX does not work ({answer['error']})", "problem",
            f"{f'{hint}; or ' if hint else ''}pip install --force-reinstall jax jaxlib",
        )  # fmt: skip
        return
    devices = answer["devices"]
    listed = ", ".join(
        device["kind"] + (f" with {device['memory'] / 2**30:.0f} GiB" if device["memory"] else "")
        for device in devices
    )
    yield Finding("devices", f"JAX {answer['jax']} computes on: {listed}", facts=answer)
    accelerated = any(device["platform"] != "cpu" for device in devices)
    if not accelerated:
        yield _why_no_gpu(gpus, environment, answer["messages"])
    elif answer["messages"]:
        yield Finding("devices", f"JAX complains: {'; '.join(answer['messages'])}", "note")


def _why_no_gpu(gpus: Gpus | None, environment: Mapping[str, str], messages: list[str]) -> Finding:
    said = f"; JAX says: {'; '.join(messages)}" if messages else ""
    if gpus is None:
        status = "note" if messages else "ok"
        return Finding("GPU", f"no NVIDIA driver is here, so that the CPU is used{said}", status)
    if not gpus.found:
        fault = gpus.fault or "nvidia-smi lists none"
        return Finding(
            "GPU", f"an NVIDIA driver is installed, and no GPU can be used ({fault})", "note",
            "see whether `nvidia-smi` works; a container must be given the GPUs",
        )  # fmt: skip
    here = ", ".join(f"{gpu.name} with {_gib(gpu.total)} GiB" for gpu in gpus.found)
    facts = {"gpus": [asdict(gpu) for gpu in gpus.found]}
    hidden = _hidden(environment)
    if hidden:
        return Finding(
            "GPU", f"{here} is here, and JAX is told not to use it", "note", hidden, facts
        )
    if lacking_of_extra("cuda"):
        text = f"{here} is here, and JAX lacks what it needs to use it"
        return Finding("GPU", text, "note", INSTALL_CUDA, facts)
    return Finding(
        "GPU", f"{here} is here, and JAX does not see it, although its plugin is installed{said}",
        "note", f"a driver that is too old ({gpus.found[0].driver}) must be updated; else install "
        f"the plugin anew: {INSTALL_CUDA} --force-reinstall", facts,
    )  # fmt: skip


def _hidden(environment: Mapping[str, str]) -> str:
    """What to do about an environment variable that hides GPUs from JAX."""
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
        value = environment.get(name, "")
        if value and not {"cuda", "gpu"} & set(value.split(",")):
            return f"unset {name}, which is {value}"
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return f"unset CUDA_VISIBLE_DEVICES, which is {visible.strip() or 'empty'}"
    return ""


def _query(program: str, what: str) -> tuple[list[list[str]], str]:
    """Rows of values, or why there are none."""
    command = [program, what, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return [], f"nvidia-smi does not answer within {_SECONDS} s"
    except OSError as error:
        return [], f"nvidia-smi cannot be started: {error.strerror or error}"
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())
        return [], f"nvidia-smi fails: {said[:200] or f'exit code {done.returncode}'}"
    lines = done.stdout.strip().splitlines()
    return [[value.strip() for value in line.split(",")] for line in lines], ""


def _gpu(values: list[str]) -> Gpu:
    index, name, total, used, driver = values
    return Gpu(int(index), name, _number(total), _number(used), driver)


def _number(text: str) -> float:
    """A number of the driver's; 0 for what it does not know, such as memory that is the host's."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _gib(mebibytes: float) -> str:
    return f"{mebibytes / 1024:.0f}"
