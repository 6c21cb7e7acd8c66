"""Acceptance by draft position."""

from __future__ import annotations

from textual.reactive import var

from spectui.domain.text import clean
from spectui.tui.line import Line
from spectui.tui.reading import Curve, current, curves
from spectui.tui.render import decay
from spectui.tui.widgets.panel import Panel
from spectui.tui.words import percent, trouble


class DecayPanel(Panel):
    """The current arm over the one before, and over one that was chosen."""

    against: var[int | None] = var[int | None](None, init=False)
    conditional: var[bool] = var[bool](default=False, init=False)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own name
        """Start without a curve."""
        super().__init__(id=id)
        self._drawn: tuple[object, list[Line]] = (None, [])

    def watch_against(self) -> None:
        """Draw the other curve."""
        self.redraw()

    def watch_conditional(self) -> None:
        """Draw the other kind."""
        self.redraw()

    def _curves(self) -> tuple[Curve, ...]:
        return curves(self.snapshot, self.look.glyphs, self.against, conditional=self.conditional)

    def heading(self) -> Line:
        """Return the title, with what is wrong with the source."""
        line = Line("acceptance by position", "muted bold")
        wrong = trouble(self.snapshot, "metrics")
        if wrong:
            line.add(f"  {self.look.glyphs.warn} {wrong}", "warn")
        return line

    def caption(self) -> Line:
        """Return ``rate 63 % · mean length 3.5 · unconditional`` of the current arm."""
        shown = self._curves()
        if not shown:
            return Line()
        acceptance = self.snapshot.summaries[shown[0].run].acceptance
        line = Line(f"{shown[0].sign.glyph} ", shown[0].sign.tone).add("rate ", "muted")
        line.add(percent(acceptance.rate), "text bold").add(" · mean length ", "muted")
        line.add(f"{acceptance.mean_length or 1:.1f}", "text bold")
        kind = "conditional" if self.conditional else "unconditional"
        return line.add(f" · {kind}", "muted")

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the chart, or why there is none. A chart of equal content is not drawn again."""
        shown = self._curves()
        if not shown:
            return self._empty()
        key = (shown, width, height, self.look)
        if self._drawn[0] != key:
            self._drawn = (key, decay.draw(shown, width, height, self.look))
        return [Line().extend(line) for line in self._drawn[1]]

    def _empty(self) -> list[Line]:
        run = current(self.snapshot)
        attached = self.snapshot.attached
        if attached is not None:
            lost = next((text for text in attached.missing if "acceptance" in text), "")
            said = lost or "counted when a request has ended that was drafted for"
            return [Line(), Line(clean(said, limit=200), "warn" if lost else "muted")]
        press = Line("m", "accent bold", "screen.measure").add(
            " measures the pending setting", "muted"
        )
        if run is None:
            return [Line(), Line("nothing measured yet", "muted"), press]
        if run.ended is None:
            why = (
                "the baseline is being measured: it drafts nothing"
                if run.arm.is_baseline
                else "counted when the first request has ended"
            )
            return [Line(), Line(why, "muted")]
        if run.arm.is_baseline:
            return [Line(), Line("the baseline drafts nothing", "muted"), press]
        return [
            Line(),
            Line(
                f"{self.look.glyphs.warn} the server gives no counts by position"
                if run.drafted
                else f"{self.look.glyphs.warn} nothing was drafted",
                "warn",
            ),
            Line("t", "accent bold", "screen.choose_type").add(" chooses another type", "muted"),
        ]
