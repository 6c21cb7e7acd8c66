"""The HTTP adapter on real streams of a real server, and on everything that can go wrong."""

import json
from pathlib import Path

import httpx
import pytest

from spectui.adapters.llama_http import LlamaClient
from spectui.domain.errors import RequestError
from spectui.domain.runs import Prompt

CAPTURES = Path(__file__).parent / "captures"
PROMPT = Prompt("p", "code", (("system", "be brief"), ("user", "hello")))
LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}


def client(answer):
    handler = answer if callable(answer) else lambda _: answer
    return LlamaClient("http://server", transport=httpx.MockTransport(handler))


async def chat(answer):
    found = client(answer)
    try:
        return [event async for event in found.chat(PROMPT, max_tokens=64, seed=7)]
    finally:
        await found.close()


def stream(*events):
    lines = [e if isinstance(e, str) else f"data: {json.dumps(e)}" for e in events]
    return httpx.Response(200, text="\n\n".join(lines) + "\n\n")


def chunk(text="", finish=None, **more):
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}], **more}


@pytest.mark.parametrize("name", ["b11434-draft-simple-stream.sse", "b11434-baseline-stream.sse"])
async def test_a_real_stream(name):
    text = (CAPTURES / name).read_text(encoding="utf-8")
    events = await chat(httpx.Response(200, text=text))
    last = [e.timings for e in events if e.timings][-1]
    assert events[-1].finish == "length"
    assert last.predicted_n == 200
    assert last.decode_tps == last.per_second
    assert (last.drafted, last.accepted) == ((203, 148) if "draft" in name else (0, 0))
    assert sum(bool(e.text) for e in events) == 8  # the capture keeps both ends


async def test_what_is_asked_for():
    seen = []

    def handler(request):
        seen.append(json.loads(request.content))
        return stream(chunk("x", "stop"), "data: [DONE]")

    await chat(handler)
    assert seen == [
        {
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
            ],
            "max_tokens": 64,
            "temperature": 0,
            "seed": 7,
            "cache_prompt": False,
            "stream": True,
            "timings_per_token": True,
        }
    ]


async def test_thoughts_are_tokens_too():
    event = {"choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": None}]}
    events = await chat(stream(event, chunk("yes", "stop"), "data: [DONE]"))
    assert [e.text for e in events] == ["hm", "yes"]


async def test_keep_alive_comments_and_odd_chunks_are_passed_over():
    odd = [": ping", "event: x", {"choices": []}, {"choices": [3]}, {"choices": None}, [1], "data:"]
    events = await chat(stream(*odd, chunk("a", "stop"), "data: [DONE]"))
    assert "".join(e.text for e in events) == "a"


async def test_odd_timings_are_passed_over():
    bad = chunk("a", "stop", timings={"predicted_n": "many", "predicted_ms": None})
    [event] = await chat(stream(bad))
    assert event.timings.predicted_n == 0


async def test_an_answer_that_breaks_off_is_an_error():
    with pytest.raises(RequestError, match="broke off before its end"):
        await chat(stream(chunk("half")))


async def test_an_error_in_the_stream_is_told_in_the_servers_words():
    with pytest.raises(RequestError, match="context is full"):
        await chat(stream(chunk("half"), {"error": {"message": "context is full"}}))
    with pytest.raises(RequestError, match="old form"):
        await chat(stream(chunk("half"), 'error: {"message": "old form"}'))


async def test_a_refused_request_is_told_in_the_servers_words():
    refusal = {"error": {"message": "\x1b[31mprompt too long", "code": 400}}
    with pytest.raises(RequestError) as caught:
        await chat(httpx.Response(400, json=refusal))
    assert caught.value.status == 400
    assert str(caught.value) == "the server answered 400: prompt too long"


async def test_garbage_is_an_error_and_not_a_crash():
    with pytest.raises(RequestError, match="not JSON"):
        await chat(stream("data: {nonsense"))


async def test_health_tells_loading_from_ready_from_silence():
    assert await client(httpx.Response(200, json={"status": "ok"})).health() is True
    assert await client(httpx.Response(503, json=LOADING)).health() is False

    def refuse(request):
        raise httpx.ConnectError("refused", request=request)

    def hang(request):
        raise httpx.ReadTimeout("slow", request=request)

    with pytest.raises(RequestError, match="does not accept connections"):
        await client(refuse).health()
    with pytest.raises(RequestError, match="in time"):
        await client(hang).health()


async def test_metrics_that_are_switched_off_are_told():
    refusal = {"error": {"message": "This server does not support metrics endpoint."}}
    with pytest.raises(RequestError, match="does not support metrics") as caught:
        await client(httpx.Response(501, json=refusal)).counters()
    assert caught.value.status == 501


async def test_real_slots():
    text = (CAPTURES / "b11434-draft-simple-slots-midrequest.json").read_text(encoding="utf-8")
    [slot] = await client(httpx.Response(200, text=text)).slots()
    assert (slot.id, slot.task, slot.busy, slot.speculative, slot.decoded) == (0, 1, True, True, 23)


async def test_slots_of_an_older_build():
    row = {"id": 2, "id_task": 9, "is_processing": True, "next_token": {"n_decoded": 5}}
    [slot] = await client(httpx.Response(200, json=[row, 3, {"id": "x"}])).slots()
    assert (slot.id, slot.task, slot.decoded, slot.speculative) == (2, 9, 5, False)


async def test_the_build_is_cleaned():
    answer = httpx.Response(200, json={"build_info": "b1-\x1b[1mabc"})
    assert await client(answer).build() == "b1-abc"
    assert await client(httpx.Response(200, json={})).build() == ""
