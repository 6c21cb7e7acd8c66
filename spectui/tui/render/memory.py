"""Where the memory goes: a bar of what a launch will want, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectui.domain.fitting import Fit
from spectui.domain.memory import HEADROOM, Estimate
from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, flow, wrap
from spectui.tui.words import memory

_TONES = ("accent", "pending", "text", "muted", "good")
"""One for each kind of part, in the order in which they are drawn."""


@dataclass(frozen=True, slots=True)
class Share:
    """One kind of memory: what is in it, and bytes."""

    name: str
    size: int
    tone: str
    glyph: str


def draw(fit: Fit, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a bar for the GPU, one for RAM where something lies there, and what they mean."""
    estimate = fit.estimate
    lines: list[Line] = []
    places = (("GPU", True, estimate.gpu), ("RAM", False, estimate.host))
    for name, on_gpu, wanted in places:
        if not wanted:
            continue
        free = fit.free if on_gpu is fit.on_gpu else None
        if lines:
            lines.append(Line())
        lines += _place(name, shares(estimate, glyphs, on_gpu=on_gpu), free, width, glyphs)
    notes = [f"{part.name}: {part.note}" for part in estimate.parts if part.note]
    if estimate.unknown:
        notes.append(f"not counted: {' and '.join(estimate.unknown)}")
    for note in notes:
        lines += [Line(text, "muted") for text in wrap(f"{glyphs.hint} {note}", width, 3)]
    return lines


def shares(estimate: Estimate, glyphs: Glyphs, *, on_gpu: bool) -> list[Share]:
    """Return the parts of one place by kind, those that are empty left out."""
    sums: dict[str, int] = dict.fromkeys(
        ("target weights", "draft weights", "KV cache", "work buffers", "projector"), 0
    )
    cached = set()
    for part in estimate.parts:
        size = part.gpu if on_gpu else part.host
        kind = _kind(part.name)
        sums[kind] += size
        if kind == "KV cache" and size:
            cached.add(part.name)
    named = {"KV cache": "KV cache of both" if len(cached) > 1 else "KV cache"}
    return [
        Share(named.get(name, name), size, tone, glyph)
        for (name, size), tone, glyph in zip(sums.items(), _TONES, glyphs.shades, strict=True)
        if size
    ]


def _kind(name: str) -> str:
    if name.endswith("KV cache"):
        return "KV cache"
    return "work buffers" if name.endswith("compute") else name


def _place(
    name: str, parts: Sequence[Share], free: int | None, width: int, glyphs: Glyphs
) -> list[Line]:
    wanted = sum(part.size for part in parts)
    head = Line(f"{name}  ", "text bold").add(f"about {memory(wanted)} wanted", "text")
    left = None if free is None else free - wanted
    if free is None:
        head.add(", what is free is not told", "muted")
    elif left is not None and left < 0:
        head.add(f", {memory(free)} free: ", "text").add(f"{memory(-left)} too much", "bad bold")
    else:
        head.add(f" of {memory(free)} free", "text")
    total = max(wanted, free or 0)
    cells = split([*(part.size for part in parts), max(left or 0, 0)], width)
    bar = Line()
    for part, count in zip(parts, cells, strict=False):
        bar.add(part.glyph * count, part.tone)
    bar.add(glyphs.room * cells[-1], "faint")
    lines = [head, bar]
    if free is not None and left is not None and left < 0:
        # where the memory ends, under a bar that goes beyond it
        at = min(round(width * free / total), width - 1)
        said = f"{glyphs.edge} here it ends"
        lines.append(Line(" " * max(min(at, width - len(said)), 0)).add(said, "bad"))
    items = [
        Line(f"{part.glyph} ", part.tone)
        .add(f"{part.name} ", "muted")
        .add(memory(part.size), "text")
        for part in parts
    ]
    if left is not None and left > 0:
        # llama.cpp itself leaves this much alone
        tight = left < HEADROOM
        room = Line(f"{glyphs.room} ", "faint").add("left ", "muted").add(memory(left), "text")
        if tight:
            room.add(f" {glyphs.warn} less than {memory(HEADROOM)} of head-room", "warn")
        items.append(room)
    return [*lines, *flow(items, width)]


def split(sizes: Sequence[int], width: int) -> list[int]:
    """Return cells for ``sizes`` that sum up to ``width``; what is not nothing gets at least one.

    What is rounded up is taken from the largest.
    """
    total = sum(sizes)
    if not total:
        return [0 for _ in sizes]
    cells = [max(round(width * size / total), 1) if size else 0 for size in sizes]
    while (over := sum(cells) - width) != 0:
        largest = max(range(len(cells)), key=cells.__getitem__)
        if over > 0 and cells[largest] <= 1:
            break  # more parts than cells
        cells[largest] -= over if over < 0 else min(over, cells[largest] - 1)
    return cells
