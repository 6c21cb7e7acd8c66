"""Preflight as a screen: the five questions, where the memory goes, and what would go wrong."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from spectui.domain.findings import Fix, Severity
from spectui.domain.preflight import Preflight, Question, Reply
from spectui.domain.text import clean
from spectui.tui.line import Line, wrap
from spectui.tui.look import Look
from spectui.tui.render import findings, memory
from spectui.tui.render.document import Document
from spectui.tui.screens.looking import Looking

_QUESTION = 38
"""Cells of the longest question, and two more."""
_BESIDE = 90
"""From this width on the answer stands beside the question."""


class Checkup(Looking[Preflight]):
    """What a launch would meet. A fix is applied by its digit, and then all is checked again."""

    title_text = "checkup"
    doing = "checking the profile, its files, the engine and this machine"
    keys_text = "digits or enter apply a fix · k checks again · escape goes back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "again", "check again", id="checkup.again"),
    ]

    _fixes: tuple[Fix, ...] = ()

    def document(self, found: Preflight, width: int, look: Look) -> Document:
        """Return the verdict and what would fail, the questions, the memory, and the rest."""
        document = Document()
        document.add(_verdict(found, look))
        if found.blockers:
            document.add(Line())
        fixes = findings.write(document, found.blockers, width, look.glyphs)
        if found.questions:
            document.add(Line(), _title("five questions"))
            for question in found.questions:
                document.add(*_answered(question, width, look))
        if found.fit is not None:
            document.add(Line(), _title("memory, by an estimate"))
            document.add(
                *(
                    Line("  ").extend(line)
                    for line in memory.draw(found.fit, max(width - 4, 10), look.glyphs)
                )
            )
        rest = [finding for finding in found.findings if finding not in found.blockers]
        if rest:
            document.add(Line(), _title("what else was found"))
            fixes += findings.write(document, rest, width, look.glyphs)
        self._fixes = fixes
        return document

    def chosen(self, number: int) -> None:
        """Apply the fix."""
        if number < len(self._fixes):
            self.apply(self._fixes[number])


def _title(text: str) -> Line:
    return Line(text, "muted bold")


def _verdict(found: Preflight, look: Look) -> Line:
    severities = {finding.severity for finding in found.findings}
    glyphs = look.glyphs
    if Severity.BLOCKER in severities:
        return Line(f"{glyphs.bad} {found.verdict}", "bad bold")
    if Severity.WARNING in severities:
        return Line(f"{glyphs.warn} {found.verdict}", "warn bold")
    return Line(f"{glyphs.good} {found.verdict}", "good bold")


def _answered(question: Question, width: int, look: Look) -> list[Line]:
    """Return ``✓ yes  Does it all fit on the GPU?  about 5.10 GiB of 23.1 GiB free``."""
    glyphs = look.glyphs
    sign, tone = {
        Reply.YES: (glyphs.good, "good"),
        Reply.NO: (glyphs.bad, "warn"),
        Reply.UNKNOWN: ("?", "muted"),
    }[question.answer]
    head = Line("  ").add(f"{sign} {question.answer}", f"{tone} bold").pad(13)
    asked = clean(question.question, limit=80)
    said = clean(question.why)
    if width < _BESIDE:
        rows = [Line(" " * 13).add(text, "muted") for text in wrap(said, width - 14, 4)]
        return [head.add(asked, "text"), *rows]
    head.add(asked, "text").pad(13 + _QUESTION)
    whys = wrap(said, width - 14 - _QUESTION, 4) or [""]
    return [
        head.add(whys[0], "muted"),
        *(Line(" " * (13 + _QUESTION)).add(text, "muted") for text in whys[1:]),
    ]
