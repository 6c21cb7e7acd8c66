"""The sentence a person came for."""

from __future__ import annotations

from rich.cells import cell_len

from spectui.domain.comparison import Tone
from spectui.domain.phases import Phase
from spectui.domain.text import clean
from spectui.tui.attached import phase_word
from spectui.tui.line import Line, shorten, wrap
from spectui.tui.reading import busy
from spectui.tui.widgets.panel import Panel

_ROOMY = 22
"""Rows from which on a banner fits beside all of the answer."""

_TONES = {
    Tone.GOOD: "good bold",
    Tone.BAD: "bad bold",
    Tone.NEUTRAL: "warn bold",
    Tone.WAITING: "text bold",
}


class AnswerPanel(Panel):
    """Is it faster, by how much, how sure? And if nothing runs any more, why."""

    def heading(self) -> Line:
        """Return the title."""
        return Line("answer", "muted bold")

    def rows(self, width: int) -> int:
        """Return 2, or more where the answer or what is under it needs two lines."""
        return len(self._said(width)) + max(len(self._below(width)), 1)

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the answer, and under it the reason of a failure, the tasks, or what to press."""
        del height
        answer = self.snapshot.answer
        tone = _TONES[answer.tone]
        sign = self.look.glyphs.tones[answer.tone]
        said = self._said(width)
        lines = [
            Line(f"{sign} " if i == 0 else "  ", tone).add(text, tone)
            for i, text in enumerate(said)
        ]
        return [*lines, *self._below(width)]

    def _said(self, width: int) -> list[str]:
        return wrap(clean(self.snapshot.answer.text), width - 2, 2)

    def _below(self, width: int) -> list[Line]:
        detail = self.snapshot.answer.detail
        if detail and self.snapshot.phase not in {Phase.FAILED, Phase.GONE}:
            # the domain puts three blanks between tasks: never break inside of one
            rows = _flow([clean(pair) for pair in detail.split("   ") if pair.strip()], width - 2)
            # on the smallest screens the banner takes the place of the second line
            tight = bool(self.snapshot.findings) and self.screen.size.height < _ROOMY
            return [Line("  ").add(row, "text") for row in rows[: 1 if tight else 2]]
        return [self._hint()]

    def _hint(self) -> Line:
        snapshot = self.snapshot
        if snapshot.attached is not None and snapshot.phase in {Phase.FAILED, Phase.GONE}:
            reason = clean(snapshot.reason, limit=300)
            word = phase_word(snapshot)
            return Line(f"{self.look.glyphs.bad} {word}: {reason}; spectui keeps trying", "bad")
        if snapshot.phase in {Phase.FAILED, Phase.GONE}:
            reason = clean(snapshot.reason, limit=300) or "the server gave no reason; see its log"
            word = "the server failed" if snapshot.phase is Phase.FAILED else "the server is gone"
            # the banner below says why, and what to do
            told = "" if snapshot.findings else f": {reason}"
            return Line(f"{self.look.glyphs.bad} {word}{told}", "bad").add(
                "  l log", "accent", "screen.log"
            )
        unfit = next((run.unverified for run in reversed(snapshot.runs) if run.unverified), "")
        if unfit and snapshot.baseline is None:
            return Line(f"{self.look.glyphs.warn} {unfit}: it cannot be compared with", "warn")
        if busy(snapshot):
            return Line("  ").add("the answer forms as prompts are answered in pairs", "muted")
        if snapshot.answer.tone is Tone.WAITING:
            return (
                Line("  press ", "muted")
                .add("m", "accent bold", "screen.measure")
                .add(" to measure the pending setting against the baseline", "muted")
            )
        return Line()


def _flow(pairs: list[str], width: int) -> list[str]:
    """Return the pairs three blanks apart in at most two lines."""
    rows: list[str] = []
    for pair in pairs:
        if rows and cell_len(rows[-1]) + 3 + cell_len(pair) <= width:
            rows[-1] += f"   {pair}"
        else:
            rows.append(pair)
    return [shorten(row, width) for row in rows[:2]]
