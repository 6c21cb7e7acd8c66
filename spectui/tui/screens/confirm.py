"""A question before something that costs time."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from spectui.tui.screens.dialogue import Dialogue


class Confirm(Dialogue[bool]):
    """Says what will happen and how long it takes; True to go on.

    ``leaves`` is for the question before quitting: q agrees too, so that it may be pressed twice.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "yes", id="confirm.yes"),
        Binding("n", "close", "no", id="confirm.no"),
    ]

    def __init__(self, title: str, said: str, yes: str, *, leaves: bool = False) -> None:
        """Take plain texts; ``yes`` is the button's."""
        super().__init__()
        self._title, self._said, self._yes = title, said, yes
        self.leaves = leaves
        # the keys of the screen below mean what they would mean there, or no
        self._bindings.bind("q", "agree" if leaves else "close")
        self._bindings.bind("x", "close")

    def compose(self) -> ComposeResult:
        """Yield the question and two buttons."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            yield Static(Content(self._said), classes="said", markup=False)
            with Horizontal(classes="row"):
                yield Button(Content(f"y  {self._yes}"), id="yes")
                yield Button(Content("n  go back"), id="no")

    def on_mount(self) -> None:
        """Let enter mean no: nobody loses a measurement by it."""
        self.query_one("#no", Button).focus()

    def action_agree(self) -> None:
        """Go on."""
        self.dismiss(result=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the answer."""
        event.stop()
        self.dismiss(event.button.id == "yes")
