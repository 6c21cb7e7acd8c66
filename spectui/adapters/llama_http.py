"""llama-server over HTTP.

The only module that imports httpx: its successor is import-compatible, and switching to it must
stay one line.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

import httpx

from spectui.adapters.prometheus import parse_metrics
from spectui.domain.acceptance import Counters
from spectui.domain.errors import RequestError
from spectui.domain.runs import Prompt
from spectui.domain.samples import Slot
from spectui.domain.text import clean
from spectui.domain.throughput import Timings

_HEALTH = 2.0
_METRICS = 15.0  # a busy server can take over 10 s, while /health takes 3 ms
_SLOTS = 5.0
_SILENCE = 600.0  # longest wait for the next piece of an answer: a long prompt on a slow machine


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a streamed answer."""

    text: str = ""
    timings: Timings | None = None
    finish: str = ""


class LlamaClient:
    """One server at ``url``. All methods raise RequestError, with the server's own words."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Connect lazily; ``transport`` replaces the network in tests."""
        self._http = httpx.AsyncClient(
            base_url=url,
            transport=transport,
            trust_env=False,  # a proxy of the environment must not see, or break, loopback
            timeout=httpx.Timeout(_HEALTH),
            # llama-server closes a connection when it likes, and a request sent into that moment
            # is lost; on loopback a new one costs a tenth of a millisecond
            limits=httpx.Limits(max_connections=8, max_keepalive_connections=0),
        )

    async def health(self) -> bool:
        """Return True when ready, False while loading."""
        answer = await self._get("/health", _HEALTH)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return False
        _raise_for(answer)
        return True

    async def counters(self) -> Counters:
        """Read /metrics."""
        answer = await self._get("/metrics", _METRICS)
        _raise_for(answer)
        return parse_metrics(answer.text)

    async def slots(self) -> tuple[Slot, ...]:
        """Read /slots."""
        answer = await self._get("/slots", _SLOTS)
        _raise_for(answer)
        data = _json(answer.text)
        rows = data if isinstance(data, list) else []
        return tuple(slot for row in rows if (slot := _slot(row)) is not None)

    async def build(self) -> str:
        """Return ``build_info`` of /props, empty where there is none."""
        answer = await self._get("/props", _SLOTS)
        _raise_for(answer)
        data = _json(answer.text)
        build = data.get("build_info", "") if isinstance(data, dict) else ""
        return clean(str(build), limit=80)

    async def chat(
        self, prompt: Prompt, *, max_tokens: int, seed: int
    ) -> AsyncGenerator[Event, None]:
        """Send one prompt and yield the events of its answer, the last one with ``finish``.

        An answer that breaks off before the server said it was done is a RequestError.
        """
        body = {
            "messages": [{"role": role, "content": text} for role, text in prompt.messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": seed,
            "cache_prompt": False,
            "stream": True,
            "timings_per_token": True,
        }
        timeout = httpx.Timeout(_HEALTH, read=_SILENCE)
        done = False
        try:
            request = self._http.stream("POST", "/v1/chat/completions", json=body, timeout=timeout)
            async with request as answer:
                if answer.status_code != httpx.codes.OK:
                    await answer.aread()
                    _raise_for(answer)
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        payload = line[5:].strip()
                        if payload == "[DONE]":
                            done = True
                        elif payload:
                            event = _event(payload)
                            done = done or bool(event.finish)
                            yield event
                    elif line.startswith("error:"):
                        raise RequestError(_message(_json(line[6:])) or clean(line, limit=300))
        except (httpx.HTTPError, RuntimeError) as error:
            raise _unreachable(error) from None
        if not done:
            raise RequestError("the answer broke off before its end", "see the log")

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def _get(self, path: str, limit: float) -> httpx.Response:
        try:
            return await self._http.get(path, timeout=limit)
        except (httpx.HTTPError, RuntimeError) as error:
            raise _unreachable(error) from None


def _unreachable(error: Exception) -> RequestError:
    """Return what a failure of the connection means.

    A RuntimeError means that the client was closed, since its server is gone.
    """
    if isinstance(error, httpx.TimeoutException):
        return RequestError("the server did not answer in time")
    if isinstance(error, httpx.ConnectError):
        return RequestError("the server does not accept connections")
    return RequestError("the connection broke", clean(str(error) or type(error).__name__))


def _raise_for(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    try:
        words = _message(_json(answer.text))
    except RequestError:
        words = clean(answer.text, limit=200)
    status = answer.status_code
    raise RequestError(f"the server answered {status}", words, status=status)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise RequestError("the server's answer is not JSON", clean(text, limit=80)) from None


def _message(data: object) -> str:
    """Return the text of ``{"error": {"message": …}}``, whichever part of it is there."""
    if isinstance(data, Mapping):
        inner = data.get("error", data)
        words = inner.get("message", "") if isinstance(inner, Mapping) else inner
        return clean(str(words), limit=300)
    return ""


def _event(payload: str) -> Event:
    data = _json(payload)
    if not isinstance(data, Mapping):
        return Event()
    if "error" in data:
        raise RequestError("the server broke off", _message(data))
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    choice = choice if isinstance(choice, Mapping) else {}
    delta = choice.get("delta")
    delta = delta if isinstance(delta, Mapping) else {}
    # a reasoning model's thoughts are tokens like any other
    pieces = (delta.get("reasoning_content"), delta.get("content"))
    return Event(
        text="".join(piece for piece in pieces if isinstance(piece, str)),
        timings=_timings(data.get("timings")),
        finish=str(choice.get("finish_reason") or ""),
    )


def _timings(data: object) -> Timings | None:
    if not isinstance(data, Mapping):
        return None

    def number(key: str) -> float:
        value = data.get(key, 0)
        return float(value) if isinstance(value, int | float) else 0.0

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


def _slot(row: object) -> Slot | None:
    if not isinstance(row, Mapping):
        return None
    next_token = row.get("next_token")
    if isinstance(next_token, list):  # builds before mid 2025 send the object itself
        next_token = next_token[0] if next_token else {}
    decoded = next_token.get("n_decoded", 0) if isinstance(next_token, Mapping) else 0
    ids = row.get("id"), row.get("id_task", -1)
    if not all(isinstance(value, int) for value in (*ids, decoded)):
        return None
    return Slot(
        id=int(ids[0] or 0),
        task=int(ids[1] or 0),
        busy=bool(row.get("is_processing")),
        speculative=bool(row.get("speculative")),
        decoded=int(decoded),
    )
