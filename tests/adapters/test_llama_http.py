"""The HTTP adapter on real streams of a real server, and on everything that can go wrong."""

import json
from pathlib import Path

import httpx
import pytest

from spectui.adapters.llama_http import LlamaClient
from spectui.domain.address import Access, Secret, parse_address
from spectui.domain.attached import LateError, NotLoadedError, Offer, ServerKind
from spectui.domain.errors import RequestError, SourceAbsentError
from spectui.domain.runs import Prompt
from spectui.domain.samples import speculates

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
    assert (slot.id, slot.task, slot.decoded, slot.speculative) == (2, 9, 5, None)


async def test_slots_of_ik_llama_number_their_states_and_say_nothing_of_speculation():
    rows = [
        {"id": 0, "id_task": -1, "state": 0, "next_token": {"n_decoded": 12}},
        {"id": 1, "id_task": 4, "state": 1, "next_token": {"n_decoded": 7}},
    ]
    idle, busy = await client(httpx.Response(200, json=rows)).slots()
    assert (idle.busy, busy.busy, busy.decoded) == (False, True, 7)
    assert speculates((idle, busy)) is None


async def test_the_build_is_cleaned():
    answer = httpx.Response(200, json={"build_info": "b1-\x1b[1mabc"})
    assert await client(answer).build() == "b1-abc"
    assert await client(httpx.Response(200, json={})).build() == ""


# -- a server that somebody else runs --------------------------------------------------------------

CANARY = "canary-5ecret"


def site(pages, **options):
    """Return a client of a server with these pages, and the list of what it is asked for.

    A page is a JSON value, a text, or a status.
    """
    asked = []

    def handler(request):
        asked.append(request.url.raw_path.decode())
        page = pages.get(request.url.path, 404)
        if isinstance(page, int):
            return httpx.Response(page, json={"error": {"message": f"no {request.url.path}"}})
        if isinstance(page, str):
            return httpx.Response(200, text=page)
        return httpx.Response(200, json=page)

    return LlamaClient("http://server", httpx.MockTransport(handler), **options), asked


PROPS = {"default_generation_settings": {}, "total_slots": 1, "build_info": "b1-x"}
ROUTER = {"role": "router", "build_info": "b2-y"}
LISTED = {"data": [{"id": "a", "aliases": ["first"], "status": {"value": "loaded"}}, {"id": "b"}]}


@pytest.mark.parametrize(
    ("pages", "kind", "model", "build"),
    [
        ({"/props": {**PROPS, "model_path": "/m/x.gguf"}}, ServerKind.LLAMA, "x.gguf", "b1-x"),
        ({"/props": {**PROPS, "model_alias": "org/m"}}, ServerKind.LLAMA, "org/m", "b1-x"),
        ({"/props": ROUTER, "/v1/models": LISTED}, ServerKind.ROUTER, "", "b2-y"),
        ({"/running": {"running": []}, "/v1/models": LISTED}, ServerKind.SWAP, "", ""),
        (
            {"/metrics": "vllm:num_requests_running 0\n", "/v1/models": LISTED},
            ServerKind.VLLM,
            "a",
            "",
        ),
        (
            {"/v1/models": {"data": [{"id": "m", "owned_by": "sglang"}]}},
            ServerKind.SGLANG,
            "m",
            "",
        ),
        ({"/props": 503}, ServerKind.LLAMA, "", ""),
    ],
)
async def test_what_answers_is_told_apart(pages, kind, model, build):
    found = await site({"/health": {}, **pages})[0].look()
    assert (found.kind, found.model, found.build) == (kind, model, build)
    assert not found.problem


async def test_a_path_repeated_as_the_alias_is_cut_to_its_file():
    pages = {"/props": {**PROPS, "model_path": "/home/me/x.gguf", "model_alias": "/home/me/x.gguf"}}
    assert (await site(pages)[0].look()).model == "x.gguf"


async def test_something_else_is_told_in_one_line():
    for pages in ({"/health": "OK"}, {"/health": 500}):
        with pytest.raises(RequestError, match="none of llama-server"):
            await site(pages)[0].look()


async def test_a_look_loads_no_model():
    found, asked = site({"/props": ROUTER, "/v1/models": LISTED})
    assert (await found.look()).models == (Offer("a", "loaded", ("first",)), Offer("b"))
    assert asked == ["/health", "/props", "/v1/models"]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("key", "said"), [("", "wants an API key"), (CANARY, "refuses this API")])
async def test_a_key_that_is_missing_or_wrong_is_told(status, key, said):
    found = await site({"/props": status}, access=Access(Secret(key)))[0].look("m")
    assert (found.kind, found.model) == (ServerKind.LLAMA, "m")
    assert f"the server answered {status}: it {said}" in found.problem
    with pytest.raises(RequestError, match=said):
        await site({"/v1/models": status}, access=Access(Secret(key)))[0].look()


async def test_a_router_is_asked_for_its_model_and_told_not_to_load_it():
    page = "llamacpp:tokens_predicted_total 7\n"
    options = {"kind": ServerKind.ROUTER, "model": "a"}
    found, asked = site({"/v1/models": LISTED, "/metrics": page, "/slots": []}, **options)
    assert await found.health() is True
    assert (await found.counters()).predicted == 7
    await found.slots()
    assert asked[1:] == ["/metrics?autoload=false&model=a", "/slots?autoload=false&model=a"]
    with pytest.raises(NotLoadedError, match="b is not loaded"):
        await site({"/v1/models": LISTED}, **options | {"model": "b"})[0].health()


