"""Findings as lines: how much each matters by sign and by word, the sentence, and the ways out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.text import clean
from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, wrap
from spectui.tui.render.document import Document

TONES: Mapping[Severity, str] = MappingProxyType(
    {
        Severity.BLOCKER: "bad",
        Severity.WARNING: "warn",
        Severity.HINT: "accent",
        Severity.GOOD: "good",
    }
)
WORDS: Mapping[Severity, str] = MappingProxyType(
    {
        Severity.BLOCKER: "blocker",
        Severity.WARNING: "warning",
        Severity.HINT: "hint",
        Severity.GOOD: "fine",
    }
)

_INDENT = 12
"""Cells before a sentence: the cursor's, the sign and the longest word."""


def head(severity: Severity, glyphs: Glyphs) -> Line:
    """Return ``✗ blocker``."""
    sign = {
        Severity.BLOCKER: glyphs.bad,
        Severity.WARNING: glyphs.warn,
        Severity.HINT: glyphs.hint,
        Severity.GOOD: glyphs.good,
    }[severity]
    return Line(f"{sign} {WORDS[severity]}", f"{TONES[severity]} bold")


def label(fix: Fix) -> str:
    """Return what a fix does, harmless and in one line."""
    return clean(fix.label, limit=120)


def write(
    document: Document, findings: Iterable[Finding], width: int, glyphs: Glyphs
) -> tuple[Fix, ...]:
    """Add findings to a document, each fix as a choice with its key; return these in order."""
    fixes: list[Fix] = []
    room = max(width - _INDENT - 1, 20)
    for finding in findings:
        title = Line("  ").extend(head(finding.severity, glyphs)).pad(_INDENT)
        for i, text in enumerate(wrap(clean(finding.what), room, 8)):
            document.add((title if i == 0 else Line(" " * _INDENT)).add(text, "text"))
        for text in wrap(clean(finding.advice), room, 6):
            document.add(Line(" " * _INDENT).add(text, "muted"))
        for fix in finding.fixes:
            key = document.next_key
            row = Line(" " * _INDENT).add(key, "accent bold").add(f" {label(fix)}", "accent")
            document.choice(row)
            fixes.append(fix)
    return tuple(fixes)
