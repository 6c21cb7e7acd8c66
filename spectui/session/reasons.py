"""Why a server ended, in one line: its exit status and the line of its log that tells most."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from spectui.domain.failures import diagnose, fixes_for
from spectui.domain.failures.lines import read_line
from spectui.domain.findings import Finding, Severity
from spectui.domain.profile import Profile, to_mapping


def telling_line(log: Sequence[str]) -> str:
    """Return the line of ``log`` that says what went wrong, else its last, else nothing."""
    found = diagnose(log)
    if found is not None:
        return found.line
    return next((text for line in reversed(log) if (text := read_line(line).text)), "")


def verdict(log: Sequence[str], code: int | None, profile: Profile) -> Finding | None:
    """Return what a log and an exit status say is wrong, with fixes of ``profile``; None: nothing.

    ``code`` None: the server runs.
    """
    found = diagnose(log, code)
    if found is None:
        return None
    fixes = fixes_for(found, to_mapping(profile))
    return Finding(found.code, Severity.BLOCKER, found.what, found.advice, fixes)


def how_it_ended(code: int) -> str:
    """Return an exit status in words; negative codes are signals."""
    if code >= 0:
        return f"exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (often the kernel, out of memory)" if name == "SIGKILL" else ""
    return f"ended by {name}{hint}"
