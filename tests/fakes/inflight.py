"""In-flight speed held against the server's own figure, at every moment of a request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from spectui.domain.runs import Request
from spectui.domain.samples import InFlight
from spectui.domain.throughput import DecodeMeter, Timings
from spectui.session.session import Session


def record_speeds(monkeypatch: pytest.MonkeyPatch, http: ModuleType) -> list[Timings]:
    """Return a list that fills with every account the server's streams give."""
    said: list[Timings] = []
    read = http.parse_event

    def keep(data: Any) -> Any:
        event = read(data)
        if event.timings is not None:
            said.append(event.timings)
        return event

    monkeypatch.setattr(http, "parse_event", keep)
    return said


@contextmanager
def watched(session: Session) -> Iterator[list[InFlight]]:
    """Yield a list that fills with what every snapshot would show, fifty times a second."""
    seen: list[InFlight] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            flight = session._measuring.in_flight
            if flight is not None:
                seen.append(flight)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def check_speeds(said: Sequence[Timings], request: Request, seen: Sequence[InFlight]) -> None:
    """Check what was shown in flight, and what is shown at the end, within 10 %.

    A figure of the moment is held against the server's of the same moment: how fast a text goes
    on after that is the text's own matter.
    """
    total = request.timings.predicted_n
    last = max(i for i, t in enumerate(said) if t.predicted_n == total)
    first = max((i for i in range(last) if said[i].predicted_n == 1), default=0)
    course = {t.predicted_n: t for t in said[first : last + 1]}
    shown = [f for f in seen if f.prompt == request.prompt and f.tokens > total / 3]
    assert shown
    for flight in shown:
        assert flight.so_far == pytest.approx(course[flight.tokens].per_second, rel=0.1)
    meter = DecodeMeter()
    for tokens, timings in sorted(course.items()):
        meter.feed(tokens, timings.predicted_ms / 1000)
    assert meter.so_far == pytest.approx(request.timings.per_second, rel=0.1)
