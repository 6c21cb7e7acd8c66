"""The base of every panel: draws lines, and repaints only those that changed."""

from __future__ import annotations

from typing import Self

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.reactive import var
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from spectui.domain.samples import Snapshot
from spectui.tui.line import Line
from spectui.tui.look import Look

EMPTY = Snapshot(at=0.0)


class Panel(Widget):
    """A framed part of the dashboard. Subclasses say what is in it: ``heading``, ``draw``.

    A snapshot comes twice a second and most of it is as before. So the lines are compared with
    those on the screen: it is the terminal, and the SSH link behind it, that is spared.
    """

    snapshot: var[Snapshot] = var(EMPTY, init=False)
    look: var[Look] = var(Look(), init=False)

    _edge: int | None = None
    """The row of the frame whose title is being changed, relative to the content."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own name
        """Start empty."""
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._rows = 0
        self._heading: tuple[Line, Line] = (Line(), Line())

    def heading(self) -> Line:
        """Return the title in the frame."""
        return Line()

    def caption(self) -> Line:
        """Return figures for the lower frame, or after the title where there is no such frame."""
        return Line()

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the lines for this many cells; called only when there is any room."""
        raise NotImplementedError

    def rows(self, width: int) -> int:
        """Return how many lines it would like to have, where its height is automatic."""
        del width
        return 1

    def watch_snapshot(self) -> None:
        """Draw the newest snapshot."""
        self.redraw()

    def watch_look(self) -> None:
        """Draw everything anew: lines may be equal and yet have other colours."""
        self._lines, self._heading = [], (Line(), Line())
        self.redraw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._lines = []
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the wanted height to Textual."""
        del container, viewport
        self._rows = self.rows(width)
        return self._rows

    def redraw(self) -> None:
        """Draw, compare, and ask for a repaint of what changed."""
        width, height = self.content_size
        if not width or not height:
            return
        self._retitle(width)
        if self.styles.is_auto_height and self.rows(width) != self._rows:
            self.refresh(layout=True)
            return
        drawn = [line.fit(width) for line in self.draw(width, height)[:height]]
        drawn += [Line()] * (height - len(drawn))
        before = self._lines
        self._lines = drawn
        if len(before) != height:
            self.refresh()
            return
        changed = [y for y in range(height) if drawn[y] != before[y]]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _retitle(self, width: int) -> None:
        framed = self.styles.border_bottom[0] not in {"", "none"}
        title, caption = self.heading(), self.caption()
        if not framed and caption:
            title, caption = Line().extend(title).add("  ").extend(caption), Line()
        if (title, caption) == self._heading:
            return
        before, self._heading = self._heading, (title, caption)
        if title != before[0]:
            self._edge = -1
            self.border_title = self._content(title, width - 2)
        if caption != before[1]:
            self._edge = self.content_size.height
            self.border_subtitle = self._content(caption, width - 2)
        self._edge = None

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Ask for a repaint; of the edge alone while its title is being changed.

        Textual repaints a whole widget for a title, and ours have figures in them.
        """
        if self._edge is not None and not regions and not layout and not recompose:
            across, _down = self.content_offset
            regions = (Region(-across, self._edge, self.outer_size.width, 1),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _content(self, line: Line, width: int) -> Content | None:
        if not line:
            return None
        return Content.assemble(
            *(
                (self.look.text(p.text), VisualStyle.from_rich_style(self.look.style(p.tone)))
                for p in line.fit(width).pieces
            )
        )

    def render_line(self, y: int) -> Strip:
        """Return one line of the content for Textual."""
        width = self.content_size.width
        base = self.rich_style
        if y >= len(self._lines):
            return Strip.blank(width, base)
        segments = []
        for piece in self._lines[y].pieces:
            style = base + self.look.style(piece.tone)
            if piece.click:
                style += Style(meta={"@click": piece.click})
            segments.append(Segment(self.look.text(piece.text), style))
        return Strip(segments).adjust_cell_length(width, base)
