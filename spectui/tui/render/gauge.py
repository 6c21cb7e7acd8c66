"""A bar of a few cells."""

from __future__ import annotations

from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line


def gauge(share: float | None, width: int, glyphs: Glyphs, tone: str = "accent") -> Line:
    """Return a bar filled to ``share`` (0 to 1, beyond is clamped); None is drawn empty."""
    filled = round(min(max(share or 0.0, 0.0), 1.0) * width)
    return Line(glyphs.full * filled, tone).add(glyphs.empty * (width - filled), "faint")
