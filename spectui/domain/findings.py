"""What is wrong, or might be, with a launch: a sentence, how much it matters, and ways out.

Used before a launch (preflight), after one that failed (failures), and while one runs (proof that
it speculates), so that every face shows all three alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters. ``GOOD`` is one that was looked at and is in order."""

    BLOCKER = "blocker"
    WARNING = "warning"
    HINT = "hint"
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the profile that one key applies.

    ``label`` is an order of a few words ("use a free port"). ``changes`` are pairs of a dotted key
    of the profile's TOML and its new value as TOML has it; None takes the key away.
    """

    label: str
    changes: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found. ``code`` is a stable name, ``what`` a sentence without full stop.

    ``advice`` says what to do where no ``fixes`` can be applied by a key, or besides them.
    """

    code: str
    severity: Severity
    what: str
    advice: str = ""
    fixes: tuple[Fix, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return it as plain values, alike in every report."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "what": self.what,
            "advice": self.advice,
            "fixes": [
                {"label": fix.label, "changes": [list(change) for change in fix.changes]}
                for fix in self.fixes
            ],
        }
