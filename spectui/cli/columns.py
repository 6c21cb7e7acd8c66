"""Rows in columns that fit a terminal. Nothing is cut off: what is too long gets its own line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

_GAP = "  "
_NARROWEST = 12  # of the first column
_DEEPER = "  "


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where stdout is none, and no line is broken."""
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


class Columns:
    """Sets rows of equal length: a name, some short cells, and a remark, which may be empty.

    The name gets the room that the cells leave; a longer one stands alone above its cells. Remarks
    stand beside the cells if all of them fit there, and else below.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[str]],
        width: int | None,
        *,
        right: frozenset[int] = frozenset(),
        indent: str = "",
    ) -> None:
        """Measure ``rows``; ``right`` names the cells to be set flush right."""
        self._width = width
        self._right = right
        self._indent = indent
        self._widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        if width is not None:
            cells = sum(len(_GAP) + cell for cell in self._widths[1:-1])
            room = max(_NARROWEST, width - len(indent) - cells)
            self._widths[0] = min(self._widths[0], room)
        whole = len(indent) + sum(self._widths) + len(_GAP) * (len(self._widths) - 1)
        self._below = width is not None and whole > width

    def lines(self, row: Sequence[str]) -> list[str]:
        """Return the lines of one row."""
        name, *cells, remark = row
        lines = []
        if len(name) > self._widths[0]:
            lines.append(self._indent + name)
            name = ""
        line = self._indent + _GAP.join(
            cell.rjust(width) if index in self._right else cell.ljust(width)
            for index, (cell, width) in enumerate(
                zip((name, *cells), self._widths[:-1], strict=True)
            )
        )
        if self._below:
            return [*lines, line.rstrip(), *wrapped(remark, self._width, self._indent + _DEEPER)]
        return [*lines, (line + _GAP + remark).rstrip()]


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Return ``text`` in indented lines; words such as paths are left whole."""
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def entry(name: str, text: str, width: int | None, indent: str = "") -> list[str]:
    """Return ``name: text`` in a line, or in several with the text below the name."""
    line = f"{indent}{name}: {text}"
    if width is None or len(line) <= width:
        return [line]
    return [f"{indent}{name}:", *wrapped(text, width, indent + _DEEPER)]
