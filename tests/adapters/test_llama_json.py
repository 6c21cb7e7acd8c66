"""What servers say in JSON, well-formed or not, and that no secret gets through."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, strategies as st

from spectui.adapters.llama_json import (
    Event,
    Pace,
    parse_event,
    parse_offers,
    parse_props,
    parse_running,
    parse_slot,
    rows_of,
    said,
)
from spectui.domain.address import Access, Secret
from spectui.domain.attached import Offer, Props
from spectui.domain.throughput import Timings

CANARY = "canary/5ecret"
NOBODY = Access()
KNOWN = Access(Secret(CANARY))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def test_a_routers_models_have_states_and_other_names() -> None:
    listed = {
        "data": [
            {"id": "a", "status": {"value": "loaded"}, "aliases": ["first", 1]},
            {"id": "b"},
            {"id": ""},
            "nonsense",
        ]
    }
    assert parse_offers(listed, NOBODY) == (Offer("a", "loaded", ("first", "1")), Offer("b"))


def test_a_swaps_models_are_ready_where_it_does_not_say() -> None:
    rows = [{"model": "a"}, {"model": "b", "state": "starting"}]
    assert parse_running({"running": rows}, NOBODY) == {"a": "ready", "b": "starting"}


@pytest.mark.parametrize(
    ("alias", "path", "name"),
    [
        ("mine", "/home/x/m.gguf", "mine"),
        ("/home/x/m.gguf", "/home/x/m.gguf", "m.gguf"),  # no alias: llama-server repeats the path
        ("", "C:\\models\\m.gguf", "m.gguf"),
        (None, None, ""),
        ("org/model", "/m.gguf", "org/model"),
    ],
)
def test_a_models_name_is_no_path(alias: object, path: object, name: str) -> None:
    assert parse_props({"model_alias": alias, "model_path": path}, NOBODY).model == name


def test_what_is_on_by_default_is_told_without_none() -> None:
    params = {"speculative.types": "none,draft-simple, ngram-mod"}
    data = {"default_generation_settings": {"params": params}, "is_sleeping": True}
    assert parse_props(data, NOBODY) == Props(types=("draft-simple", "ngram-mod"), sleeping=True)


@pytest.mark.parametrize(
    ("row", "busy", "speculative"),
    [
        ({"is_processing": True, "speculative": True}, True, True),
        ({"is_processing": False, "speculative": False}, False, False),
        ({"state": 1}, True, None),
        ({"state": 0}, False, None),
        ({}, False, None),
    ],
)
def test_slots_of_every_era(
    row: dict[str, object],
    busy: bool,  # noqa: FBT001 - a table's column
    speculative: bool | None,  # noqa: FBT001 - a table's column
) -> None:
    slot = parse_slot({"id": 1, "id_task": 7, **row}, NOBODY)
    assert slot is not None
    assert (slot.id, slot.task, slot.busy, slot.speculative) == (1, 7, busy, speculative)


@pytest.mark.parametrize("token", [{"n_decoded": 9}, [{"n_decoded": 9}]])
def test_tokens_so_far_as_an_object_and_as_a_list(token: object) -> None:
    slot = parse_slot({"id": 0, "next_token": token}, NOBODY)
    assert slot is not None
    assert slot.decoded == 9


@pytest.mark.parametrize("row", [{"id": "x"}, {"id_task": 0}, {"id": 0, "id_task": []}, 3, None])
def test_a_slot_that_makes_no_sense_is_left_out(row: object) -> None:
    assert parse_slot(row, NOBODY) is None


def test_thoughts_are_tokens_like_any_other() -> None:
    delta = {"reasoning_content": "hm ", "content": "yes"}
    found = parse_event({"choices": [{"delta": delta, "finish_reason": "stop"}]})
    assert (found.text, found.finish) == ("hm yes", "stop")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400, -3, "9", None, []])
def test_timings_that_make_no_sense_read_as_0(value: object) -> None:
    sent = dict.fromkeys(("predicted_n", "predicted_ms", "draft_n", "predicted_per_second"), value)
    assert parse_event({"timings": sent}).timings == Timings()


def test_a_stream_is_timed_here_only_where_it_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([10.0, 10.5])
    monkeypatch.setattr("spectui.adapters.llama_json.time.monotonic", lambda: next(clock))
    pace = Pace()
    assert pace.timed(Event(text="x")).timings is None
    assert pace.timed(Event(tokens=1)).timings == Timings(predicted_n=1, predicted_ms=0)
    assert pace.timed(Event(tokens=6)).timings == Timings(predicted_n=6, predicted_ms=500)
    told = Event(tokens=7, timings=Timings(predicted_n=7, predicted_ms=3))
    assert pace.timed(told) is told
    assert pace.timed(Event(tokens=8)).timings is None  # the server's own clock goes before ours


@pytest.mark.parametrize(
    "words",
    [
        f"bad key {CANARY}",
        "bad key canary%2F5ecret in /metrics?key=canary%2F5ecret",
        "canary/\x1b[31m5ecret",  # whole again once the colour is gone
        "x" * 190 + CANARY,  # not cut in two by the limit
    ],
)
def test_no_secret_gets_through(words: str) -> None:
    shown = said(words, KNOWN)
    assert not any(part in shown for part in (CANARY, "canary%2F", "canary/", "5ecret"))
    assert "…" in shown


def test_no_secret_gets_through_by_any_field() -> None:
    params = {"params": {"speculative.types": f"{CANARY},x"}}
    told = [
        repr(parse_offers({"data": [{"id": CANARY, "status": {"value": CANARY}}]}, KNOWN)),
        repr(parse_offers({"data": [{"id": "x", "aliases": [CANARY]}]}, KNOWN)),
        repr(parse_running({"running": [{"model": CANARY, "state": CANARY}]}, KNOWN)),
        repr(parse_slot({"id": 0, **params}, KNOWN)),
        repr(
            parse_props(
                {
                    **dict.fromkeys(("model_alias", "build_info"), CANARY),
                    "model_path": f"/{CANARY}/m.gguf",
                    "default_generation_settings": params,
                },
                KNOWN,
            )
        ),
    ]
    assert "5ecret" not in "".join(told)


@given(JSON)
def test_nothing_a_server_sends_is_ever_raised(data: object) -> None:
    rows = [{"id": data, "status": data, "aliases": data, "model": data, "state": data}]
    for sent in (data, {"data": data, "running": data}, {"data": rows, "running": rows}):
        parse_offers(sent, KNOWN)
        parse_running(sent, KNOWN)
        rows_of(sent)
    for name in (field.name for field in dataclasses.fields(Props)):
        parse_props({name: data, "default_generation_settings": data}, KNOWN)
    parse_slot(data, KNOWN)
    for name in ("id", "id_task", "next_token", "params", "state", "speculative"):
        parse_slot({"id": 0, name: data}, KNOWN)
    for name in ("choices", "timings", "usage"):
        parse_event({name: data})
    parse_event({"choices": [{"delta": data, "finish_reason": data}]})
    numbers = ("predicted_n", "predicted_ms", "draft_n", "predicted_per_second")
    parse_event({"timings": dict.fromkeys(numbers, data)})
