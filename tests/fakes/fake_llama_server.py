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
    help_file        what --help prints (fake_help.TODAY)
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
    slots_ik         true: so it is, a number says whether it is busy, nothing whether it drafts
    sleeping         true: asleep until somebody asks for /slots, or for an answer; ``woken`` counts
    api_prefix       "/llm": before all paths
    tls              true: HTTPS, with the certificate of loopback.pem
    echo_key         true: it repeats the key that it was sent in errors and in names

Standing in for something else
    as               "router", "swap", "vllm" or "sglang": see fake_fronts.py
    models           {"a": "loaded", "b": "unloaded"}: of a router, or "ready" and "stopped" of
                     llama-swap; ``loads`` lists the models that were loaded by asking
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Self, TextIO

import fake_help
from fake_engine import Answer, Engine, Slot, limit_of
from fake_fronts import front

CERTIFICATE = Path(__file__).with_name("loopback.pem")


class FakeLlamaServer(Engine):
    """The server itself. ``start()`` it in a thread of this process, or ``main()`` runs it as one.

    ``url`` and ``port`` are known after ``start()``, and not after ``stop()``.
    """

    def __init__(self, *argv: str, **options: Any) -> None:
        super().__init__(*argv, **options)
        self.began = time.monotonic()
        self.logs: TextIO | None = None
        self.die: Callable[[], None] = self._die_in_process
        self.server: _Http | None = None
        self.thread: threading.Thread | None = None
        self.loads: list[str] = []
        self.keys: set[str] = set()
        self.settled = 0
        self.woken = 0
        self.started_at = time.time()

    @property
    def port(self) -> int:
        assert self.server
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http{'s' if self.get('tls') else ''}://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Listen on a free port, or on --port, in a thread."""
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

    def wake(self) -> None:
        """Load the model again that was let go of."""
        self.woken += bool(self.options.pop("sleeping", False))

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
        if self.logs and "EWI".find(level) < verbosity:
            us = int((time.monotonic() - self.began) * 1e6)
            stamp = (
                f"{us // 60000000}.{us // 1000000 % 60:02}.{us // 1000 % 1000:03}.{us % 1000:03}"
            )
            self.logs.write(f"{stamp} {level} {text}\n")
            self.logs.flush()

    def flood(self) -> None:
        for n in range(int(self.get("log_flood", 0)) * 10):
            self.log(f"srv  update_slots: {n:05} " + "x" * 70)


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
        if self.fake.get("tls"):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self.socket = context.wrap_socket(self.socket, server_side=True)

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
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fake.asked[path] = fake.asked.get(path, 0) + 1
        fake.keys.add(self.headers.get("Authorization") or "")
        ahead = front(self, path, query, body)
        if ahead is None:
            return
        path = ahead
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
            self._error(401, f"Invalid API Key{self._echo()}", "authentication_error")
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
            began = {"Process-Start-Time-Unix": str(int(fake.started_at))}
            self._send(200, page.encode(), "text/plain; version=0.0.4", began)
        elif path == "/slots":
            fake.wake()
            with fake.lock:
                slots = fake.slots_page()
            self._json(slots)
        elif path == "/props":
            props = {**fake.props(), "is_sleeping": bool(fake.get("sleeping"))}
            props["model_alias"] += self._echo()
            self._json(props)
        elif path == "/v1/models":
            self._json({"object": "list", "data": [{"id": fake.props()["model_alias"]}]})
        else:
            self._error(404, "File Not Found", "not_found_error")

    def _echo(self) -> str:
        return self.headers.get("Authorization", "") if self.server.fake.get("echo_key") else ""

    def _allowed(self) -> bool:
        key = self.server.fake.flags.values.get("--api-key")
        return not key or self.headers.get("Authorization") == f"Bearer {key}"

    def _send(
        self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
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
        fake.wake()
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
            self._settle(answer, slot)
            fake.free.release()
        fake.flood()
        if fake.get("crash_after_requests") == number and not fake.get("crash_at_token"):
            fake.die()

    def _settle(self, answer: Answer, slot: Slot) -> None:
        """Count the request, once: before its last event, so that who has read it all sees it."""
        with self.server.fake.lock:
            if slot.busy:
                self.server.fake.book(answer)
                self.server.fake.settled += 1
            slot.busy = False

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
        finish = "length" if answer.max_tokens == limit_of(body) else "stop"
        self._log_end(said, answer)
        self._settle(answer, slot)
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
        prompt = ("prompt eval", a.prompt_ms, a.prompt_n, a.prompt_n)
        for name, ms, n, timed in (prompt, ("       eval", a.ms, a.tokens, a.tokens - 1)):
            each = ms / timed if timed > 0 else 0
            log(
                f"{head} {name} time = {ms:10.2f} ms / {n:5} tokens"
                f" ({each:8.2f} ms per token, {1000 / each if each else 0:8.2f} tokens per second)"
            )
        ms, n = a.prompt_ms + a.ms, a.prompt_n + a.tokens
        log(f"{head}       total time = {ms:10.2f} ms / {n:5} tokens")
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
        other = fake.get("as") in {"vllm", "sglang"}
        self.usage = other and bool(body.get("stream_options", {}).get("continuous_usage_stats"))
        self.each = bool(body.get("timings_per_token")) and not (fake.get("no_timings") or other)
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
        if self.usage:
            event["usage"] = {"completion_tokens": n, "prompt_tokens": answer.prompt_n}
        if self.each:
            whole = answer.tokens
            answer.tokens = n
            event["timings"] = answer.timings()
            answer.tokens = whole
        self.send(event)
        return True

    def close(self, finish: str, answer: Answer) -> None:
        last = self.event({}, finish)
        if self.usage:
            last["usage"] = {"completion_tokens": answer.tokens, "prompt_tokens": answer.prompt_n}
        elif not self.fake.get("no_timings"):
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
    fake.logs = sys.stderr
    fake.die = lambda: _end(fake.get("crash_code"), fake.get("crash_signal"))
    _complain(argv, fake)
    if "--version" in argv:
        build = str(fake.get("build", "b11434-fake")).removeprefix("b").partition("-")
        sys.stderr.write(f"version: 0.6.0-dev (build {build[0]}, commit {build[2]})\n")
        _end(0, None)
    if {"-h", "--help"} & set(argv):
        file = fake.get("help_file")
        sys.stdout.write(Path(file).read_text() if file else fake_help.TODAY)
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
