"""A text to scroll through, some rows of which can be chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

from spectui.tui.line import Line

KEYS = "123456789"
"""The first choices of a document have a key each; those after them are for the cursor."""


@dataclass(slots=True)
class Document:
    """Lines, and the rows (from 0) that the cursor stops at, one for each choice in its order.

    The first two cells of a row with a choice are kept blank: that is where the cursor stands.
    """

    lines: list[Line] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    def add(self, *lines: Line) -> None:
        """Add lines."""
        self.lines.extend(lines)

    def choice(self, line: Line) -> int:
        """Add a row that can be chosen; return its number.

        A click anywhere on it does so, except on a piece that has an action of its own.
        """
        number = len(self.stops)
        self.stops.append(len(self.lines))
        made = Line()
        for piece in line.pieces:
            made.add(piece.text, piece.tone, piece.click or f"choose({number})")
        self.lines.append(made)
        return number

    @property
    def next_key(self) -> str:
        """The key of the next choice that is added; a blank where keys have run out."""
        return KEYS[len(self.stops)] if len(self.stops) < len(KEYS) else " "
