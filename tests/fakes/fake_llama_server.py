"""A stand-in for llama-server that does what a test tells it to. Standard library only.

As a process, with llama-server's own flags::

    python tests/fakes/fake_llama_server.py -m x.gguf --port 8090 --metrics \
        --spec-type draft-simple -md d.gguf --spec-draft-n-max 4 \
        --fake tps=80 --fake time_scale=0.01

in a test's own process, and as a program to be found on the PATH::

    with FakeLlamaServer("--metrics", tps=80) as server: get(server.url + "/health")
    binary = install(tmp_path, tps=80, time_scale=0.01)

Flags are read loosely: unknown ones are ignored. Options come from the environment variable
FAKE_LLAMA (one JSON object), then from ``--fake key=value`` (the value as JSON, else as text), then
from the ``if_…`` options. All times are in seconds of the clock unless they say otherwise.

Speed and drafting
    tps              speed of the baseline, tok/s (50)
    prompt_tps       speed of prompt processing, tok/s (500)
    time_scale       how long a simulated second lasts: 0.01 answers 100 times as fast (1)
    speedup          speed over the baseline: a number, or {"4": 1.3, "8": 1.1} by draft length,
                     in between by interpolation; without it the step costs below apply
    overhead, draft_cost, verify_cost   cost of a step with k drafted tokens, in plain steps:
                     1 + overhead + k (draft_cost + verify_cost) (0.05, 0.2, 0.1); n-gram types
                     draft for nothing
    rates            unconditional acceptance by position (0.95, 0.915, … 0.72), carried on by its
                     last ratio; --spec-synth-rates wins
    draft_chance     how many of the steps draft at all (1)
    noise            sigma of a log-normal factor on each request's speed (0)
    prompt_spread    the same by prompt: equal in every launch, so pairing removes it (0)
    seed             of all draws (1)
    baseline_drafts  draft this many tokens although the type is none (0)
    not_speculating  speculation asked for but not done, as with an unfit draft model (false)
    answer_tokens    stop after so many tokens, where that is below max_tokens
    pieces           texts to use as tokens, in turn; else words chosen by the prompt
    diverge_at       the token from which text differs from the baseline's when speculating

Starting
    refuse_connect_seconds, load_seconds   not listening, then 503 "Loading model" (0, 0)
    exit_code, exit_signal, exit_after     end like this while loading, after so many seconds
    fail_if_n_max_above   exit 1 as if out of GPU memory, where the draft length is higher
    log              lines to print while starting
    log_flood        so many kilobytes of log after starting, and as many with each request
    reject           flags to call invalid arguments
    removed          {"--draft-max": "use --spec-draft-n-max"}: flags to call removed
    ignore_sigterm   true: only SIGKILL ends it
    build            what /props and --version call the build ("b11434-fake")
    help_file        what --help prints
    if_baseline, if_speculative    objects of options for launches without, with speculation
    if_length        {"8": {…}}: by draft length
    if_launch        {"2": {…}}: by the number of the launch, counted in the file launches_file

Answering
    crash_after_requests   end after so many chat requests, by crash_code (1) or crash_signal
    crash_at_token   and not between requests but at this token of the next one
    hang             {"/metrics": 12}: wait before answering; hang_while_busy: only during a request
    status           {"/slots": 500}: answer with an error
    fail_requests    [3]: these chat requests (from 1) get a 500
    no_timings, malformed_sse      a stream without timings; with garbage between its events
    truncate_at_token, stream_error_at_token   cut the connection; send an error event
    spec_total       false: spec_decode counters without the suffix _total
    spec_counters    false: none at all, as in older builds
    start            {"predicted": 1234567, "accepted_at": [9, 8]}: counters already there; names of
                     Counters' fields
    slots_old        true: next_token is an object and not a list
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Self

WORDS = (
    *("the", "a", "model", "token", "drafts", "text", "while", "it"),
    *("reads", "and", "then", "writes", "what", "comes", "next", "."),
)
RATES = (0.95, 0.915, 0.88, 0.835, 0.79, 0.767, 0.743, 0.72)
LENGTHS = {
    "draft": ("--spec-draft-n-max", 3),
    "ngram-simple": ("--spec-ngram-simple-size-m", 48),
    "ngram-map-k": ("--spec-ngram-map-k-size-m", 48),
    "ngram-map-k4v": ("--spec-ngram-map-k4v-size-m", 48),
    "ngram-mod": ("--spec-ngram-mod-n-max", 64),
    "ngram-cache": ("", 8),
}
ALIASES = {
    "--model": "-m",
    "--model-draft": "-md",
    "--spec-draft-model": "-md",
    "--parallel": "-np",
}
PARAMS = {
    "seed": 4294967295, "temperature": 0.0, "top_k": 40, "max_tokens": -1, "n_predict": -1,
    "stream": True, "speculative.types": "none", "timings_per_token": True, "lora": [],
}  # fmt: skip
HELP = {
    "prompt_tokens_total": "Number of prompt tokens processed, excluding cached tokens",
    "prompt_tokens_cached_total": "Number of prompt tokens reused from the cache",
    "prompt_seconds_total": "Total time spent processing prompts",
    "tokens_predicted_total": "Number of generation tokens processed",
    "tokens_predicted_seconds_total": "Total time spent generating tokens",
    "n_decode_total": "Total number of llama_decode() calls, excluding speculative decoding and"
    " multimodal decoding",
    "n_tokens_max": "Largest observed sequence length (prompt + generation)",
    "spec_decode_num_draft_tokens_total": "Speculative: Total draft tokens generated",
    "spec_decode_num_accepted_tokens_total": "Speculative: Total draft tokens accepted by the"
    " target model",
    "spec_decode_num_drafts_total": "Speculative: Total speculative decoding verification steps",
    "prompt_tokens_seconds": "Average prompt throughput in tokens/s",
    "predicted_tokens_seconds": "Average generation throughput in tokens/s",
    "requests_processing": "Number of requests processing",
    "requests_deferred": "Number of requests deferred",
    "n_busy_slots_per_decode": "Average number of busy slots per llama_decode() call",
    "spec_decode_num_accepted_tokens_per_pos_total": "Accepted tokens per draft position",
}
GAUGES = ("tokens_seconds", "requests_processing", "requests_deferred", "n_busy_slots_per_decode")


class Flags:
    """A command line, read loosely: every option may have one value; repeats keep the last."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.values: dict[str, str] = {}
        self.types: list[str] = []
        self.fake: dict[str, Any] = {}
        rest = list(argv)
        while rest:
            name = rest.pop(0)
            name = ALIASES.get(name, name)
            takes = rest and (not rest[0].startswith("-") or rest[0][1:2].isdigit())
            value = rest.pop(0) if takes and name.startswith("-") else ""
            self.values[name] = value
            if name == "--spec-type":
                self.types += [one for one in value.split(",") if one != "none"]
            if name == "--fake":
                key, _, text = value.partition("=")
                self.fake[key] = _json_or_text(text)

    def number(self, name: str, default: int) -> int:
        return int(self.values.get(name) or default)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _limit(body: dict[str, Any]) -> int:
    """Return the most tokens a request asks for, -1 for no limit."""
    return int(body.get("max_tokens", body.get("n_predict", -1)))


