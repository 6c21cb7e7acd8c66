"""Why a server ended, in one line: its exit status and the line of its log that tells most."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

_STAMPED = re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} ([A-Z]) ")
_TELLING = re.compile(
    r"error while handling argument|invalid argument|error while loading shared libraries"
    r"|GGML_ASSERT|out of memory|^error:",
    re.IGNORECASE,
)
# these repeat or warn; the cause stands elsewhere
_ECHOES = re.compile(
    r"common_fit_params: encountered an error|failed to measure the memory of the extra model"
)


def telling_line(log: Sequence[str]) -> str:
    """Return the first line of ``log`` that says what went wrong, else its last, else nothing."""
    for line in log:
        stamp = _STAMPED.match(line)
        wrong = (stamp and stamp.group(1) == "E") or (not stamp and _TELLING.search(line))
        if wrong and not _ECHOES.search(line):
            return _STAMPED.sub("", line).strip()
    return next((_STAMPED.sub("", line).strip() for line in reversed(log) if line.strip()), "")


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
