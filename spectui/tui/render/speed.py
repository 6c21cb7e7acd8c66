"""Decode speed over time as lines of text.

Time is cut into columns at fixed moments, so that what is drawn moves by whole columns and only
when one is full: between two moves nothing but the newest column changes.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectui.domain.runs import geometric_mean
from spectui.domain.samples import Mark, SettledPoint, SpeedPoint
from spectui.domain.text import clean, duration
from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, shorten
from spectui.tui.reading import Sign
from spectui.tui.render.raster import GRAINS, Raster
from spectui.tui.words import speed

_STEPS = (0.5, 1, 2, 3, 5)
"""Seconds per cell that are tried until everything fits; the last one scrolls."""

_REACH = 3
"""Columns of dots to either side that the line is averaged over: one prompt is not the next, and a
line that leaps between them hides where they lie."""

_Cells = dict[tuple[int, int], tuple[str, str]]


@dataclass(frozen=True)
class Chart:
    """What to draw. Times are monotonic seconds, speeds tok/s."""

    now: float
    flight: Sequence[SpeedPoint]
    settled: Sequence[SettledPoint]
    marks: Sequence[Mark]
    signs: Mapping[int, Sign]
    baseline: float | None


@dataclass(frozen=True, slots=True)
class Axis:
    """The speeds at the bottom and the top row, and where to write them."""

    low: float
    high: float
    step: float
    ticks: tuple[float, ...]

    def row(self, tps: float, rows: int) -> int:
        """Return the row of ``rows`` for a speed, 0 at the top; beyond the ends is clamped."""
        share = (tps - self.low) / (self.high - self.low)
        return min(max(round((1 - share) * (rows - 1)), 0), rows - 1)


def scale(values: Sequence[float], rows: int) -> Axis:
    """Return round limits that hold ``values`` with a tick about every third row.

    The bottom is 0 where that wastes little of the height.
    """
    low, high = min(values), max(values)
    if low < 0.25 * high:
        low = 0.0
    span = max(high - low, high * 0.1, 0.1)
    rough = span / max(rows / 3, 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    # limits on fifths of a step: they hold still for a while, and waste less than whole steps
    bottom = math.floor(low / step * 5) * step / 5
    top = max(math.ceil(high / step * 5) * step / 5, bottom + step / 5)
    count = range(math.ceil(bottom / step), math.floor(top / step) + 1)
    return Axis(bottom, top, step, tuple(i * step for i in count))


def draw(chart: Chart, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return ``height`` lines: the plot, and under it the time."""
    rows, grain = height - 1, GRAINS[glyphs.raster]
    gutter = 6
    columns = width - gutter
    if rows < 3 or columns < 8:
        return []
    step, first = _window(chart, columns)
    start = first * step
    fine = step / grain.columns
    cuts = sorted(math.floor((mark.at - start) / fine) for mark in chart.marks)
    means = _means([p for p in chart.flight if p.at >= start], cuts, start, fine)
    settled = [p for p in chart.settled if p.ended >= start]
    values = [*(p.tps for p in settled), *means.values()]
    if chart.baseline is not None:
        values.append(chart.baseline)
    if not values:
        return []
    axis = scale(values, rows)

    cells: _Cells = {}
    _reference(cells, chart.baseline, axis, columns, rows, glyphs)
    _marks(cells, chart.marks, first, step, columns, rows, glyphs)
    raster = Raster(columns, rows, glyphs.raster)
    _trace(raster, means, cuts, axis)
    for at, char in raster.cells().items():
        cells[at] = (char, "flight")
    _settled(cells, settled, chart.signs, first, step, axis, rows)
    _labels(cells, chart, axis, first, step, columns, rows)

    ticks = {axis.row(tick, rows): tick for tick in axis.ticks}
    lines = []
    for y in range(rows):
        head = f"{_tick(ticks[y], axis):>4} {glyphs.tick}" if y in ticks else f"     {glyphs.axis}"
        line = Line(head, "faint" if y not in ticks else "muted")
        for x in range(columns):
            line.add(*cells.get((x, y), (" ", "")))
        lines.append(line)
    lines.append(_time(first, step, chart.now, columns, gutter))
    return lines


