"""The frame that all dialogues share."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

Result = TypeVar("Result")


class Dialogue(ModalScreen[Result], Generic[Result]):
    """A box in the middle; escape closes it without a result. Its content is a ``#box``."""

    CSS_PATH = "dialogue.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="dialogue.close"),
    ]

    def action_close(self) -> None:
        """Close without a result."""
        self.dismiss(None)