@dataclass
class Slot:
    """One slot; ``task`` None until its first request."""

    id: int
    task: int | None = None
    busy: bool = False
    prompt_n: int = 0
    decoded: int = 0
    max_tokens: int = -1


@dataclass
class Totals:
    """What /metrics counts, by the names of Counters' fields where it has them."""

    predicted: float = 0
    predicted_seconds: float = 0
    prompt: float = 0
    prompt_seconds: float = 0
    drafted: float = 0
    accepted: float = 0
    drafts: float = 0
    accepted_at: list[int] = field(default_factory=list)
    calls: int = 0
    longest: int = 0
    # what the gauges of speed cover: tokens and seconds since they were last read
    fresh: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass
class Answer:
    """One request as it goes: times in milliseconds of the simulation."""

    number: int
    prompt_n: int
    prompt_ms: float
    max_tokens: int
    texts: random.Random
    draws: random.Random
    slow: float  # factor on the time of every step
    tokens: int = 0
    ms: float = 0.0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    drafts: int = 0
    accepted_at: list[int] = field(default_factory=list)

    def timings(self) -> dict[str, Any]:
        """Return the object as the server sends it: draft counts are absent while they are 0."""
        rest = self.tokens - 1  # the first token comes out of the prompt's own pass
        made = {
            "cache_n": 0,
            "prompt_n": self.prompt_n,
            "prompt_ms": round(self.prompt_ms, 3),
            "prompt_per_token_ms": self.prompt_ms / self.prompt_n,
            "prompt_per_second": self.prompt_n / self.prompt_ms * 1000,
            "predicted_n": self.tokens,
            "predicted_ms": round(max(self.ms, 0.001), 3),
            "predicted_per_token_ms": self.ms / rest if rest > 0 else 0.0,
            "predicted_per_second": rest / self.ms * 1000 if rest > 0 and self.ms else 0.0,
        }
        if self.drafted:
            made |= {"draft_n": self.drafted, "draft_n_accepted": self.accepted}
        return made


