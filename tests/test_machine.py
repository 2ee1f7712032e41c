"""What the program may use of the machine, on systems that say it differently."""

import os
from pathlib import Path

import pytest

from windvane.errors import InputError
from windvane.machine import cache_folder, memory_bytes, usable_cores, use_compilation_cache


def test_a_process_may_have_fewer_cores_than_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert usable_cores() == 3


def test_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("WINDVANE_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(InputError, match="set WINDVANE_CACHE to a folder"):
        cache_folder()
    use_compilation_cache()


def test_a_container_allows_less(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory_bytes()
    if whole is None:
        pytest.skip("this system does not say how much memory there is")
    texts = {
        "/proc/self/cgroup": "0::/job/step\n4:cpu,memory:/box\n1:cpu:/box\nnonsense\n",
        "/sys/fs/cgroup/job/step/memory.max": "max\n",
        "/sys/fs/cgroup/job/memory.max": "1000000\n",
        "/sys/fs/cgroup/memory/box/memory.limit_in_bytes": "2000000\n",
        "/sys/fs/cgroup/box/memory.max": "7\n",
    }

    def read(path: Path) -> str:
        if str(path) not in texts:
            raise FileNotFoundError(path)
        return texts[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    assert memory_bytes() == 1_000_000
