"""What an examination ends with, in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spectui.domain.failures.kinds import FailureClass, Remedy
from spectui.domain.failures.table import BY_NAME
from spectui.domain.text import clean

SHOWN = 300
"""Characters of a line that are shown."""

_WITH_REASON = frozenset({"draft-load-failed", "mmproj-failed"})
ECHOES = {
    "out-of-memory-gpu": ("gpu-error", "assertion", "out-of-memory-host"),
    "gpu-error": ("assertion",),
    "not-executable": ("permission-denied",),
    "out-of-memory-host": ("assertion",),
}
"""What is only an echo of a cause, and not shown beside it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What went wrong, why, and what to do.

    ``code`` is the class's stable name, ``what`` a sentence without full stop, ``line`` the log
    line that tells, harmless to print. ``exit`` is the exit status as it was given or found, None
    where it is not known. ``also`` names further classes that the log shows. ``fixes`` are the
    ways out that a key can apply (see ``fixes_for``), ``facts`` what the log told besides: flag,
    successor, file, context, trained (the context), draft_kind (of the file), layers, …
    """

    code: str
    what: str
    line: str
    exit: int | None
    advice: str
    also: tuple[str, ...] = ()
    fixes: tuple[Remedy, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def around(text: str, hit: re.Match[str]) -> str:
    """Return the line, or where it is long the part of it that tells."""
    if len(text) <= SHOWN:
        return text
    start = max(0, min(hit.start() - 40, len(text) - SHOWN))
    return ("…" if start else "") + text[start : start + SHOWN]


_UNSAID = {
    "library": "a library",
    "flag": "an option",
    "successor": "what `llama-server --help` names",
    "host": "its address",
    "port": "as given",
    "file": "of that name",
    "architecture": "of this file",
    "tensor": "a tensor",
    "kind": "right",
    "type": "the type",
    "context": "as many",
}


class _Words(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return _UNSAID.get(key, "it")


def worded(
    known: FailureClass, line: str, code: int | None, also: tuple[str, ...], facts: dict[str, str]
) -> Diagnosis:
    """Return the Diagnosis of ``known``, its sentences filled in with ``facts``."""
    words = _Words(facts)
    what = known.what.format_map(words)
    if known.name in _WITH_REASON and also and BY_NAME[also[0]].loading:
        what += f": {BY_NAME[also[0]].what.format_map(words)}"
    return Diagnosis(
        code=known.name,
        what=what,
        line=clean(line, limit=SHOWN + 2).strip(),
        exit=code,
        advice=known.advice.format_map(words),
        also=also,
        fixes=known.remedies,
        facts=tuple(sorted(facts.items())),
    )
