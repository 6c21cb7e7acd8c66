"""In-flight speed held against the server's own figure, at every moment of a request."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from spectui.domain.runs import Request
from spectui.domain.samples import Snapshot
from spectui.domain.throughput import DecodeMeter, Timings


def record_speeds(monkeypatch: pytest.MonkeyPatch, http: ModuleType) -> list[Timings]:
    """Return a list that fills with every account the server's streams give."""
    said: list[Timings] = []
    read = http._timings

    def keep(data: Any) -> Timings | None:
        timings: Timings | None = read(data)
        if timings is not None:
            said.append(timings)
        return timings

    monkeypatch.setattr(http, "_timings", keep)
    return said


def check_speeds(said: Sequence[Timings], request: Request, seen: Sequence[Snapshot]) -> None:
    """Check what was shown in flight, and what is shown at the end, within 10 %.

    A figure of the moment is held against the server's of the same moment: how fast a text goes
    on after that is the text's own matter.
    """
    total = request.timings.predicted_n
    last = max(i for i, t in enumerate(said) if t.predicted_n == total)
    first = max((i for i in range(last) if said[i].predicted_n == 1), default=0)
    course = {t.predicted_n: t for t in said[first : last + 1]}
    shown = [
        s.in_flight
        for s in seen
        if s.in_flight and s.in_flight.prompt == request.prompt and s.in_flight.tokens > total / 3
    ]
    assert shown
    for flight in shown:
        assert flight.so_far == pytest.approx(course[flight.tokens].per_second, rel=0.1)
    meter = DecodeMeter()
    for tokens, timings in sorted(course.items()):
        meter.feed(tokens, timings.predicted_ms / 1000)
    assert meter.so_far == pytest.approx(request.timings.per_second, rel=0.1)
