"""What the tests of real processes share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

STUBBORN = Path(__file__).with_name("stubborn.py")
ROOT = STUBBORN.parents[2]


def stubborn(habit: str, *arguments: object) -> list[str]:
    """The command line of a program with bad habits."""
    return [sys.executable, "-S", str(STUBBORN), habit, *map(str, arguments)]


def is_alive(pid: int) -> bool:
    """A zombie counts as dead: whose child it was must wait for it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], object], seconds: float = 10) -> bool:
    """Wait until a condition holds; False where it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def open_files() -> int:
    """How many file descriptors this process has."""
    return len(list(Path("/dev/fd").iterdir()))
