"""Numbers as people read them: with a unit, and with no more digits than they deserve."""

from __future__ import annotations

from collections.abc import Sequence

from spectui.domain.comparison import Estimate
from spectui.domain.memory import gib as gib_of
from spectui.domain.samples import Snapshot, SourceStatus
from spectui.domain.text import clean, duration

NONE = "–"
"""Stands where there is nothing to tell."""


def speed(tps: float | None) -> str:
    """Return tok/s with three digits, without the unit."""
    if tps is None:
        return NONE
    if tps >= 99.95:
        return f"{tps:.0f}"
    return f"{tps:.1f}" if tps >= 9.995 else f"{tps:.2f}"


def percent(share: float | None) -> str:
    """Return a share of 0 to 1 as ``63 %``."""
    return NONE if share is None else f"{share * 100:.0f} %"


def gib(size: float) -> str:
    """Return bytes in GiB, without the unit."""
    value = size / 2**30
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def memory(count: int) -> str:
    """Return bytes of memory: ``5.61 GiB``, and below one of these ``380 MiB``."""
    if count >= 2**30:
        return gib_of(count)
    value = count / 2**20
    return f"{value:.1f} MiB" if 0 < value < 9.95 else f"{value:.0f} MiB"


def size(count: int) -> str:
    """Return a file's bytes as model pages give them: ``372 MB``, ``4.4 GB``."""
    return _scaled(count, ("B", "kB", "MB", "GB", "TB"))


def count(parameters: int) -> str:
    """Return a count of parameters: ``135 M``, ``7.6 B``."""
    return _scaled(parameters, ("", "K", "M", "B", "T"))


def _scaled(value: float, units: Sequence[str]) -> str:
    if not value:
        return NONE
    at = 0
    # 999.6 would be written as 1000
    while value >= 999.5 and at < len(units) - 1:
        value, at = value / 1000, at + 1
    text = f"{value:.1f}" if at and value < 9.95 else f"{value:.0f}"
    return f"{text} {units[at]}".rstrip()


def number(value: float) -> str:
    """Return a knob's value: whole numbers bare, others with two digits."""
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def plural(count: int, word: str) -> str:
    """Return ``1 prompt`` or ``3 prompts``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def ratio(found: Estimate | None) -> str:
    """Return ``1.31× 1.27–1.36``; the interval is left out while there is none."""
    if found is None:
        return NONE
    if found.low is None or found.high is None:
        return f"{found.speedup:.2f}×"
    if found.high > 9.99:
        return f"{found.speedup:.2f}× {found.low:.1f}–{found.high:.0f}"
    return f"{found.speedup:.2f}× {found.low:.2f}–{found.high:.2f}"


def trouble(snapshot: Snapshot, name: str) -> str:
    """Return what is wrong with a source and how old its figures are; empty when all is well.

    ABSENT and WAITING are no trouble: panels speak of them themselves.
    """
    state = snapshot.sources.get(name)
    if state is None or state.status in {
        SourceStatus.OK,
        SourceStatus.WAITING,
        SourceStatus.ABSENT,
    }:
        return ""
    said = clean(state.reason, limit=80) or (
        "slow to answer" if state.status is SourceStatus.SLOW else "cannot be read"
    )
    if state.read_at is None:
        return said
    return f"last reading {duration(snapshot.at - state.read_at)} ago, {said}"
