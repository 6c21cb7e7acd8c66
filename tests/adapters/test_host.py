"""The machine and a process tree, as the host reader sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spectui.adapters import host as module
from spectui.adapters.host import CHILDREN_EVERY, PsutilHost

MIB = 1 << 20


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def process(code: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python code that prints a line when it is ready and ends when its stdin does."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout
        child.stdout.readline()
        yield child
    finally:
        child.communicate()


BIG = "x = b'x' * (40 << 20)"
PARENT = f"""
import subprocess, sys
code = {BIG + "; print(flush=True); input()"!r}
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
child.stdout.close()
"""


def plain(clock: Callable[[], float] = time.monotonic) -> PsutilHost:
    return PsutilHost(clock, own=Path("/nowhere/at/all"))


def test_the_machine_without_a_server() -> None:
    read = plain().read(None)
    assert 0 <= read.cpu <= 100
    assert 0 < read.memory_used < read.memory_total
    assert read.memory_total == psutil.virtual_memory().total
    assert read.cores == psutil.cpu_count()
    assert read.server_memory is None
    assert read.server_cpu is None


def test_a_reading_does_not_wait() -> None:
    reader = plain()
    began = time.perf_counter()
    reader.read(os.getpid())
    reader.read(os.getpid())
    assert time.perf_counter() - began < 1


def test_memory_counts_the_children() -> None:
    with process(PARENT) as parent:
        read = plain().read(parent.pid)
    assert read.server_memory
    assert read.server_memory > 40 * MIB + 2 * MIB


def test_cpu_of_the_server_is_known_from_the_second_reading_on() -> None:
    reader = plain()
    first = reader.read(os.getpid())
    end = time.perf_counter() + 0.15
    while time.perf_counter() < end:
        pass
    second = reader.read(os.getpid())
    assert first.server_cpu is None
    assert second.server_cpu
    assert second.server_cpu > 0


def test_another_server_starts_afresh() -> None:
    reader = plain()
    reader.read(os.getpid())
    with process("") as child:
        read = reader.read(child.pid)
    assert read.server_cpu is None
    assert read.server_memory
    assert reader.read(None).server_memory is None


def test_a_vanished_server_reads_as_none() -> None:
    reader = plain()
    with process("") as child:
        assert reader.read(child.pid).server_memory
        pid = child.pid
    read = reader.read(pid)
    assert (read.server_memory, read.server_cpu) == (None, None)
    assert plain().read(pid).server_memory is None


def test_a_server_that_waits_to_be_reaped_reads_as_none() -> None:
    reader = plain()
    with process("") as child:
        reader.read(child.pid)
        child.kill()
        end = time.monotonic() + 5
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
        assert reader.read(child.pid).server_memory is None
        assert plain().read(child.pid).server_memory is None


def test_a_vanished_child_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with process(PARENT) as parent:
        reader = plain()
        before = reader.read(parent.pid)
        for child in psutil.Process(parent.pid).children():
            child.kill()
            end = time.monotonic() + 5
            while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < end
        after = reader.read(parent.pid)
    assert before.server_memory
    assert after.server_memory
    assert before.server_memory - after.server_memory > 30 * MIB


def test_the_process_table_is_walked_every_few_seconds_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks = []
    children = psutil.Process.children

    def counted(self: psutil.Process, **options: Any) -> list[psutil.Process]:
        walks.append(self.pid)
        return children(self, **options)

    monkeypatch.setattr(psutil.Process, "children", counted)
    clock = Clock()
    reader = plain(clock)
    for _ in range(5):
        reader.read(os.getpid())
        clock.now += CHILDREN_EVERY / 5
    assert len(walks) == 1
    reader.read(os.getpid())
    assert len(walks) == 2


def test_cpu_goes_on_across_a_new_walk() -> None:
    clock = Clock()
    reader = plain(clock)
    reader.read(os.getpid())
    end = time.perf_counter() + 0.15
    while time.perf_counter() < end:
        pass
    clock.now += CHILDREN_EVERY
    assert reader.read(os.getpid()).server_cpu


def group(folder: Path, limit: str, current: int = 0, cached: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cached}\nfile 2\n")


@pytest.fixture
def big_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SimpleNamespace(total=64000 * MIB, available=60000 * MIB)
    monkeypatch.setattr(module.psutil, "virtual_memory", lambda: memory)


@pytest.mark.usefixtures("big_machine")
def test_the_lowest_limit_around_a_container_counts(tmp_path: Path) -> None:
    group(tmp_path / "a" / "b", "max", 1)
    group(tmp_path / "a", str(2000 * MIB), 900 * MIB, 300 * MIB)
    group(tmp_path, str(8000 * MIB), 5000 * MIB)
    own = tmp_path / "own"
    own.write_text("4:memory:/old\n0::/a/b\n")
    read = PsutilHost(groups=tmp_path, own=own).read(None)
    assert (read.memory_used, read.memory_total) == (600 * MIB, 2000 * MIB)


@pytest.mark.usefixtures("big_machine")
@pytest.mark.parametrize("limit", ["max", str(99000 * MIB), "junk"])
def test_no_limit_below_the_machines_memory_leaves_the_machine(tmp_path: Path, limit: str) -> None:
    group(tmp_path, limit, 1)
    own = tmp_path / "own"
    own.write_text("0::/\n")
    read = PsutilHost(groups=tmp_path, own=own).read(None)
    assert (read.memory_used, read.memory_total) == (4000 * MIB, 64000 * MIB)


@pytest.mark.usefixtures("big_machine")
def test_half_a_control_group_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000")
    own = tmp_path / "own"
    own.write_text("0::/\n")
    assert PsutilHost(groups=tmp_path, own=own).read(None).memory_total == 64000 * MIB
