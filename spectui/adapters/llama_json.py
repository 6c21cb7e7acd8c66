"""What servers say in JSON → values of the domain, tolerantly, cleaned, and cleared of secrets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spectui.domain.address import Access
from spectui.domain.attached import Offer, Props
from spectui.domain.samples import Slot
from spectui.domain.text import clean
from spectui.domain.throughput import Timings

_MOST = 1e15  # tokens, or milliseconds: beyond it a number is no measurement


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a streamed answer. ``tokens`` are those so far, where only they are told."""

    text: str = ""
    timings: Timings | None = None
    finish: str = ""
    tokens: int = 0


class Pace:
    """Times a stream that tells how many tokens there were and not how long they took."""

    def __init__(self) -> None:
        """Wait for the first event."""
        self._first: float | None = None
        self._told = False

    def timed(self, event: Event) -> Event:
        """Return the event with timings, where the server sends a count of tokens only."""
        self._told = self._told or event.timings is not None
        if self._told or not event.tokens:
            return event
        now = time.monotonic()
        if self._first is None:
            self._first = now
        elapsed = (now - self._first) * 1000
        return replace(event, timings=Timings(predicted_n=event.tokens, predicted_ms=elapsed))


def mapping(data: object) -> Mapping[str, object]:
    """Return ``data`` where it is an object, else an empty one."""
    return data if isinstance(data, Mapping) else {}


def rows_of(data: object) -> list[object]:
    """Return the list in ``{"data": […]}``."""
    rows = mapping(data).get("data")
    return rows if isinstance(rows, list) else []


def said(value: object, access: Access, limit: int = 200) -> str:
    """Return a text that a server sent, as it may be shown: one line, without secrets.

    They are hidden first, so that the limit cannot cut one in two, and once more afterwards, since
    a control character may have stood in the middle of one.
    """
    return access.hide(clean(access.hide(str(value or "")), limit=limit))


def parse_offers(data: object, access: Access) -> tuple[Offer, ...]:
    """Read a list of models; a router tells the state of each, and its other names."""
    found = []
    for row in map(mapping, rows_of(data)):
        name = said(row.get("id"), access)
        state = said(mapping(row.get("status")).get("value"), access, 40)
        others = row.get("aliases")
        aliases = tuple(said(one, access) for one in others) if isinstance(others, list) else ()
        if name:
            found.append(Offer(name, state, aliases))
    return tuple(found)


def parse_running(data: object, access: Access) -> dict[str, str]:
    """Return llama-swap's models that are not stopped, with the state of each."""
    rows = mapping(data).get("running")
    found = {}
    for row in map(mapping, rows if isinstance(rows, list) else []):
        # early versions list what is ready only
        found[said(row.get("model"), access)] = said(row.get("state"), access, 40) or "ready"
    return found


def parse_props(data: object, access: Access) -> Props:
    """Read /props, of any build."""
    read = mapping(data)
    params = mapping(mapping(read.get("default_generation_settings")).get("params"))
    path = said(read.get("model_path"), access, 400)
    alias = said(read.get("model_alias"), access, 400)
    # a server without an alias repeats the path: a folder of somebody's disk is no name
    name = alias if alias and alias != path else path.replace("\\", "/").rpartition("/")[2]
    return Props(
        build=said(read.get("build_info"), access, 80),
        model=name,
        types=_types(params, access),
        sleeping=read.get("is_sleeping") is True,
    )


def _types(params: Mapping[str, object], access: Access) -> tuple[str, ...]:
    names = said(params.get("speculative.types"), access, 300).split(",")
    return tuple(name for name in map(str.strip, names) if name and name != "none")


def parse_event(data: Mapping[str, object]) -> Event:
    """Read one event of a stream."""
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    choice = choice if isinstance(choice, Mapping) else {}
    delta = choice.get("delta")
    delta = delta if isinstance(delta, Mapping) else {}
    # a reasoning model's thoughts are tokens like any other
    pieces = (delta.get("reasoning_content"), delta.get("content"))
    tokens = mapping(data.get("usage")).get("completion_tokens")
    return Event(
        text="".join(piece for piece in pieces if isinstance(piece, str)),
        timings=_timings(data.get("timings")),
        finish=str(choice.get("finish_reason") or ""),
        tokens=tokens if isinstance(tokens, int) and tokens > 0 else 0,
    )


def _timings(data: object) -> Timings | None:
    if not isinstance(data, Mapping):
        return None

    def number(key: str) -> float:
        """Return a number that makes sense; Python reads NaN and Infinity in JSON too."""
        value = data.get(key, 0)
        sensible = isinstance(value, int | float) and 0 <= value < _MOST
        return float(value) if sensible else 0.0

    return Timings(
        prompt_n=int(number("prompt_n")),
        prompt_ms=number("prompt_ms"),
        cached_n=int(number("cache_n")),
        predicted_n=int(number("predicted_n")),
        predicted_ms=number("predicted_ms"),
        per_second=number("predicted_per_second") or None,
        drafted=int(number("draft_n")),
        accepted=int(number("draft_n_accepted")),
    )


def parse_slot(row: object, access: Access) -> Slot | None:
    """Read one row of /slots, None where it makes no sense."""
    if not isinstance(row, Mapping):
        return None
    next_token = row.get("next_token")
    if isinstance(next_token, list):  # builds before mid 2025 send the object itself
        next_token = next_token[0] if next_token else {}
    decoded = next_token.get("n_decoded", 0) if isinstance(next_token, Mapping) else 0
    ids = row.get("id"), row.get("id_task", -1)
    speculative = row.get("speculative")
    if not all(isinstance(value, int) for value in (*ids, decoded)):
        return None
    return Slot(
        id=int(ids[0] or 0),
        task=int(ids[1] or 0),
        # builds before November 2024, and ik_llama.cpp, number the states: 0 is idle
        busy=bool(row.get("is_processing", row.get("state"))),
        speculative=speculative if isinstance(speculative, bool) else None,
        decoded=int(decoded),
        types=_types(mapping(row.get("params")), access),
    )
