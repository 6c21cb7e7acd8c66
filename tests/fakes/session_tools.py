"""What tests of a Session need beside one: waiting, and looking at processes."""

from __future__ import annotations

import time

import psutil

from spectui.domain.speculation import Speculation


def simple(n_max, **knobs):
    return Speculation.of("draft-simple", {"n_max": n_max, **knobs})


def until(condition, seconds=15.0):
    """Wait until ``condition()`` is true and return what it returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def started_with(home: object) -> list[psutil.Process]:
    """Return the living processes of a spectui whose home is ``home``, servers included."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