def _window(chart: Chart, columns: int) -> tuple[float, int]:
    """Return seconds per cell, and the number of the first cell since time 0."""
    moments = [p.at for p in chart.flight[:1]] + [p.started for p in chart.settled[:1]]
    begin = min(moments, default=chart.now)
    for step in _STEPS:
        last = math.floor(chart.now / step)
        first = math.floor(begin / step)
        if last - first < columns:
            return step, first
    return step, last - columns + 1


def _reference(
    cells: _Cells, tps: float | None, axis: Axis, columns: int, rows: int, glyphs: Glyphs
) -> None:
    if tps is not None:
        y = axis.row(tps, rows)
        for x in range(columns):
            cells[x, y] = (glyphs.dash, "base")


def _marks(
    cells: _Cells,
    marks: Sequence[Mark],
    first: int,
    step: float,
    columns: int,
    rows: int,
    glyphs: Glyphs,
) -> None:
    for mark in marks:
        x = math.floor(mark.at / step) - first
        if 0 <= x < columns:
            for y in range(rows):
                cells[x, y] = (glyphs.mark, "faint")


def _means(
    points: Sequence[SpeedPoint], cuts: Sequence[int], start: float, step: float
) -> dict[int, float]:
    """Return each column's mean over itself and _REACH neighbours, never across a restart.

    A column without a reading of its own is a gap and has none. ``cuts`` are the columns of the
    restarts, in order.
    """
    columns: dict[int, list[float]] = {}
    for point in points:
        if point.tps is not None:
            columns.setdefault(math.floor((point.at - start) / step), []).append(point.tps)
    means = {}
    for x in sorted(columns):
        launch = bisect.bisect_right(cuts, x)
        near = [
            tps
            for other in range(x - _REACH, x + _REACH + 1)
            if bisect.bisect_right(cuts, other) == launch
            for tps in columns.get(other, ())
        ]
        means[x] = sum(near) / len(near)
    return means


def _trace(raster: Raster, means: Mapping[int, float], cuts: Sequence[int], axis: Axis) -> None:
    rows = {x: axis.row(tps, raster.rows) for x, tps in means.items()}
    for x, y in rows.items():
        joined = bisect.bisect_right(cuts, x - 1) == bisect.bisect_right(cuts, x)
        if x - 1 in rows and joined:
            raster.line(x - 1, rows[x - 1], x, y)
        else:
            raster.dot(x, y)


def _settled(
    cells: _Cells,
    points: Sequence[SettledPoint],
    signs: Mapping[int, Sign],
    first: int,
    step: float,
    axis: Axis,
    rows: int,
) -> None:
    ended: dict[tuple[int, int], list[float]] = {}
    for point in points:
        ended.setdefault((math.floor(point.ended / step) - first, point.run), []).append(point.tps)
    for (x, run), speeds in ended.items():
        sign = signs.get(run, Sign("•", "text"))
        cells[x, axis.row(geometric_mean(speeds) or 0.0, rows)] = (sign.glyph, sign.tone)


def _labels(
    cells: _Cells, chart: Chart, axis: Axis, first: int, step: float, columns: int, rows: int
) -> None:
    """Write the labels over everything else: of the restarts at the top, of the baseline."""
    taken = -1
    for mark in chart.marks:
        x = math.floor(mark.at / step) - first + 1
        text = shorten(clean(mark.label, limit=60), min(18, columns - x))
        if x >= max(taken, 0) and text:
            _write(cells, x, 0, text, "muted")
            taken = x + len(text) + 1
    if chart.baseline is not None:
        text = f" off {speed(chart.baseline)} "
        _write(cells, columns - len(text), axis.row(chart.baseline, rows), text, "base bold")


def _write(cells: _Cells, x: int, y: int, text: str, tone: str) -> None:
    for i, char in enumerate(text):
        cells[x + i, y] = (char, tone)


def _tick(value: float, axis: Axis) -> str:
    if axis.step >= 1:
        return f"{value:.0f}"
    return f"{value:.1f}" if axis.step >= 0.1 else f"{value:.2f}"


def _time(first: int, step: float, now: float, columns: int, gutter: int) -> Line:
    seconds = now - first * step
    line = Line(" " * gutter)
    begin = f"{duration(seconds)} ago"
    end_at = min(math.floor(now / step) - first + 1, columns)
    line.add(begin, "muted")
    if end_at - len(begin) > 6:
        line.add(" " * (end_at - len(begin) - 3)).add("now", "muted")
    return line
