"""The server's log, followed."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from spectui.domain.samples import Snapshot
from spectui.domain.text import clean


class LogView(ScrollView, can_focus=True):
    """Lines of plain text; stays at the end until one scrolls up."""

    def __init__(self) -> None:
        """Start without a line."""
        super().__init__()
        self._rows: tuple[str, ...] = ()

    def show(self, rows: tuple[str, ...]) -> None:
        """Replace the lines."""
        if rows == self._rows:
            return
        follow = self.scroll_offset.y >= self.max_scroll_y
        self._rows = tuple(clean(row) for row in rows)
        self.virtual_size = Size(max(map(cell_len, self._rows), default=0), len(self._rows))
        self.refresh()
        if follow:
            self.scroll_end(animate=False)

    def render_line(self, y: int) -> Strip:
        """Return one line of the window."""
        across, down = self.scroll_offset
        at, style = y + down, self.rich_style
        text = self._rows[at] if at < len(self._rows) else ""
        strip = Strip([Segment(text, style)])
        width = self.scrollable_content_region.width
        return strip.crop_extend(across, across + width, style)


class LogScreen(Screen[None]):
    """The whole of what the snapshot has of the log."""

    CSS_PATH = "log.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,l,q", "app.pop_screen", "back", id="log.back"),
    ]

    def compose(self) -> ComposeResult:
        """Yield the lines."""
        yield LogView()

    def on_mount(self) -> None:
        """Follow the app's snapshots."""
        view = self.query_one(LogView)
        view.border_subtitle = Content("escape goes back · end follows · arrows scroll")
        view.focus()
        self.watch(self.app, "snapshot", self._show)

    def _show(self, snapshot: Snapshot) -> None:
        view = self.query_one(LogView)
        where = clean(snapshot.url, limit=60)
        view.border_title = Content(f"log of the server{' at ' + where if where else ''}")
        view.show(snapshot.log or ("the server has written nothing yet",))
