"""Decode speed over time."""

from __future__ import annotations

from spectui.domain.phases import ALIVE, UP, Phase
from spectui.domain.text import clean, duration
from spectui.tui.attached import away
from spectui.tui.line import Line, wrap
from spectui.tui.reading import baseline_tps, current, signs
from spectui.tui.render import speed
from spectui.tui.widgets.panel import Panel
from spectui.tui.words import speed as tok_s, trouble


class SpeedPanel(Panel):
    """The line is what is in flight; a sign is a finished request, of the arm that has the sign."""

    def heading(self) -> Line:
        """Return the title, with what is wrong with the source."""
        line = Line("decode speed, tok/s", "muted bold")
        wrong = trouble(self.snapshot, "metrics") or trouble(self.snapshot, "slots")
        if wrong:
            line.add(f"  {self.look.glyphs.warn} {wrong}", "warn")
        return line

    def caption(self) -> Line:
        """Return ``now 71.3 · settled 68.9 tok/s``."""
        snapshot = self.snapshot
        line = Line()
        if snapshot.in_flight is not None:
            now = snapshot.in_flight.tps or snapshot.in_flight.so_far
            if now is not None:
                line.add("now ", "muted").add(tok_s(now), "text bold").add(" · ", "muted")
            else:
                line.add("reading the prompt · ", "muted")
        elif snapshot.attached is not None and snapshot.attached.tps is not None:
            line.add("now ", "muted").add(tok_s(snapshot.attached.tps), "text bold")
            line.add(" · ", "muted")
        run = current(snapshot)
        summary = snapshot.summaries.get(run.number) if run else None
        if run and summary and summary.decode_tps is not None:
            sign = signs(snapshot.runs, self.look.glyphs)[run.number]
            line.add(f"{sign.glyph} ", sign.tone).add("settled ", "muted")
            line.add(tok_s(summary.decode_tps), "text bold").add(" tok/s", "muted")
        return line

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the chart, or what to do to get one."""
        snapshot = self.snapshot
        chart = speed.Chart(
            now=snapshot.chart_at,
            flight=snapshot.speed,
            settled=snapshot.settled,
            marks=snapshot.marks,
            signs=signs(snapshot.runs, self.look.glyphs),
            baseline=baseline_tps(snapshot),
        )
        return speed.draw(chart, width, height, self.look.glyphs) or self._empty(width)

    def _empty(self, width: int) -> list[Line]:
        snapshot = self.snapshot
        phase = snapshot.phase
        if snapshot.attached is not None:
            return away(snapshot, self.look, width)
        measure = Line("m", "accent bold", "screen.measure")
        if phase in {Phase.FAILED, Phase.GONE}:
            reason = clean(snapshot.reason, limit=200) or "see the log"
            word = "failed" if phase is Phase.FAILED else "is gone"
            told = "" if snapshot.findings else f": {reason}"
            said = wrap(f"{self.look.glyphs.bad} the server {word}{told}", width, 4)
            log = Line("l", "accent bold", "screen.log").add(" shows its log, ", "muted")
            start = Line("s", "accent bold", "screen.server").add(" starts it again", "muted")
            return [Line(), *(Line(text, "bad") for text in said), log.extend(start)]
        if phase in UP:
            what = Line("nothing has been decoded yet", "muted")
            return [Line(), what, measure.add(" measures the pending setting", "muted")]
        if phase in ALIVE:
            since = duration(snapshot.at - snapshot.phase_since)
            return [Line(), Line(f"the server is {phase}, for {since}", "muted")]
        measure.add(" starts one and measures, ", "muted")
        start = Line("s", "accent bold", "screen.server").add(" only starts it", "muted")
        return [Line(), Line("no server is running", "muted"), measure.extend(start)]
