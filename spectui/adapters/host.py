"""The machine's CPU and memory, and those of one process with its children.

Read once a second, so nothing here walks the table of processes more often than every few seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from spectui.domain.samples import Host

CHILDREN_EVERY = 5.0
"""Seconds for which a list of children is good: finding them reads the whole process table."""


class PsutilHost:
    """Reads the machine, and one process tree at a time. Never blocks on a measurement.

    ``groups`` is where the files of Linux's control groups lie, ``own`` the file that names those
    of this process.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        groups: Path = Path("/sys/fs/cgroup"),
        own: Path = Path("/proc/self/cgroup"),
    ) -> None:
        self._clock = clock
        self._cgroups = tuple(_limited(groups, own))
        self._tree: list[psutil.Process] = []
        self._tree_pid: int | None = None
        self._tree_at = 0.0
        # CPU use is a difference of two readings: this is the first
        psutil.cpu_percent()

    def read(self, pid: int | None) -> Host:
        """Return CPU and memory use, and those of ``pid`` with its children.

        CPU use is over the time since the reading before; ``server_cpu`` is None at the first
        reading of a pid. In a container with a memory limit below the machine's memory, the
        limit and what counts against it are told. Raises OSError where the machine tells nothing.
        """
        memory = psutil.virtual_memory()
        used, total = memory.total - memory.available, memory.total
        for group in self._cgroups:
            limited = _group_memory(group)
            if limited and limited[1] < total:
                used, total = limited
        server_memory, server_cpu = self._server(pid)
        return Host(
            cpu=psutil.cpu_percent(),
            memory_used=used,
            memory_total=total,
            cores=psutil.cpu_count() or 1,
            server_memory=server_memory,
            server_cpu=server_cpu,
        )

    def _server(self, pid: int | None) -> tuple[int | None, float | None]:
        """Return resident bytes and CPU use of the tree; (None, None) without a living process.

        Pages that processes share are counted for each of them.
        """
        new = pid != self._tree_pid
        if new or self._clock() - self._tree_at >= CHILDREN_EVERY:
            self._find_tree(pid)
        memory, cpu = 0, 0.0
        for process in self._tree:
            try:
                with process.oneshot():
                    resident = process.memory_info().rss
                    cpu += process.cpu_percent()
            except psutil.Error:
                resident = 0
            if process.pid == pid and not resident:  # it is gone, or waits to be reaped
                self._tree = []
            memory += resident
        if not self._tree:
            return None, None
        return memory, None if new else cpu

    def _find_tree(self, pid: int | None) -> None:
        known = {process: process for process in self._tree}
        self._tree, self._tree_pid, self._tree_at = [], pid, self._clock()
        if pid is None:
            return
        try:
            top = psutil.Process(pid)
            if top.status() == psutil.STATUS_ZOMBIE:
                return
            found = [top, *top.children(recursive=True)]
        except psutil.Error:
            return
        # a Process remembers its last CPU times: keep those that are known
        self._tree = [known.get(process, process) for process in found]


def _limited(root: Path, own: Path) -> Iterator[Path]:
    """Yield the control groups (version 2) of this process, its own and those around it."""
    try:
        lines = own.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None:
        return
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        if (folder / "memory.max").exists():
            yield folder
        if folder == root:
            return


def _group_memory(group: Path) -> tuple[int, int] | None:
    """Return (used, limit) of a control group in bytes, None where it has no limit.

    Cached files that can be dropped at once don't count as used.
    """
    try:
        limit = (group / "memory.max").read_text().strip()
        if not limit.isdecimal():
            return None
        current = int((group / "memory.current").read_text())
        stat = (group / "memory.stat").read_text()
    except (OSError, ValueError):
        return None
    cached = next(
        (int(line.split()[1]) for line in stat.splitlines() if line.startswith("inactive_file ")), 0
    )
    return max(0, current - cached), int(limit)
