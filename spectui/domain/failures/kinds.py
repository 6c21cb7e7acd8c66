"""What one kind of failure is made of: its texts, exit statuses, sentence, advice, ways out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum


class Remedy(StrEnum):
    """A way out that one key can apply to a profile."""

    ANOTHER_PORT = "another-port"
    SMALLER_CONTEXT = "smaller-context"
    FEWER_LAYERS = "fewer-gpu-layers"
    DRAFT_ON_CPU = "draft-on-cpu"
    SMALLER_CACHE = "smaller-cache-types"
    PLAIN_CACHE = "plain-cache-types"
    TRANSLATED_FLAG = "translated-flag"
    REMOVED_FLAG = "remove-argument"
    NO_SPECULATION = "type-none"
    TYPE = "set-type"
    FROM_TEXT = "draft-from-text"
    DEFAULT_LENGTH = "default-length"
    NO_CUTOFF = "no-cutoff"
    NO_SYNTHETIC = "no-synthetic"
    NO_PROJECTOR = "no-projector"


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One kind of failure.

    ``name`` is stable. ``patterns`` are searched in the line in lower case. ``exits`` are the exit
    statuses that mean it where the log says nothing (negative: a signal). ``loading`` is for what
    a server that gets ready has overcome, ``first`` for what is said before anything else of a
    start. ``what`` and ``advice`` are filled in with the named groups of the pattern that matched.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...]
    what: str
    advice: str
    exits: tuple[int, ...] = ()
    loading: bool = False
    first: bool = False
    remedies: tuple[Remedy, ...] = field(default=())


def windows(*codes: int) -> tuple[int, ...]:
    """Return the exit statuses for codes of Windows, which come unsigned or as 32 bits signed."""
    return (*codes, *(code - (1 << 32) for code in codes))


_CAPITALS = re.compile(r"\\.|\(\?P|[A-Z]")


def patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns, compiled, for text in lower case (a tenth of IGNORECASE's time).

    Each is linear: whatever repeats is bounded.
    """

    def lower(found: re.Match[str]) -> str:
        word = found.group()
        return word if len(word) > 1 else word.lower()  # escapes and (?P keep their meaning

    return tuple(re.compile(_CAPITALS.sub(lower, text)) for text in texts)