class FakeLlamaServer:
    """The server itself. ``start()`` it in a thread of this process, or ``main()`` runs it as one.

    ``url`` and ``port`` are known after ``start()``; port 0 picks a free one. Counts of requests
    by path are in ``asked``, bodies of chat requests in ``bodies``.
    """

    def __init__(self, *argv: str, **options: Any) -> None:
        self.flags = Flags(argv)
        kinds = self.flags.types
        flag, default = LENGTHS.get(kinds[0], LENGTHS["draft"]) if kinds else ("", 0)
        self.length = self.flags.number(flag, default) if kinds else 0
        options = {**options, **self.flags.fake}
        options |= options.get("if_speculative" if kinds else "if_baseline", {})
        options |= options.get("if_length", {}).get(str(self.length), {})
        if "launches_file" in options:
            count = Path(options["launches_file"])
            launch = int(count.read_text() if count.exists() else 0) + 1
            count.write_text(str(launch))
            options |= options.get("if_launch", {}).get(str(launch), {})
        self.options = options
        silent = self.get("not_speculating", False)
        self.draft_length = int(self.get("baseline_drafts", 0)) if not kinds else self.length
        self.draft_length = 0 if silent else self.draft_length
        self.speculative = bool(kinds) and not silent
        self.rates = self._rates()
        self.began = time.monotonic()
        self.loading = True
        self.totals = Totals(**self.get("start", {}))
        slots = self.flags.number("-np", 4)
        self.slots = [Slot(i) for i in range(slots)]
        self.free = threading.Semaphore(slots)
        self.lock = threading.Lock()
        self.waiting = 0
        self.task = -1
        self.chats = 0
        self.asked: dict[str, int] = {}
        self.bodies: list[dict[str, Any]] = []
        self.die: Callable[[], None] = self._die_in_process
        self.server: _Http | None = None
        self.thread: threading.Thread | None = None

    def get(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)

    def _rates(self) -> list[float]:
        given = self.flags.values.get("--spec-synth-rates")
        rates = [float(r) for r in (given.split(",") if given else self.get("rates", RATES))]
        ratio = rates[-1] / rates[-2] if len(rates) > 1 and rates[-2] else rates[-1]
        while len(rates) < self.draft_length:
            rates.append(rates[-1] * ratio)
        return rates[: self.draft_length]

    # --- the life of the process

    @property
    def port(self) -> int:
        assert self.server
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Listen on a free port, or on --port, in a thread; with ``load_seconds`` it loads there."""
        self.bind(self.flags.number("--port", 0))
        assert self.server
        seconds = self.get("load_seconds", 0)
        if seconds:
            self.server.later = threading.Timer(seconds, self.ready)
            self.server.later.daemon = True
            self.server.later.start()
        else:
            self.ready()
        return self

    def bind(self, port: int) -> None:
        """Listen, and answer 503 until ``ready()``; OSError where the port is taken."""
        self.server = _Http(self, (self.flags.values.get("--host") or "127.0.0.1", port))
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.thread.start()

    def ready(self) -> None:
        self.loading = False

    def stop(self) -> None:
        """Cut every connection and free the port."""
        if self.server and self.thread:
            server, self.server = self.server, None
            server.close_all()
            self.thread.join()

    def _die_in_process(self) -> None:
        threading.Thread(target=self.stop, daemon=True).start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log(self, text: str, level: str = "I") -> None:
        """Print one line as llama-server does: minutes, seconds, milliseconds, microseconds."""
        verbosity = self.flags.number("-lv", self.flags.number("--verbosity", 3))
        if self.die != self._die_in_process and "EWI".find(level) < verbosity:
            us = int((time.monotonic() - self.began) * 1e6)
            stamp = (
                f"{us // 60000000}.{us // 1000000 % 60:02}.{us // 1000 % 1000:03}.{us % 1000:03}"
            )
            sys.stderr.write(f"{stamp} {level} {text}\n")
            sys.stderr.flush()

    def flood(self) -> None:
        for n in range(int(self.get("log_flood", 0)) * 10):
            self.log(f"srv  update_slots: {n:05} " + "x" * 70)

    # --- one answer

    def draw(self, body: dict[str, Any]) -> Answer:
        """Return an answer that has not begun; its draws depend on seed, prompt and arm only."""
        prompt = json.dumps(body.get("messages", body.get("prompt", "")))
        seed = self.get("seed", 1)
        by_prompt = random.Random(hashlib.sha256(f"{seed}{prompt}".encode()).digest())
        draws = random.Random(
            hashlib.sha256(f"{seed}{prompt}{self.draft_length}".encode()).digest()
        )
        spread = by_prompt.gauss(0, 1) * self.get("prompt_spread", 0)
        noise = draws.gauss(0, 1) * self.get("noise", 0)
        size = max(1, len(prompt) // 4)
        most = _limit(body)
        most = min(most if most >= 0 else 128, int(self.get("answer_tokens", 1 << 30)))
        return Answer(
            self.chats,
            size,
            size / self.get("prompt_tps", 500) * 1000,
            most,
            texts=by_prompt,
            draws=draws,
            slow=math.exp(spread + noise),
            accepted_at=[0] * self.draft_length,
        )

    def step_cost(self, drafted: int) -> float:
        """Return the time of one step in plain steps."""
        if not drafted:
            return 1.0
        gain = self.get("speedup")
        if gain is not None:
            expected = 1 + sum(self.rates)
            return expected / (gain if isinstance(gain, int | float) else self._between(gain))
        own = 0.0 if self.flags.types and self.flags.types[0].startswith("ngram") else 0.2
        each = self.get("draft_cost", own) + self.get("verify_cost", 0.1)
        return float(1 + self.get("overhead", 0.05) + drafted * each)

    def _between(self, gains: dict[str, float]) -> float:
        known = sorted((int(length), gain) for length, gain in gains.items())
        low = max((k for k in known if k[0] <= self.draft_length), default=known[0])
        high = min((k for k in known if k[0] >= self.draft_length), default=known[-1])
        share = (self.draft_length - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 0
        return low[1] + share * (high[1] - low[1])

    def step(self, answer: Answer) -> list[str]:
        """Make one step and return its tokens' texts; they all share the time of the step."""
        if not answer.tokens:
            answer.tokens = 1
            return [self.text(answer, 1)]
        left = answer.max_tokens - answer.tokens
        k = min(self.draft_length, left - 1)
        if k <= 0 or answer.draws.random() >= self.get("draft_chance", 1.0):
            k = 0
        luck = answer.draws.random()
        hit = 0
        while hit < k and luck < self.rates[hit]:
            answer.accepted_at[hit] += 1
            hit += 1
        answer.steps += 1
        answer.drafted += k
        answer.accepted += hit
        answer.drafts += k > 0
        answer.ms += 1000 / self.get("tps", 50) * answer.slow * self.step_cost(k)
        answer.tokens += hit + 1
        return [self.text(answer, n) for n in range(answer.tokens - hit, answer.tokens + 1)]

    def text(self, answer: Answer, n: int) -> str:
        pieces = self.get("pieces")
        if pieces:
            return str(pieces[(n - 1) % len(pieces)])
        word = answer.texts.choice(WORDS)
        split = self.get("diverge_at")
        return " " + (word.upper() if split and self.draft_length and n >= split else word)

    def book_prompt(self, answer: Answer) -> None:
        """Prompt tokens are counted as soon as the prompt is done."""
        t = self.totals
        t.prompt += answer.prompt_n
        t.prompt_seconds += answer.prompt_ms / 1000
        t.calls += 1
        n, s = t.fresh.get("prompt", (0, 0))
        t.fresh["prompt"] = (n + answer.prompt_n, s + answer.prompt_ms / 1000)

    def book(self, answer: Answer) -> None:
        """Everything else is counted when the request ends, however it ends."""
        t = self.totals
        t.predicted += answer.tokens
        t.predicted_seconds += answer.ms / 1000
        t.drafted += answer.drafted
        t.accepted += answer.accepted
        t.drafts += answer.drafts
        n, s = t.fresh.get("predicted", (0, 0))
        t.fresh["predicted"] = (n + max(0, answer.tokens - 1), s + answer.ms / 1000)
        if answer.drafts:
            t.accepted_at += [0] * (self.draft_length - len(t.accepted_at))
            for i, count in enumerate(answer.accepted_at):
                t.accepted_at[i] += count

    # --- pages

    def metrics(self) -> str:
        """Return the page in the server's order; reading it resets the gauges of speed."""
        t = self.totals
        busy = sum(slot.busy for slot in self.slots)
        fresh, t.fresh = t.fresh, {}
        speed = {name: n / s if s else 0 for name, (n, s) in fresh.items()}
        values = (
            t.prompt, 0, t.prompt_seconds, t.predicted, t.predicted_seconds, t.calls, t.longest,
            t.drafted, t.accepted, t.drafts, speed.get("prompt", 0), speed.get("predicted", 0),
            busy, self.waiting, int(t.calls > 0),
        )  # fmt: skip
        page = []
        per_pos = list(HELP)[-1]
        for name, value in zip(HELP, values, strict=False):
            page += self._lines(name, [f" {value:g}"])
        if t.accepted_at:
            rows = [f'{{position="{i}"}} {n}' for i, n in enumerate(t.accepted_at)]
            page += self._lines(per_pos, rows)
        return "".join(page)

    def _lines(self, name: str, rows: list[str]) -> list[str]:
        kind = "gauge" if name.endswith(GAUGES) else "counter"
        full = f"llamacpp:{name}"
        if name.startswith("spec_decode"):
            if not self.get("spec_counters", True):
                return []
            if not self.get("spec_total", True):
                full = full.removesuffix("_total")
        return [
            f"# HELP {full} {HELP[name]}\n# TYPE {full} {kind}\n",
            *(f"{full}{row}\n" for row in rows),
        ]

    def slots_page(self) -> list[dict[str, Any]]:
        rows = []
        for slot in self.slots:
            row: dict[str, Any] = {
                "id": slot.id,
                "n_ctx": 2048,
                "speculative": self.speculative,
                "is_processing": slot.busy,
            }
            if slot.task is not None:
                types = ",".join(["none", *self.flags.types])
                left = {"max_tokens": slot.max_tokens, "n_predict": slot.max_tokens}
                token = {
                    "has_next_token": slot.busy,
                    "has_new_line": slot.busy,
                    "n_remain": slot.max_tokens - slot.decoded if slot.busy else -1,
                    "n_decoded": slot.decoded if slot.busy else 0,
                }
                row |= {
                    "id_task": slot.task,
                    "n_prompt_tokens": slot.prompt_n + max(0, slot.decoded - 1),
                    "n_prompt_tokens_processed": slot.prompt_n if slot.busy else 0,
                    "n_prompt_tokens_cache": 0,
                    "params": {**PARAMS, **left, "speculative.types": types},
                    "next_token": token if self.get("slots_old") else [token],
                }
            rows.append(row)
        return rows

    def props(self) -> dict[str, Any]:
        path = self.flags.values.get("-m", "")
        return {
            "default_generation_settings": {"params": PARAMS, "n_ctx": 2048},
            "total_slots": len(self.slots),
            "model_alias": Path(path).name,
            "model_path": path,
            "endpoint_slots": "--no-slots" not in self.flags.values,
            "endpoint_props": False,
            "endpoint_metrics": "--metrics" in self.flags.values,
            "build_info": self.get("build", "b11434-fake"),
            "is_sleeping": False,
        }


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # llama-server refuses a taken port; so must this one, but not a port in TIME_WAIT
    allow_reuse_address = True
    later: threading.Timer | None = None

    def __init__(self, fake: FakeLlamaServer, address: tuple[str, int]) -> None:
        self.fake = fake
        self.open: set[socket.socket] = set()
        self.workers: list[threading.Thread] = []
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking DNS for this machine's name, as the base class does."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        worker = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        self.workers.append(worker)
        worker.start()

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a client went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def close_all(self) -> None:
        if self.later:
            self.later.cancel()
        self.shutdown()
        self.server_close()
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for worker in self.workers:
            if worker is not threading.current_thread():
                worker.join(timeout=5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 5  # an idle connection is closed after it, as by the real one
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def version_string(self) -> str:
        return "llama.cpp"

    def do_GET(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def _route(self) -> None:
        fake = self.server.fake
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fake.asked[path] = fake.asked.get(path, 0) + 1
        wait = fake.get("hang", {}).get(path, 0)
        if wait and (not fake.get("hang_while_busy") or any(s.busy for s in fake.slots)):
            self._sleep(wait)
        status = fake.get("status", {}).get(path)
        if fake.loading:
            self._error(503, "Loading model", "unavailable_error")
        elif status:
            self._error(status, "scripted failure", "server_error")
        elif path == "/health":
            self._json({"status": "ok"})
        elif not self._allowed():
            self._error(401, "Invalid API Key", "authentication_error")
        elif path in {"/v1/chat/completions", "/chat/completions"} and self.command == "POST":
            self._chat(body)
        else:
            self._page(path)

    def _page(self, path: str) -> None:
        fake, given = self.server.fake, self.server.fake.flags.values
        say = "This server does not support {0} endpoint. Start it with `--{0}`"
        if path == "/metrics" and "--metrics" not in given:
            self._error(501, say.format("metrics"), "not_supported_error")
        elif path == "/slots" and "--no-slots" in given:
            self._error(501, say.format("slots"), "not_supported_error")
        elif path == "/metrics":
            with fake.lock:
                page = fake.metrics()
            self._send(200, page.encode(), "text/plain; version=0.0.4")
        elif path == "/slots":
            with fake.lock:
                slots = fake.slots_page()
            self._json(slots)
        elif path == "/props":
            self._json(fake.props())
        elif path == "/v1/models":
            self._json({"object": "list", "data": [{"id": fake.props()["model_alias"]}]})
        else:
            self._error(404, "File Not Found", "not_found_error")

    def _allowed(self) -> bool:
        key = self.server.fake.flags.values.get("--api-key")
        return not key or self.headers.get("Authorization") == f"Bearer {key}"

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status >= 400:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _json(self, value: Any, status: int = 200) -> None:
        text = json.dumps(value, separators=(",", ":"))
        self._send(status, text.encode(), "application/json; charset=utf-8")

    def _error(self, status: int, message: str, kind: str) -> None:
        self._json({"error": {"message": message, "type": kind, "code": status}}, status)

    def _sleep(self, seconds: float) -> None:
        """Sleep in slices, so that stop() need not wait for a scripted hang."""
        end = time.monotonic() + seconds
        while self.server.fake.server is not None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))

    # --- chat

    def _chat(self, raw: bytes) -> None:
        fake = self.server.fake
        try:
            body = json.loads(raw)
        except ValueError:
            self._error(
                400, "[json.exception.parse_error.101] parse error", "invalid_request_error"
            )
            return
        with fake.lock:
            fake.chats += 1
            number = fake.chats
            fake.bodies.append(body)
            answer = fake.draw(body)
            fake.waiting += 1
        if number in fake.get("fail_requests", ()):
            with fake.lock:
                fake.waiting -= 1
            self._error(500, "scripted failure", "server_error")
            return
        fake.free.acquire()
        with fake.lock:
            fake.waiting -= 1
            fake.task += 1
            slot = next(s for s in reversed(fake.slots) if not s.busy)
            slot.task, slot.busy, slot.decoded = fake.task, True, 0
            slot.prompt_n, slot.max_tokens = answer.prompt_n, answer.max_tokens
        try:
            self._answer(body, answer, slot)
        finally:
            with fake.lock:
                fake.book(answer)
                slot.busy = False
            fake.free.release()
        fake.flood()
        if fake.get("crash_after_requests") == number and not fake.get("crash_at_token"):
            fake.die()

    def _answer(self, body: dict[str, Any], answer: Answer, slot: Slot) -> None:
        fake = self.server.fake
        said = f"id {slot.id:2} | task {slot.task} |"
        fake.log(f"slot launch_slot_: {said} processing task, is_child = 0")
        began = time.monotonic()
        scale = fake.get("time_scale", 1.0)
        self._sleep(answer.prompt_ms / 1000 * scale)
        with fake.lock:
            fake.book_prompt(answer)
        stream = _Stream(self, body, fake) if body.get("stream") else None
        texts = []
        if stream:
            stream.open()
        while answer.tokens < answer.max_tokens:
            before = answer.tokens
            new = fake.step(answer)
            self._sleep(began + (answer.prompt_ms + answer.ms) / 1000 * scale - time.monotonic())
            with fake.lock:
                slot.decoded = answer.tokens
                fake.totals.calls += before > 0
                longest = answer.prompt_n + answer.tokens - 1
                fake.totals.longest = max(fake.totals.longest, longest)
            texts += new
            for n, text in enumerate(new, start=before + 1):
                if fake.get("crash_at_token") == n and self._due(answer.number):
                    fake.die()
                    self.close_connection = True
                    return
                if stream and not stream.token(text, n, answer):
                    return
        finish = "length" if answer.max_tokens == _limit(body) else "stop"
        self._log_end(said, answer)
        if stream:
            stream.close(finish, answer)
            return
        message = {"role": "assistant", "content": "".join(texts)}
        made = {
            "choices": [{"finish_reason": finish, "index": 0, "message": message}],
            **fake_id(fake, "chat.completion"),
            "usage": {
                "completion_tokens": answer.tokens,
                "prompt_tokens": answer.prompt_n,
                "total_tokens": answer.tokens + answer.prompt_n,
            },
        }
        self._json(made if fake.get("no_timings") else {**made, "timings": answer.timings()})

    def _due(self, number: int) -> bool:
        return number > int(self.server.fake.get("crash_after_requests", 0))

    def _log_end(self, said: str, a: Answer) -> None:
        log = self.server.fake.log
        head = f"slot print_timing: {said}"
        for name, ms, n in (
            ("prompt eval", a.prompt_ms, a.prompt_n),
            ("       eval", a.ms, a.tokens),
        ):
            each = ms / n if n else 0
            log(
                f"{head} {name} time = {ms:10.2f} ms / {n:5} tokens"
                f" ({each:8.2f} ms per token, {1000 / each if each else 0:8.2f} tokens per second)"
            )
        log(
            f"{head}       total time = {a.prompt_ms + a.ms:10.2f} ms / {a.prompt_n + a.tokens} tokens"
        )
        if a.drafted:
            log(
                f"{head} draft acceptance = {a.accepted / a.drafted:.5f} ({a.accepted:5} accepted /"
                f" {a.drafted:5} generated), mean len = {1 + a.accepted / a.drafts:5.2f}"
            )
        log(f"slot      release: {said} stop processing: truncated = 0")


