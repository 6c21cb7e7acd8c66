"""A document that scrolls, with a cursor on the rows that can be chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from spectui.tui.look import Look
from spectui.tui.render.document import KEYS, Document

Draw = Callable[[int], Document]
"""Makes the document for a width in cells."""


class Page(ScrollView, can_focus=True):
    """Shows a document; only the lines in sight are drawn, however many there are.

    A choice is made with its digit, with enter on the cursor, or with a click.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False, id="page.up"),
        Binding("down", "move(1)", "down", show=False, id="page.down"),
        Binding("home", "far(-1)", "top", show=False, id="page.top"),
        Binding("end", "far(1)", "end", show=False, id="page.end"),
        Binding("enter", "take", "choose", show=False, id="page.choose"),
    ]

    look: var[Look] = var(Look(), init=False)

    class Chosen(Message):
        """A choice was made. ``number`` is the document's, from 0."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    class Moved(Message):
        """The cursor went to another choice."""

    def __init__(
        self,
        *,
        eager: bool = False,
        digits: bool = True,
        id: str | None = None,  # noqa: A002  # Textual's own name
    ) -> None:
        """Start empty.

        ``eager``: the cursor stands on the first choice from the beginning. ``digits``: the first
        choices can be made by their digits.
        """
        super().__init__(id=id)
        self._eager, self._digits = eager, digits
        self._draw: Draw = lambda _: Document()
        self._document = Document()
        self._width = 0
        self.cursor: int | None = None

    @property
    def document(self) -> Document:
        """What is shown."""
        return self._document

    def show(self, draw: Draw, *, keep: bool = False) -> None:
        """Show another document from its top; ``keep`` stays where one is in it."""
        self._draw = draw
        if not keep:
            self.cursor = None
            self.scroll_home(animate=False, immediate=True)
        self._redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines there are, where the height is automatic."""
        del container, viewport
        return len(self._draw(width).lines) if width else 0

    def watch_look(self) -> None:
        """Draw in the new colours."""
        self._redraw()

    def on_resize(self) -> None:
        """Break lines anew where the width has changed."""
        if self.scrollable_content_region.width != self._width:
            self._redraw()

    def _redraw(self) -> None:
        self._width = self.scrollable_content_region.width
        if not self._width:
            return
        self._document = self._draw(self._width)
        count = len(self._document.stops)
        if self.cursor is not None:
            self.cursor = min(self.cursor, count - 1) if count else None
        elif self._eager and count:
            self.cursor = 0
        self.virtual_size = Size(self._width, len(self._document.lines))
        self.refresh()

    # what a person does

    def action_move(self, by: int) -> None:
        """Go to the next choice; scroll by a line where that one is far away."""
        at = self._towards(by)
        if at is None:
            self.scroll_relative(y=by, animate=False)
            return
        self.point_at(at)

    def action_far(self, by: int) -> None:
        """Go to the top or the end, and with it the cursor where there is one."""
        if by < 0:
            self.scroll_home(animate=False, immediate=True)
        else:
            self.scroll_end(animate=False, immediate=True)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        seen = [i for i, row in enumerate(self._document.stops) if top <= row < top + height]
        if self.cursor is not None and seen:
            self.point_at(seen[0] if by < 0 else seen[-1])

    def point_at(self, number: int) -> None:
        """Put the cursor on a choice."""
        if not 0 <= number < len(self._document.stops):
            return
        self.cursor = number
        self._keep_in_sight(self._document.stops[number])
        self.refresh()
        self.post_message(self.Moved())

    def _towards(self, by: int) -> int | None:
        """Return the choice to go to; None where the page itself is to move."""
        stops = self._document.stops
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if self.cursor is None:
            if by < 0:
                return None
            at = next((i for i, row in enumerate(stops) if row >= top), len(stops))
        elif by < 0 and stops[self.cursor] < top:
            return None  # far above: the way back to it leads through what is between
        else:
            at = self.cursor + by
        if not 0 <= at < len(stops) or not top - height <= stops[at] < top + height + height // 2:
            return None
        if by > 0 and self.cursor is not None and stops[self.cursor] < top:
            at = next((i for i in range(at, len(stops)) if stops[i] >= top), at)
        return at

    def _keep_in_sight(self, row: int) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if row <= top:
            # the first choice brings what stands above it into sight
            before = [stop for stop in self._document.stops if stop < row]
            self.scroll_to(y=max(row - 2, 0) if before else 0, animate=False)
        elif row >= top + height - 1:
            self.scroll_to(y=row - height + 2, animate=False)

    def action_take(self) -> None:
        """Choose where the cursor is."""
        if self.cursor is not None:
            self.action_choose(self.cursor)

    def action_choose(self, number: int) -> None:
        """Choose by number, as a click does."""
        if 0 <= number < len(self._document.stops):
            self.cursor = number
            self.refresh()
            self.post_message(self.Chosen(number))

    def on_key(self, event: events.Key) -> None:
        """Take a digit as the choice that has it."""
        number = KEYS.find(event.character or "-") if self._digits else -1
        if 0 <= number < len(self._document.stops):
            event.stop()
            self.action_choose(number)

    # drawing

    def render_line(self, y: int) -> Strip:
        """Return one line of the window."""
        width, base = self.scrollable_content_region.width, self.rich_style
        row = y + self.scroll_offset.y
        if row >= len(self._document.lines):
            return Strip.blank(width, base)
        stop = None if self.cursor is None else self._document.stops[self.cursor]
        chosen = row == stop
        ground = base + self.get_component_rich_style("page--cursor") if chosen else base
        segments = []
        for i, piece in enumerate(self._document.lines[row].fit(width).pieces):
            text = self.look.text(piece.text)
            if chosen and i == 0:
                text = f"{self.look.glyphs.cursor} {text[2:]}"
            style = ground + self.look.style(f"{piece.tone} bold" if chosen else piece.tone)
            if piece.click:
                style += Style(meta={"@click": piece.click})
            segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(width, ground)

    COMPONENT_CLASSES: ClassVar[set[str]] = {"page--cursor"}