async def test_llama_swap_is_asked_for_a_model_only_while_that_is_loaded():
    running = [{"model": "a/1", "state": "ready"}, {"model": "c", "state": "starting"}]
    page = "llamacpp:tokens_predicted_total 7\n"
    pages = {"/running": {"running": running}, "/upstream/a/1/metrics": page}
    found, asked = site(pages, kind=ServerKind.SWAP, model="a/1")
    assert (await found.counters()).predicted == 7
    assert asked == ["/running", "/upstream/a/1/metrics"]
    coming, asked = site(pages, kind=ServerKind.SWAP, model="c")
    assert await coming.health() is False
    stopped, asked = site(pages, kind=ServerKind.SWAP, model="b")
    for ask in (stopped.health, stopped.counters, stopped.slots, stopped.props):
        with pytest.raises(NotLoadedError, match="spectui never does"):
            await ask()
    with pytest.raises(NotLoadedError):
        [event async for event in stopped.chat(PROMPT, max_tokens=1, seed=1)]
    assert set(asked) == {"/running"}


async def test_early_llama_swap_lists_what_is_ready_without_its_state():
    pages = {"/running": {"running": [{"model": "a"}]}}
    assert await site(pages, kind=ServerKind.SWAP, model="a")[0].health() is True


async def test_the_others_have_no_slots():
    for kind in (ServerKind.VLLM, ServerKind.SGLANG):
        with pytest.raises(SourceAbsentError, match="has no slots"):
            await site({}, kind=kind)[0].slots()


async def test_a_stream_that_counts_tokens_only_is_timed_here():
    def usage(n):
        return chunk("x", usage={"completion_tokens": n})

    bodies = []

    def handler(request):
        bodies.append(json.loads(request.content))
        return stream(usage(1), usage(3), chunk("", "stop"), "data: [DONE]")

    found = LlamaClient("http://s", httpx.MockTransport(handler), kind=ServerKind.VLLM, model="m")
    events = [event async for event in found.chat(PROMPT, max_tokens=8, seed=1)]
    assert [e.timings and e.timings.predicted_n for e in events] == [1, 3, None]
    assert events[0].timings.predicted_ms == 0
    [body] = bodies
    assert body["model"] == "m"
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert not {"cache_prompt", "timings_per_token"} & body.keys()


async def test_a_prefix_and_the_parts_of_a_query_go_with_every_request():
    seen = []

    def handler(request):
        seen.append((str(request.url), request.headers.get("Authorization", "")))
        return httpx.Response(200, json=PROPS)

    address = parse_address(f"http://h:1/llm?token={CANARY}")
    found = LlamaClient(address.url, httpx.MockTransport(handler), access=address.access)
    await found.props()
    keyed = LlamaClient("http://h:1", httpx.MockTransport(handler), access=Access(Secret(CANARY)))
    await keyed.props()
    assert seen == [
        (f"http://h:1/llm/props?token={CANARY}", ""),
        ("http://h:1/props", f"Bearer {CANARY}"),
    ]


async def test_whatever_a_server_repeats_of_a_key_is_hidden():
    said = f"Invalid API Key {CANARY}, Bearer {CANARY}"
    access = Access(Secret(CANARY))

    def handler(request):
        pages = {
            "/props": {**PROPS, "model_alias": said, "build_info": said},
            "/v1/models": {"data": [{"id": said, "status": {"value": "loaded"}}]},
        }
        if request.url.path in pages:
            return httpx.Response(200, json=pages[request.url.path])
        if request.url.path == "/slots":
            return httpx.Response(200, text=said)
        return httpx.Response(401, json={"error": {"message": said}})

    found = LlamaClient("http://server", httpx.MockTransport(handler), access=access)
    told = [repr(await found.props()), repr(await found.models()), repr(await found.look())]
    for ask in (found.counters, found.slots):
        with pytest.raises(RequestError) as caught:
            await ask()
        told.append(repr(caught.value) + str(caught.value))
    with pytest.raises(RequestError) as caught:
        [event async for event in found.chat(PROMPT, max_tokens=1, seed=1)]
    told.append(repr(caught.value))
    assert CANARY not in "".join(told)
    assert "Invalid API Key …" in "".join(told)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "not trusted"),
        (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER]"), "does not speak TLS"),
        (httpx.ConnectError("Name or service not known"), "no machine of that name"),
        (httpx.ConnectError("[Errno 111] Connection refused"), "does not accept connections"),
        (httpx.RemoteProtocolError(f"Server disconnected {CANARY}"), "the connection broke"),
    ],
)
async def test_why_a_server_cannot_be_reached(error, said):
    def handler(request):
        raise error

    found = LlamaClient(
        "http://s", httpx.MockTransport(handler), access=Access(user=Secret(f"me:{CANARY}"))
    )
    with pytest.raises(RequestError, match=said) as caught:
        await found.health()
    assert caught.value.status is None
    assert CANARY not in str(caught.value)


async def test_late_is_not_gone():
    def handler(request):
        raise httpx.ReadTimeout("slow")

    with pytest.raises(LateError):
        await client(handler).counters()


async def test_an_answer_without_end_is_cut():
    async def endless():
        while True:
            yield b"x" * (1 << 20)

    with pytest.raises(RequestError, match="has no end"):
        await client(lambda _: httpx.Response(200, content=endless())).counters()
