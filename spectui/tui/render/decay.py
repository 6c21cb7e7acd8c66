"""Acceptance by draft position: plotext draws the curves, the legend beside them is ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, wrap
from spectui.tui.look import Look
from spectui.tui.reading import Curve
from spectui.tui.words import plural

LEGEND: Final = 25
"""Cells that the legend takes where it stands beside the plot."""

BESIDE: Final = 54
"""From this width on there is room for it there; below it goes under the plot."""

ROLES: Final = {"now": "", "before": "previous", "chosen": "chosen"}

_COLOURED: Final = re.compile(r"\x1b\[([0-9;]*)m")


def draw(curves: Sequence[Curve], width: int, height: int, look: Look) -> list[Line]:
    """Return at most ``height`` lines: plot and legend."""
    glyphs = look.glyphs
    if width >= BESIDE:
        side = [row.fit(LEGEND - 1) for row in _legend(curves, glyphs, LEGEND - 1)]
        plot = _plot(curves, width - LEGEND, height, look)
        return [
            line.pad(width - LEGEND + 1).extend(side[i]) if i < len(side) else line
            for i, line in enumerate(plot)
        ]
    under = [row.fit(width) for row in _short_legend(curves, glyphs)]
    under = under[: max(1, height - 5)]
    return [*_plot(curves, width, height - len(under), look), *under]


def _plot(curves: Sequence[Curve], width: int, height: int, look: Look) -> list[Line]:
    import plotext  # noqa: PLC0415  # only when there is a curve to draw: it costs start-up time

    last = max(len(curve.points) for curve in curves)
    # always the whole scale: a fall must look as large as it is, on every chart alike
    ticks = [*range(0, 101, 20 if height >= 6 else 50)]
    rgb = {look.colour(curve.sign.tone): curve.sign.tone for curve in curves}

    plotext.clear_figure()
    plotext.limitsize(False, False)  # noqa: FBT003  # plotext's own signature
    plotext.plotsize(width, height)
    plotext.theme("clear")
    plotext.frame(False)  # noqa: FBT003
    plotext.xaxes(False, False)  # noqa: FBT003
    plotext.yaxes(True, False)  # noqa: FBT003
    plotext.ylim(0, 100)
    plotext.xlim(0.7, last + 0.3)
    plotext.yticks(ticks, [f"{tick:>3}%" for tick in ticks])
    places = _places(last, width - 6)
    plotext.xticks(places, [str(place) for place in places])
    for curve in reversed(curves):
        xs, ys = _known(curve)
        for left, right in _pieces(xs):
            plotext.plot(
                xs[left:right],
                ys[left:right],
                marker=look.glyphs.plot,
                color=_rgb(look.colour(curve.sign.tone)),
            )
    if last <= (width - 6) // 2:
        # curves of one model lie on one another: side by side no sign hides another
        cell = (last - 0.4) / max(width - 6, 1)
        aside = cell if cell * len(curves) <= 1 else 0.0
        for turn, curve in reversed([*zip((0, 1, -1), curves, strict=False)]):
            xs, ys = _known(curve)
            plotext.scatter(
                [x + turn * aside for x in xs],
                ys,
                marker=curve.sign.glyph,
                color=_rgb(look.colour(curve.sign.tone)),
            )
    return [_line(row, rgb, look) for row in plotext.build().rstrip("\n").split("\n")]


def _known(curve: Curve) -> tuple[list[int], list[float]]:
    """Return the positions that have a point, and their shares in %."""
    known = [(i, point * 100) for i, point in enumerate(curve.points, 1) if point is not None]
    return [place for place, _ in known], [share for _, share in known]


def _pieces(xs: Sequence[int]) -> list[tuple[int, int]]:
    """Return (begin, end) of stretches without a gap: a line over a gap would be made up."""
    cuts = [0, *(i for i in range(1, len(xs)) if xs[i] != xs[i - 1] + 1), len(xs)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _places(last: int, width: int) -> list[int]:
    every = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if last / n * 3 <= max(width, 8))
    return [1, *range(max(every, 2), last + 1, every)] if every > 1 else list(range(1, last + 1))


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _line(row: str, tones: dict[str, str], look: Look) -> Line:
    """Turn plotext's coloured row into pieces; what has no colour of ours is axis."""
    line, tone = Line(), "muted"
    for i, part in enumerate(_COLOURED.split(row)):
        if i % 2 == 0:
            line.add(_axis(part, look.glyphs) if tone == "muted" else part, tone)
        elif part.startswith("38;2;"):
            red, green, blue = (int(n) for n in part.split(";")[2:5])
            tone = tones.get(f"#{red:02X}{green:02X}{blue:02X}", "text")
        else:
            tone = "muted"
    return line


def _axis(text: str, glyphs: Glyphs) -> str:
    return text.replace("┤", glyphs.tick).replace("│", glyphs.axis)


def _legend(curves: Sequence[Curve], glyphs: Glyphs, width: int) -> list[Line]:
    rows: list[Line] = []
    for curve in curves:
        rows.append(Line(f"{curve.sign.glyph} ", curve.sign.tone).outside(curve.name, "text"))
        role = f"{ROLES[curve.role]}, " if ROLES[curve.role] else ""
        rows.append(Line(f"  {role}{plural(curve.drafts, 'draft')}", "muted"))
        if curve.mean_drafted is not None:
            rows.append(Line("  ").extend(_drafted(curve, glyphs)))
    if any(curve.cut for curve in curves):
        said = "cut short: the later positions read low"
        rows.extend(
            Line(f"{glyphs.warn if i == 0 else ' '} {text}", "warn")
            for i, text in enumerate(wrap(said, width - 2, 3))
        )
    return rows


def _drafted(curve: Curve, glyphs: Glyphs) -> Line:
    most = f" of {curve.length}" if curve.length else ""
    text = f"{curve.mean_drafted:.1f}{most} drafted"
    return Line(f"{text} {glyphs.warn}", "warn") if curve.cut else Line(text, "muted")


def _short_legend(curves: Sequence[Curve], glyphs: Glyphs) -> list[Line]:
    rows = []
    for curve in curves:
        row = Line(f"{curve.sign.glyph} ", curve.sign.tone).outside(curve.name, "text")
        role = f"{ROLES[curve.role]} · " if ROLES[curve.role] else ""
        row.add(f" · {role}{plural(curve.drafts, 'draft')}", "muted")
        if curve.mean_drafted is not None:
            row.add(" · ", "muted").extend(_drafted(curve, glyphs))
            if curve.cut:
                row.add(" cut short: reads low", "warn")
        rows.append(row)
    return rows
