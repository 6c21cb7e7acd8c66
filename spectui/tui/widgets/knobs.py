"""The knobs: what runs, what is pending, and whether a server would take it."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from textual import events
from textual.reactive import var

from spectui.domain.speculation import Knob, Number, Speculation
from spectui.domain.text import clean
from spectui.tui import attached
from spectui.tui.line import Line, wrap
from spectui.tui.pending import Pending
from spectui.tui.reading import busy
from spectui.tui.widgets.panel import Panel
from spectui.tui.words import number

ARROWS: Final = 23
"""Where the arrows stand, so that they stay put while the value changes."""

ROOM: Final = 18
"""Up to this many cells the running and the pending value stand side by side."""

FLAT: Final = 4
"""Up to this many lines the knobs stand side by side."""


class Knobs(Panel, can_focus=True):
    """One row per knob; on a small terminal all in one."""

    pending: var[Pending] = var(Pending(), init=False)
    problems: var[tuple[tuple[str, str], ...]] = var[tuple[tuple[str, str], ...]]((), init=False)

    def watch_pending(self) -> None:
        """Draw what was turned."""
        self.redraw()

    def watch_problems(self) -> None:
        """Draw what is wrong."""
        self.redraw()

    @property
    def _live(self) -> Speculation | None:
        return self.snapshot.running.speculation if self.snapshot.running else None

    @property
    def _changed(self) -> bool:
        return self._live is None or not self._live.same_as(self.pending.speculation)

    @property
    def _queued(self) -> bool:
        """Whether the pending setting is on its way: the baseline is measured before it."""
        wanted = self.snapshot.speculation.same_as(self.pending.speculation)
        return self._changed and wanted and busy(self.snapshot)

    def heading(self) -> Line:
        """Return the title, with whether this is what runs."""
        line = Line("knobs", "muted bold")
        if self.snapshot.attached is not None:
            return line.add("  only watched", "muted")
        if self._queued:
            return line.add(f"  {self.look.glyphs.arrow} next", "muted")
        if self._live is None:
            return line.add("  nothing is running", "muted")
        if self._changed:
            return line.add(f"  {self.look.glyphs.pending} pending", "pending bold")
        return line.add(f"  {self.look.glyphs.good} as running", "good")

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the rows, a word on the chosen knob or what is wrong, and the button."""
        if self.snapshot.attached is not None:
            return attached.knobs(self.snapshot, self.look, width, height)
        if height <= FLAT:
            return self._flat(width, height)
        knobs = self.pending.speculation.knobs
        lines = [self._type(), *(self._knob(i, knob) for i, knob in enumerate(knobs, 1))]
        lines.append(Line())
        said, tone = self._said()
        room = height - len(lines) - 1
        lines += [Line(text, tone) for text in wrap(said, width, max(room, 1))]
        lines += [Line()] * (height - len(lines) - 1)
        return [*lines[: height - 1], self._buttons()]

    def _type(self) -> Line:
        chosen = self.pending.row == 0
        line = self._head(0, "type")
        self._value(line, None, chosen=chosen)
        return line.pad(ARROWS).add("  ").add("t", "accent bold", "screen.choose_type")

    def _knob(self, row: int, knob: Knob) -> Line:
        chosen = self.pending.row == row
        line = self._head(row, self.pending.speculation.label(knob))
        self._value(line, knob, chosen=chosen)
        if chosen:
            line.pad(ARROWS).add(" ").extend(self._arrows())
        return line

    def _head(self, row: int, label: str) -> Line:
        chosen = self.pending.row == row
        sign = self.look.glyphs.cursor if chosen else " "
        click = f"screen.choose({row})"
        return Line(f"{sign} ", "accent bold", click).add(
            f"{label:9}", "text bold" if chosen else "muted", click
        )

    def _value(self, line: Line, knob: Knob | None, *, chosen: bool) -> None:
        """Add ``4``, or ``4 → 6`` where something else is pending than what runs."""
        now, wanted = self._values(knob)
        bad = any(key == (knob.key if knob else "type") for key, _ in self.problems)
        click = f"screen.choose({self._row(knob)})"
        if now == wanted and not bad and (not chosen or self.pending.typed is None):
            line.add(wanted, "text bold" if chosen else "text", click)
            return
        tone = "bad bold" if bad or (chosen and self.pending.problem) else "pending bold"
        if now and now != wanted:
            if cell_len(now) + cell_len(wanted) <= ROOM:
                line.add(now, "muted", click).add(" ")
            line.add(f"{self.look.glyphs.arrow} ", tone, click)
        if chosen and self.pending.typed is not None:
            line.add(self.pending.typed, f"{tone} underline", click).add("_", tone, click)
        else:
            line.add(wanted, tone, click)
        if bad:
            line.add(f" {self.look.glyphs.bad}", tone, click)

    def _values(self, knob: Knob | None) -> tuple[str, str]:
        """Return (running, pending) as text; running is empty where it has no such knob."""
        running, wanted = self._live, self.pending.speculation
        if knob is None:
            return (wanted if running is None else running).type, wanted.type
        pending = _show(knob, wanted.value(knob))
        if running is None:
            return pending, pending
        if running.type != wanted.type and knob not in running.knobs:
            return "", pending
        return _show(knob, running.value(knob)), pending

    def _row(self, knob: Knob | None) -> int:
        return 0 if knob is None else self.pending.speculation.knobs.index(knob) + 1

    def _arrows(self) -> Line:
        glyphs = self.look.glyphs
        return (
            Line(f" {glyphs.left} ", "accent reverse", "screen.step(-1)")
            .add(" ")
            .add(f" {glyphs.right} ", "accent reverse", "screen.step(1)")
        )

    def _said(self) -> tuple[str, str]:
        """Return the sentence under the knobs: what is wrong, or what the chosen one does."""
        bad = self.look.glyphs.bad
        if self.pending.problem:
            return f"{bad} {self.pending.problem}", "bad"
        if self.problems:
            return f"{bad} {clean(self.problems[0][1], limit=200)}", "bad"
        knob, wanted = self.pending.knob, self.pending.speculation
        if knob is not None:
            return f"{_show(knob, knob.low)}–{_show(knob, knob.high)}: {knob.help}", "muted"
        if wanted.is_off:
            return "nothing drafts: this is the baseline; t chooses a type", "muted"
        if self._live is not None and self._live.type != wanted.type:
            return f"{self._live.type} is running; {wanted.summary}", "muted"
        drafts = "" if self.snapshot.has_draft else "; without a draft model some types are out"
        return f"{wanted.summary}{drafts}", "muted"

    def _buttons(self) -> Line:
        blocked = bool(self.problems or self.pending.problem)
        line = Line()
        if self._queued:
            return line.add(" comes after the baseline", "muted")
        if blocked:
            line.add(" a refused: not valid ", "faint reverse", "screen.apply")
        elif self.pending.speculation.is_off:
            line.add(" a measure the baseline ", "accent reverse", "screen.apply")
        elif self._changed:
            line.add(" a apply and measure ", "pending bold reverse", "screen.apply")
        else:
            line.add(" a measure again ", "accent reverse", "screen.apply")
        if self._changed and self._live is not None:
            line.add("  ").add("z", "accent bold", "screen.revert")
            line.add(" undo", "muted", "screen.revert")
        return line

    def _flat(self, width: int, height: int) -> list[Line]:
        """Return everything in two or three lines."""
        line = Line()
        self._head_flat(line, 0, "type" if width >= 70 else "")
        self._value(line, None, chosen=self.pending.row == 0)
        for row, knob in enumerate(self.pending.speculation.knobs, 1):
            line.add("  ")
            self._head_flat(line, row, self.pending.speculation.label(knob))
            self._value(line, knob, chosen=self.pending.row == row)
            if self.pending.row == row:
                line.add(" ").extend(self._arrows())
        said, tone = self._said()
        buttons = self._buttons()
        if height < 3:
            room = width - buttons.width - 2
            return [line, Line().extend(Line(said, tone).fit(room)).right(buttons, width)]
        return [line, Line(said, tone), buttons]

    def _head_flat(self, line: Line, row: int, label: str) -> None:
        chosen = self.pending.row == row
        click = f"screen.choose({row})"
        line.add(self.look.glyphs.cursor if chosen else " ", "accent bold", click)
        if label:
            line.add(f"{label} ", "text bold" if chosen else "muted", click)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Turn the chosen knob up."""
        event.stop()
        self.app.call_later(self.screen.run_action, "step(1)")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Turn the chosen knob down."""
        event.stop()
        self.app.call_later(self.screen.run_action, "step(-1)")


def _show(knob: Knob, value: Number) -> str:
    return number(value) if knob.integral else number(float(value))
