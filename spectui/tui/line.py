"""A line of a panel: pieces of plain text, each with a tone and perhaps an action on a click.

Renderers build lines without knowing Textual: a line can be compared, measured and read in a test.
A tone is words for a Look to resolve, such as ``muted`` or ``good bold``. There is no markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from rich.cells import cell_len, set_cell_size

from spectui.domain.text import clean


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in one tone; ``click`` is an action of the screen, empty where nothing happens."""

    text: str
    tone: str = ""
    click: str = ""


class Line:
    """Pieces one after another. Methods that add return the line itself."""

    __slots__ = ("pieces",)

    def __init__(self, text: str = "", tone: str = "", click: str = "") -> None:
        """Start with one piece, or with none."""
        self.pieces: list[Piece] = []
        self.add(text, tone, click)

    def add(self, text: str, tone: str = "", click: str = "") -> Self:
        """Add a piece. Neighbours of one tone become one piece: fewer style changes to send.

        Blanks look the same in any tone without a ground of its own, so they join what is before.
        """
        if not text:
            return self
        last = self.pieces[-1] if self.pieces else None
        if last is not None and (
            (last.tone, last.click) == (tone, click)
            or (
                not click and not last.click and _bare(last.tone) and text.isspace() and _bare(tone)
            )
        ):
            self.pieces[-1] = Piece(last.text + text, last.tone, last.click)
        else:
            self.pieces.append(Piece(text, tone, click))
        return self

    def outside(self, text: str, tone: str = "", limit: int = 300) -> Self:
        """Add text that came from outside, made harmless."""
        return self.add(clean(text, limit=limit), tone)

    def extend(self, other: Line) -> Self:
        """Add all pieces of another line."""
        for piece in other.pieces:
            self.add(piece.text, piece.tone, piece.click)
        return self

    def pad(self, width: int) -> Self:
        """Add blanks up to ``width`` cells."""
        return self.add(" " * (width - self.width))

    def right(self, other: Line, width: int) -> Self:
        """Put ``other`` at the right end of ``width`` cells; it is dropped where it won't fit."""
        if self.width + other.width + 1 <= width:
            self.pad(width - other.width).extend(other)
        return self

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def width(self) -> int:
        """Width in cells."""
        return sum(cell_len(piece.text) for piece in self.pieces)

    def fit(self, width: int) -> Line:
        """Return a copy of at most ``width`` cells, ended by an ellipsis where it was cut."""
        if self.width <= width:
            return self
        cut = Line()
        for piece in self.pieces:
            room = width - cut.width
            if cell_len(piece.text) < room:
                cut.add(piece.text, piece.tone, piece.click)
            elif room > 0:
                cut.add(shorten(piece.text + " ", room), piece.tone, piece.click)
                break
        return cut

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self.pieces == other.pieces

    def __hash__(self) -> int:
        return hash(tuple(self.pieces))

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def __repr__(self) -> str:
        return f"Line({self.plain!r})"


def _bare(tone: str) -> bool:
    return "reverse" not in tone and "underline" not in tone


def shorten(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` cells, ended by an ellipsis where it was cut."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def wrap(text: str, width: int, lines: int) -> list[str]:
    """Break ``text`` between words into at most ``lines`` lines; the last one may be cut."""
    if width < 1:
        return []
    out: list[str] = []
    rest = text.split()
    while rest and len(out) < lines - 1:
        taken = rest.pop(0)
        while rest and cell_len(taken) + 1 + cell_len(rest[0]) <= width:
            taken = f"{taken} {rest.pop(0)}"
        out.append(shorten(taken, width))
    if rest:
        out.append(shorten(" ".join(rest), width))
    return out


def flow(items: Iterable[Line], width: int) -> list[Line]:
    """Put items three blanks apart, on as many lines of ``width`` cells as they need."""
    rows: list[Line] = []
    for item in items:
        if rows and rows[-1].width + 3 + item.width <= width:
            rows[-1].add("   ").extend(item)
        else:
            rows.append(Line().extend(item.fit(width)))
    return rows
