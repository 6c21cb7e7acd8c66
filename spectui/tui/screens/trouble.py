"""All that is wrong with the launch, with every way out."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from spectui.domain.findings import Fix
from spectui.domain.samples import Snapshot
from spectui.tui.line import Line
from spectui.tui.look import Look
from spectui.tui.render import findings
from spectui.tui.render.document import Document
from spectui.tui.screens.dialogue import Dialogue
from spectui.tui.widgets.page import Page


class Trouble(Dialogue[Fix]):
    """Follows the session while it is open; its result is the fix that was chosen."""

    def __init__(self, look: Look) -> None:
        """Take the signs and colours."""
        super().__init__()
        self._look = look
        self._fixes: tuple[Fix, ...] = ()
        self._shown: Snapshot | None = None

    def compose(self) -> ComposeResult:
        """Yield the findings, and what the keys do."""
        with Vertical(id="box") as box:
            box.border_title = Content("what is wrong")
            page = Page()
            page.look = self._look
            yield page
            yield Static(
                Content(self._look.text("a digit or enter applies a way out · escape closes")),
                classes="foot",
                markup=False,
            )

    def on_mount(self) -> None:
        """Follow the app's snapshots."""
        self.query_one(Page).focus()
        self.watch(self.app, "snapshot", self._show)

    def _show(self, snapshot: Snapshot) -> None:
        if self._shown is not None and snapshot.findings == self._shown.findings:
            return
        first, self._shown = self._shown is None, snapshot
        self.query_one(Page).show(self._document, keep=not first)

    def _document(self, width: int) -> Document:
        document = Document()
        snapshot = self._shown
        if snapshot is None or not snapshot.findings:
            document.add(Line("  nothing is wrong any more", "muted"))
            return document
        self._fixes = findings.write(document, snapshot.findings, width, self._look.glyphs)
        return document

    def on_page_chosen(self, event: Page.Chosen) -> None:
        """Take the fix."""
        event.stop()
        if event.number < len(self._fixes):
            self.dismiss(self._fixes[event.number])
