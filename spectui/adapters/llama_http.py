"""llama-server over HTTP, and what stands in its place: a router, llama-swap, vLLM, SGLang.

The only module that imports httpx: its successor is import-compatible, and switching to it must
stay one line.

A server that somebody else runs is only ever read, and never made to do anything: a router is told
not to load a model (``autoload=false``), and llama-swap, which loads whatever is asked for, is
asked first whether the model is there. What a server says is cleaned, and cleared of secrets,
before anybody sees it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

import httpx

from spectui.adapters.llama_json import (
    Event,
    Pace,
    mapping,
    parse_event,
    parse_offers,
    parse_props,
    parse_running,
    parse_slot,
    rows_of,
    said,
)
from spectui.adapters.prometheus import parse_metrics, server_of
from spectui.domain.acceptance import Counters
from spectui.domain.address import Access
from spectui.domain.attached import (
    IN_MEMORY,
    Found,
    LateError,
    NotLoadedError,
    Offer,
    Props,
    ServerKind,
)
from spectui.domain.errors import RequestError, SourceAbsentError
from spectui.domain.runs import Prompt
from spectui.domain.samples import Slot
from spectui.domain.text import clean

_HEALTH = 2.0
_METRICS = 15.0  # a busy server can take over 10 s, while /health takes 3 ms
_SLOTS = 5.0
_SILENCE = 600.0  # longest wait for the next piece of an answer: a long prompt on a slow machine
_LARGEST = 16 << 20  # bytes of an answer that are read; /slots of a busy server has some 100 kB

_COMING = frozenset({"loading", "starting", "downloading"})
_KEY = frozenset({401, 403})

logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole URLs, with secrets in them


@dataclass(frozen=True, slots=True)
class _Answer:
    """A whole answer, as text."""

    status: int
    text: str
    began: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class LlamaClient:
    """One server at ``url``. All methods raise RequestError, with the server's own words.

    ``model`` names the model to ask for where several live behind the address. ``began`` is the
    server's word on when it started, as of the last reading of the counters; empty where it does
    not say.
    """

    def __init__(
        self,
        url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        kind: ServerKind = ServerKind.LLAMA,
        model: str = "",
        access: Access | None = None,
    ) -> None:
        """Connect lazily; ``transport`` replaces the network in tests."""
        self._kind, self._model, self._access = kind, model, access or Access()
        self.began = ""
        authorization = self._access.authorization
        self._http = httpx.AsyncClient(
            base_url=url,
            transport=transport,
            trust_env=False,  # a proxy of the environment must not see, or break, loopback
            timeout=httpx.Timeout(_HEALTH),
            headers={"Authorization": authorization.reveal()} if authorization else None,
            # the machine's own certificates, and SSL_CERT_FILE
            verify=ssl.create_default_context() if url.startswith("https:") else True,
            # llama-server closes a connection when it likes, and a request sent into that moment
            # is lost; on loopback a new one costs a tenth of a millisecond
            limits=httpx.Limits(max_connections=8, max_keepalive_connections=0),
        )

    async def health(self) -> bool:
        """Return True when ready, False while loading. Raises NotLoadedError, LateError too."""
        if self._kind.has_models:
            return await self._model_is_here()
        answer = await self._get("/health", _HEALTH)
        if answer.status == httpx.codes.SERVICE_UNAVAILABLE:
            return False
        self._check(answer)
        return True

    async def counters(self) -> Counters:
        """Read /metrics."""
        answer = await self._ask("/metrics", _METRICS)
        self.began = answer.began
        # the others have one model each, whatever they call it
        return parse_metrics(answer.text, "" if self._kind.has_slots else self._model)

    async def slots(self) -> tuple[Slot, ...]:
        """Read /slots. Raises SourceAbsentError where there is no such thing."""
        if not self._kind.has_slots:
            raise SourceAbsentError(f"{self._kind} has no slots")
        data = self._json((await self._ask("/slots", _SLOTS)).text)
        rows = data if isinstance(data, list) else []
        return tuple(slot for row in rows if (slot := parse_slot(row, self._access)) is not None)

    async def props(self) -> Props:
        """Read /props, which neither wakes a sleeping server nor keeps it awake."""
        data = self._json((await self._ask("/props", _SLOTS)).text)
        return parse_props(data, self._access)

    async def build(self) -> str:
        """Return ``build_info`` of /props, empty where there is none."""
        return (await self.props()).build

    async def models(self) -> tuple[Offer, ...]:
        """Return the models that a router or llama-swap offers, with the state of each."""
        answer = await self._get("/v1/models", _SLOTS)
        self._check(answer)
        offers = parse_offers(self._json(answer.text), self._access)
        if self._kind is not ServerKind.SWAP:
            return offers
        running = await self._running()
        return tuple(replace(offer, state=running.get(offer.name, "")) for offer in offers)

    async def look(self, model: str = "") -> Found:
        """Find out what answers here, by reading only. ``model`` is the one that is wanted."""
        health = await self._get("/health", _SLOTS)
        props = await self._get("/props", _SLOTS)
        if props.status in _KEY or props.status == httpx.codes.SERVICE_UNAVAILABLE:
            problem = self._refusal(props) if props.status in _KEY else ""
            return Found(ServerKind.LLAMA, model, problem=problem)
        data = mapping(self._lenient(props)) if props.ok else {}
        if data.get("role") == "router":
            build = parse_props(data, self._access).build
            return await self._look_behind(ServerKind.ROUTER, model, build)
        if {"default_generation_settings", "total_slots", "build_info"} & data.keys():
            read = parse_props(data, self._access)
            return Found(ServerKind.LLAMA, read.model, read.build)
        running = await self._get("/running", _SLOTS)
        if running.status in _KEY or "running" in mapping(self._lenient(running)):
            self._check(running)
            return await self._look_behind(ServerKind.SWAP, model, "")
        return await self._look_elsewhere(model, alive=health.status < 500)

    async def _look_behind(self, kind: ServerKind, model: str, build: str) -> Found:
        self._kind = kind
        return Found(kind, model, build, models=await self.models())

    async def _look_elsewhere(self, model: str, *, alive: bool) -> Found:
        """Tell vLLM and SGLang by their metrics, else by who owns their models."""
        page = await self._get("/metrics", _METRICS)
        listed = await self._get("/v1/models", _SLOTS)
        data = self._lenient(listed)
        owner = str(mapping(next(iter(rows_of(data)), None)).get("owned_by", ""))
        whose = (server_of(page.text) if page.ok else "") or owner.lower()
        kinds = {"vllm": ServerKind.VLLM, "sglang": ServerKind.SGLANG}
        kinds |= dict.fromkeys(("llamacpp", "llama.cpp"), ServerKind.LLAMA)
        kind = kinds.get(whose)
        if kind is None:
            if listed.status in _KEY:
                raise RequestError(self._refusal(listed), status=listed.status)
            words = "something answers there" if alive else "the server is not well"
            raise RequestError(
                f"{words}, and it is none of llama-server, llama-swap, vLLM and SGLang",
                "is the address right, with its port and prefix?",
            )
        offers = parse_offers(data, self._access)
        name = model or next((offer.name for offer in offers), "")
        problem = self._refusal(listed) if listed.status in _KEY else ""
        return Found(kind, name, problem=problem, models=offers)

    async def chat(
        self, prompt: Prompt, *, max_tokens: int, seed: int
    ) -> AsyncGenerator[Event, None]:
        """Send one prompt and yield the events of its answer, the last one with ``finish``.

        An answer that breaks off before the server said it was done is a RequestError.
        """
        if self._kind.has_models and not await self._model_is_here():
            raise NotLoadedError(f"{self._model} is still being loaded")
        timeout = httpx.Timeout(_HEALTH, read=_SILENCE)
        done = False
        pace = Pace()
        try:
            request = self._http.stream(
                "POST",
                "/v1/chat/completions",
                json=self._body(prompt, max_tokens, seed),
                params=self._query(self._autoload()),
                timeout=timeout,
            )
            async with request as answer:
                if answer.status_code != httpx.codes.OK:
                    await answer.aread()
                    self._check(_Answer(answer.status_code, answer.text))
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        payload = line[5:].strip()
                        if payload == "[DONE]":
                            done = True
                        elif payload:
                            event = pace.timed(self._event(payload))
                            done = done or bool(event.finish)
                            yield event
                    elif line.startswith("error:"):
                        told = self._message(self._json(line[6:])) or self._clean(line)
                        raise RequestError(told)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            raise self._unreachable(error) from None
        if not done:
            raise RequestError("the answer broke off before its end", "see the log")

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    # -- asking ----------------------------------------------------------------------------------

    def _body(self, prompt: Prompt, max_tokens: int, seed: int) -> dict[str, object]:
        body: dict[str, object] = {
            "messages": [{"role": role, "content": text} for role, text in prompt.messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": seed,
            "stream": True,
        }
        if self._kind.has_slots:
            body |= {"cache_prompt": False, "timings_per_token": True}
        if self._kind is not ServerKind.LLAMA:
            usage = {"include_usage": True, "continuous_usage_stats": True}
            body |= {"model": self._model, "stream_options": usage}
        return body

    def _autoload(self) -> dict[str, str]:
        return {"autoload": "false"} if self._kind is ServerKind.ROUTER else {}

    async def _ask(self, path: str, limit: float) -> _Answer:
        """Ask the model's own server; behind llama-swap only if that does not load the model."""
        params = self._autoload()
        if self._kind is ServerKind.ROUTER:
            params["model"] = self._model
        elif self._kind is ServerKind.SWAP:
            if not await self._model_is_here():
                raise NotLoadedError(f"{self._model} is still being loaded")
            path = f"/upstream/{quote(self._model)}{path}"
        answer = await self._get(path, limit, params)
        self._check(answer)
        return answer

    async def _model_is_here(self) -> bool:
        """Return whether the model is loaded, False while it is being. Raises NotLoadedError."""
        if self._kind is ServerKind.SWAP:
            state = (await self._running()).get(self._model, "")
        else:
            offers = {offer.name: offer.state for offer in await self.models()}
            state = offers.get(self._model, "unknown to the server")
        if state in IN_MEMORY:
            return True
        if state in _COMING:
            return False
        raise NotLoadedError(
            f"{clean(self._model, limit=80)} is {state or 'not loaded'}",
            "its first request loads it; spectui never does",
        )

    async def _running(self) -> dict[str, str]:
        """Return llama-swap's models that are not stopped, with the state of each."""
        answer = await self._get("/running", _SLOTS)
        self._check(answer)
        return parse_running(self._json(answer.text), self._access)

    async def _get(self, path: str, limit: float, params: dict[str, str] | None = None) -> _Answer:
        try:
            async with asyncio.timeout(limit):
                # a query of the client's own would be lost where a request has one
                request = self._http.stream("GET", path, params=self._query(params), timeout=limit)
                async with request as answer:
                    content = b""
                    async for piece in answer.aiter_bytes():
                        content += piece
                        if len(content) > _LARGEST:
                            raise RequestError("the server's answer has no end")
                    began = answer.headers.get("Process-Start-Time-Unix", "")
                    text = content.decode("utf-8", "replace")
                    return _Answer(answer.status_code, text, began)
        except TimeoutError as error:
            raise self._unreachable(error) from None
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
            raise self._unreachable(error) from None

    def _query(self, params: dict[str, str] | None) -> dict[str, str]:
        return {name: value.reveal() for name, value in self._access.query} | (params or {})

    # -- what came back --------------------------------------------------------------------------

    def _clean(self, text: str, limit: int = 300) -> str:
        return said(text, self._access, limit)

    def _unreachable(self, error: Exception) -> RequestError:
        """Return what a failure of the connection means.

        A RuntimeError means that the client was closed, since its server is gone.
        """
        words = self._clean(str(error) or type(error).__name__, 120)
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return LateError("the server did not answer in time")
        if isinstance(error, httpx.ConnectError):
            if "CERTIFICATE_VERIFY_FAILED" in words:
                return RequestError(
                    "the server's certificate is not trusted",
                    "name its authority's file in SSL_CERT_FILE",
                )
            if "SSL" in words:
                return RequestError("the server does not speak TLS there", "try http://")
            if any(word in words for word in ("not known", "resolution", "No address", "nodename")):
                return RequestError("there is no machine of that name")
            return RequestError("the server does not accept connections")
        return RequestError("the connection broke", words)

    def _check(self, answer: _Answer) -> None:
        """Raise RequestError for anything but success."""
        if answer.ok:
            return
        try:
            words = self._message(self._json(answer.text))
        except RequestError:
            words = self._clean(answer.text, 200)
        raise RequestError(f"the server answered {answer.status}", words, status=answer.status)

    def _refusal(self, answer: _Answer) -> str:
        if self._access.key or self._access.user:
            return f"the server answered {answer.status}: it refuses this API key"
        return f"the server answered {answer.status}: it wants an API key"

    def _json(self, text: str) -> object:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            told = self._clean(text, 80)
            raise RequestError("the server's answer is not JSON", told) from None

    def _lenient(self, answer: _Answer) -> object:
        try:
            return self._json(answer.text) if answer.ok else None
        except RequestError:
            return None

    def _message(self, data: object) -> str:
        """Return the text of ``{"error": {"message": …}}``, whichever part of it is there."""
        if isinstance(data, Mapping):
            inner = data.get("error", data)
            words = inner.get("message", "") if isinstance(inner, Mapping) else inner
            return self._clean(str(words))
        return ""

    def _event(self, payload: str) -> Event:
        data = self._json(payload)
        if not isinstance(data, Mapping):
            return Event()
        if "error" in data:
            raise RequestError("the server broke off", self._message(data))
        return parse_event(data)