def fake_id(fake: FakeLlamaServer, kind: str) -> dict[str, Any]:
    """Return the fields that every answer carries."""
    return {
        "created": int(time.time()),
        "id": f"chatcmpl-{fake.chats:032}",
        "model": fake.props()["model_alias"],
        "system_fingerprint": fake.get("build", "b11434-fake"),
        "object": kind,
    }


class _Stream:
    """Server-sent events in chunks."""

    def __init__(self, handler: _Handler, body: dict[str, Any], fake: FakeLlamaServer) -> None:
        self.handler, self.fake = handler, fake
        self.each = bool(body.get("timings_per_token")) and not fake.get("no_timings")
        self.head = fake_id(fake, "chat.completion.chunk")

    def open(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        self.send(self.event({"role": "assistant", "content": None}))

    def event(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"finish_reason": finish, "index": 0, "delta": delta}
        return {"choices": [choice], **self.head}

    def send(self, event: dict[str, Any] | str) -> None:
        text = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
        data = f"data: {text}\n\n".encode()
        self.handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def token(self, text: str, n: int, answer: Answer) -> bool:
        """Send one token, with the time of its step; False where the script cuts the stream."""
        if self.fake.get("truncate_at_token") == n:
            self.handler.close_connection = True
            return False
        if self.fake.get("stream_error_at_token") == n:
            self.send(
                {"error": {"code": 500, "message": "scripted failure", "type": "server_error"}}
            )
            self.end()
            return False
        if self.fake.get("malformed_sse") and n % 3 == 0:
            self.send('{"choices": [{"delta": ')
            self.send('"\\ud800"' if n % 2 else "[1, 2")
        event = self.event({"content": text})
        if self.each:
            whole = answer.tokens
            answer.tokens = n
            event["timings"] = answer.timings()
            answer.tokens = whole
        self.send(event)
        return True

    def close(self, finish: str, answer: Answer) -> None:
        last = self.event({}, finish)
        if not self.fake.get("no_timings"):
            last["timings"] = answer.timings()
        self.send(last)
        self.send("[DONE]")
        self.end()

    def end(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")


# --- as a process


def install(folder: Path, name: str = "llama-server", **options: Any) -> Path:
    """Write an executable that runs this file with ``options``, and return its path."""
    program = folder / name
    env = json.dumps(options).replace("'", "'\\''")
    program.write_text(
        f"#!/bin/sh\nFAKE_LLAMA='{env}' exec '{sys.executable}' -S -E '{Path(__file__).resolve()}'"
        ' "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def _end(code: int | None, by_signal: int | str | None) -> None:
    sys.stderr.flush()
    if by_signal is not None:
        number = getattr(signal, by_signal) if isinstance(by_signal, str) else int(by_signal)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(5)
    os._exit(1 if code is None else code)


def _complain(argv: tuple[str, ...], fake: FakeLlamaServer) -> None:
    """End with status 1 on the first flag that the script refuses."""
    for flag in argv:
        if flag in fake.get("removed", {}):
            why = fake.get("removed")[flag]
            say = f'error while handling argument "{flag}": the argument has been removed. {why}'
            sys.stderr.write(f"{say}\n\nto show complete usage, run with -h\n")
            _end(1, None)
        if flag in fake.get("reject", ()):
            sys.stderr.write(f"error: invalid argument: {flag}\n")
            _end(1, None)


def _start_up(fake: FakeLlamaServer) -> None:
    flags, get = fake.flags, fake.get
    model = flags.values.get("-m", "")
    fake.log("srv  llama_server: initializing ...")
    fake.log("cmn  common_param: common_params_print_info: verbosity = 3")
    time.sleep(get("refuse_connect_seconds", 0))
    port = flags.number("--port", 8080)
    try:
        fake.bind(port)
    except OSError:
        where = f"hostname: {flags.values.get('--host') or '127.0.0.1'}, port: {port}"
        fake.log(f"srv         start: couldn't bind HTTP server socket, {where}", "E")
        fake.log("srv  llama_server: exiting due to HTTP server error", "E")
        _end(1, None)
    fake.log(f"srv    load_model: loading model '{model}'")
    for line in get("log", ()):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    if get("exit_code") is not None or get("exit_signal") is not None:
        time.sleep(get("exit_after", 0))
        _end(get("exit_code"), get("exit_signal"))
    time.sleep(get("load_seconds", 0))
    most = get("fail_if_n_max_above")
    if most is not None and fake.length > most:
        say = "allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory"
        fake.log(f"ggml_backend_cuda_buffer_type_alloc_buffer: {say}", "E")
        fake.log("srv  llama_server: exiting due to model loading error", "E")
        _end(1, None)
    if "-md" in flags.values and flags.types:
        draft = flags.values["-md"]
        fake.log(f"common_speculative_init_result: loading draft model '{draft}'")


def main(argv: tuple[str, ...]) -> None:
    """Run as llama-server would. Never returns."""
    fake = FakeLlamaServer(*argv, **json.loads(os.environ.get("FAKE_LLAMA") or "{}"))
    fake.die = lambda: _end(fake.get("crash_code"), fake.get("crash_signal"))
    _complain(argv, fake)
    if "--version" in argv:
        build = str(fake.get("build", "b11434-fake")).removeprefix("b").partition("-")
        sys.stderr.write(f"version: 0.6.0-dev (build {build[0]}, commit {build[2]})\n")
        _end(0, None)
    if {"-h", "--help"} & set(argv):
        file = fake.get("help_file")
        sys.stdout.write(Path(file).read_text() if file else "usage: fake_llama_server [flags]\n")
        sys.stdout.flush()
        _end(0, None)
    asked = threading.Event()

    def on_signal(*_: object) -> None:
        if not fake.get("ignore_sigterm"):
            asked.set()

    if fake.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _start_up(fake)
    # before this point SIGTERM ends it as it ends the real one: by the signal
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    fake.ready()
    fake.log(f"srv    load_model: initializing, n_slots = {len(fake.slots)}, n_ctx_slot = 2048")
    fake.log("srv  llama_server: model loaded")
    fake.log(f"srv  llama_server: listening on {fake.url}")
    fake.flood()
    while not asked.wait(0.2):
        pass
    fake.log("srv    operator(): operator(): cleaning up before exit...")
    _end(0, None)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
