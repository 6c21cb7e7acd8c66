"""Where to write the tuned profile."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from spectui.domain.errors import SpectuiError
from spectui.domain.text import clean
from spectui.session.controls import Controls
from spectui.tui.bridge import Ended, follow
from spectui.tui.glyphs import Glyphs
from spectui.tui.screens.dialogue import Dialogue


class Export(Dialogue[None]):
    """Asks for a path, writes, and says where it went or why it could not."""

    def __init__(self, controls: Controls, what: str, glyphs: Glyphs) -> None:
        """Take the session, and in plain words what would be written."""
        super().__init__()
        self._controls, self._what, self._glyphs = controls, what, glyphs
        self._done = False

    def compose(self) -> ComposeResult:
        """Yield the path, the outcome and two buttons."""
        with Vertical(id="box") as box:
            box.border_title = Content("export the tuned profile")
            yield Static(Content(self._what), classes="said", markup=False)
            yield Input(self._controls.export_path(), id="path", select_on_focus=False)
            yield Static(
                Content("enter writes the file, escape closes"), id="outcome", markup=False
            )
            with Horizontal(classes="row"):
                yield Button(Content("write"), id="write")
                yield Button(Content("close"), id="close")

    def on_mount(self) -> None:
        """Let the path be edited at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write, or close where that is done."""
        event.stop()
        self._write()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Write or close."""
        event.stop()
        if event.button.id == "close":
            self.dismiss(None)
        else:
            self._write()

    def on_input_changed(self) -> None:
        """Take back the outcome: it was another path's."""
        self._done = False

    def _write(self) -> None:
        if self._done:
            self.dismiss(None)
            return
        path = self.query_one(Input).value.strip()
        if not path:
            self._say("name a file to write to", "-bad")
            return
        self._say("writing", "")
        try:
            follow(self._controls.export(path), self)
        except SpectuiError as error:
            self._say(str(error), "-bad")

    def on_ended(self, event: Ended) -> None:
        """Say what became of it."""
        event.stop()
        if event.error:
            self._say(event.error, "-bad")
        elif event.result is not None:
            self._done = True
            self._say(f"written to {event.result}; enter closes", "-good")

    def _say(self, text: str, kind: str) -> None:
        signs = {"-bad": f"{self._glyphs.bad} ", "-good": f"{self._glyphs.good} "}
        outcome = self.query_one("#outcome", Static)
        outcome.set_class(kind == "-bad", "-bad").set_class(kind == "-good", "-good")
        outcome.update(Content(signs.get(kind, "") + clean(text, limit=500)))
