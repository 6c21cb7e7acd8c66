"""The knobs: what runs, what is pending, and whether a server would take it."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from textual import events
from textual.reactive import var

from spectui.domain.speculation import Knob, Number, Speculation
from spectui.domain.text import clean
from spectui.tui import attached
from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, wrap
from spectui.tui.pending import Pending, silent, together
from spectui.tui.reading import busy
from spectui.tui.widgets.panel import Panel
from spectui.tui.words import number, plural

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
        if self.snapshot.attached is not None:
            return Line("server", "muted bold").add("  only watched", "muted")
        line = Line("knobs", "muted bold")
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
        lines, at = self._rows_of_all()
        said, tone = self._said()
        told = [Line(text, tone) for text in wrap(said, width, 4)]
        room = height - 1  # the button's line
        if len(lines) + len(told) >= room:
            told = told[: max(room - len(lines), 2)]
            lines = window(lines, at, room - len(told), self.look.glyphs)
        else:
            told.insert(0, Line())
        lines += told
        lines += self._silent(width, room - len(lines))
        lines += [Line()] * (room - len(lines))
        return [*lines, self._buttons()]

    def _rows_of_all(self) -> tuple[list[Line], int]:
        """Return the type's row and all knobs', by type where there are several; and the chosen."""
        wanted = self.pending.speculation
        lines, at = [self._type()], 0
        row = 0
        for kind in wanted.kinds:
            if len(wanted.kinds) > 1:
                lines.append(Line(f"  {kind.id}", "muted bold"))
                if not kind.knobs:
                    lines.append(Line(f"    {kind.fixed_length} tokens, no knob acts", "muted"))
            for knob in kind.knobs:
                row += 1
                if row == self.pending.row:
                    at = len(lines)
                lines.append(self._knob(row, knob))
        return lines, at

    def _silent(self, width: int, room: int) -> list[Line]:
        """Return why knobs that one may miss are not there, as far as there is room."""
        lines: list[Line] = []
        for text in silent(self.pending.speculation):
            more = [Line(row, "muted") for row in wrap(text, width, 3)]
            if len(lines) + len(more) + 1 > room:
                break
            lines += more
        return [Line(), *lines] if lines else []

    def _type(self) -> Line:
        chosen = self.pending.row == 0
        line = self._head(0, "type")
        self._value(line, None, chosen=chosen)
        return line.pad(ARROWS).add("  ").add("t", "accent bold", "screen.choose_type")

    def _knob(self, row: int, knob: Knob) -> Line:
        chosen = self.pending.row == row
        # under the name of their type, two knobs of one name are told apart already
        line = self._head(row, knob.label)
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
        changed = now != wanted
        if knob is None and self._live is not None:  # there may be as many types, and others
            changed = self._live.type != self.pending.speculation.type
        bad = any(key == (knob.key if knob else "type") for key, _ in self.problems)
        click = f"screen.choose({self._row(knob)})"
        if not changed and not bad and (not chosen or self.pending.typed is None):
            line.add(wanted, "text bold" if chosen else "text", click)
            return
        tone = "bad bold" if bad or (chosen and self.pending.problem) else "pending bold"
        if now and changed:
            if now != wanted and cell_len(now) + cell_len(wanted) <= ROOM:
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
            return _kinds(wanted if running is None else running), _kinds(wanted)
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
        if len(wanted.kinds) > 1:
            return f"asked in this order: {together(wanted)}", "muted"
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
        first = Line()
        self._head_flat(first, 0, "type" if width >= 70 else "")
        self._value(first, None, chosen=self.pending.row == 0)
        items = [first]
        for row, knob in enumerate(self.pending.speculation.knobs, 1):
            item = Line()
            self._head_flat(item, row, self.pending.speculation.label(knob))
            self._value(item, knob, chosen=self.pending.row == row)
            if self.pending.row == row:
                item.add(" ").extend(self._arrows())
            items.append(item)
        line = in_one(items, self.pending.row, width, self.look.glyphs)
        said, tone = self._said()
        if self.pending.row == 0 and not self.problems:
            # the only place for it where there is one line
            said = "; ".join([said, *silent(self.pending.speculation)[:1]])
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


def window(lines: list[Line], at: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return ``height`` of the lines, the one at ``at`` among them; the ends count the others."""
    if len(lines) <= height or height < 1:
        return lines
    first = min(max(at - height // 2, 0), len(lines) - height)
    shown = lines[first : first + height]
    below = len(lines) - first - height
    if height >= 3:
        if first:
            shown[0] = Line(f"  {glyphs.above} {first + 1} more", "muted", "screen.move(-1)")
        if below:
            shown[-1] = Line(f"  {glyphs.below} {below + 1} more", "muted", "screen.move(1)")
    return shown


def in_one(items: list[Line], at: int, width: int, glyphs: Glyphs) -> Line:
    """Return as many items as fit into one line, the one at ``at`` among them, from the left."""

    def line(first: int, last: int) -> Line:
        made = Line()
        if first:
            made.add(f"{glyphs.left}{first} ", "muted", "screen.move(-1)")
        for i in range(first, last):
            made.add("  " if i > first else "").extend(items[i])
        if last < len(items):
            made.add(f"  {len(items) - last}{glyphs.right}", "muted", "screen.move(1)")
        return made

    first = next(
        (i for i in range(at) if line(i, at + 1).width <= width),
        at,
    )
    last = next((i for i in range(len(items), at, -1) if line(first, i).width <= width), at + 1)
    return line(first, last)


def _kinds(speculation: Speculation) -> str:
    """Return the type, or how many there are."""
    kinds = speculation.type.split(",")
    return kinds[0] if len(kinds) == 1 else plural(len(kinds), "type")


def _show(knob: Knob, value: Number) -> str:
    return number(value) if knob.integral else number(float(value))
