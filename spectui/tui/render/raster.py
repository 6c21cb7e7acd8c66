"""A grid of dots finer than cells: 2×4 in braille, 1×2 in half blocks and in ASCII."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

# bit of the dot at (column, row) of a braille cell
_BRAILLE: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_HALVES: Final = {1: "▀", 2: "▄", 3: "█"}
_ASCII: Final = {1: "'", 2: ".", 3: ":"}


@dataclass(frozen=True, slots=True)
class Grain:
    """How many dots a cell has."""

    columns: int
    rows: int


GRAINS: Mapping[str, Grain] = MappingProxyType(
    {"braille": Grain(2, 4), "block": Grain(1, 2), "ascii": Grain(1, 2)}
)


class Raster:
    """Dots over ``width`` × ``height`` cells; (0, 0) is the dot at the top left."""

    def __init__(self, width: int, height: int, kind: str) -> None:
        """Start empty. ``kind`` is a key of GRAINS."""
        self.grain = GRAINS[kind]
        self._kind = kind
        self._width, self._height = width, height
        self._cells: dict[tuple[int, int], int] = {}

    @property
    def columns(self) -> int:
        """Dots across."""
        return self._width * self.grain.columns

    @property
    def rows(self) -> int:
        """Dots down."""
        return self._height * self.grain.rows

    def dot(self, x: int, y: int) -> None:
        """Set one dot; outside the grid nothing happens."""
        if not (0 <= x < self.columns and 0 <= y < self.rows):
            return
        column, across = divmod(x, self.grain.columns)
        row, down = divmod(y, self.grain.rows)
        bit = _BRAILLE[across][down] if self._kind == "braille" else 1 << down
        self._cells[column, row] = self._cells.get((column, row), 0) | bit

    def line(self, x0: int, y0: int, x1: int, y1: int) -> None:
        """Set the dots from one point to another, both included."""
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            self.dot(round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps))

    def cells(self) -> dict[tuple[int, int], str]:
        """Return the characters of all cells that have a dot, by (column, row)."""
        if self._kind == "braille":
            return {at: chr(0x2800 + bits) for at, bits in self._cells.items()}
        table = _HALVES if self._kind == "block" else _ASCII
        return {at: table[bits] for at, bits in self._cells.items()}
