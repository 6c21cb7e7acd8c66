"""A real llama-server on a free port of the loopback interface, for as long as a test needs it.

It stands apart from the product's own launcher, which these tests are there to check.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

# One thread: two that wait for each other by spinning collapse when anything else runs.
FRUGAL = ("-t", "1", "-tb", "1", "-c", "2048", "-np", "1")
COUNTER = re.compile(r"^llamacpp:(?P<name>\w+)(?:\{position=\"(?P<at>\d+)\"\})? (?P<value>\S+)$")


@dataclass(frozen=True, slots=True)
class Reply:
    """One finished request: the server's own ``timings``, and the text."""

    text: str
    finish_reason: str
    timings: dict[str, float]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    log: Path

    def get(self, path: str) -> str:
        """Return the body of ``path``, or raise httpx.HTTPError."""
        answer = httpx.get(self.url + path, timeout=60, trust_env=False)
        return answer.raise_for_status().text

    def metrics(self) -> dict[str, float]:
        """Return the counters without their prefix; those by position as ``name/0``, …"""
        found = (COUNTER.match(line) for line in self.get("/metrics").splitlines())
        return {
            line["name"] + (f"/{line['at']}" if line["at"] else ""): float(line["value"])
            for line in found
            if line is not None
        }

    def accepted_at(self) -> list[int]:
        """Return the accepted tokens by position of the draft, first position first."""
        start = "spec_decode_num_accepted_tokens_per_pos_total/"
        found = self.metrics()
        return [
            int(found[name])
            for name in sorted(
                (name for name in found if name.startswith(start)),
                key=lambda name: int(name.removeprefix(start)),
            )
        ]

    def chat(self, prompt: str, *, tokens: int = 32, **fields: Any) -> Reply:
        """Send one greedy request and wait for all of it."""
        body = {
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": tokens,
            "temperature": 0,
            "seed": 1,
            "cache_prompt": False,
            **fields,
        }
        url = f"{self.url}/v1/chat/completions"
        answer = httpx.post(url, json=body, timeout=100, trust_env=False)
        whole = answer.raise_for_status().json()
        choice = whole["choices"][0]
        return Reply(choice["message"]["content"], choice["finish_reason"], whole["timings"])


@contextlib.contextmanager
def serving(binary: Path, *arguments: str, log: Path, timeout: float = 60) -> Iterator[Server]:
    """Start ``binary`` with ``arguments`` and yield it once it is ready; stop it afterwards.

    Raises RuntimeError with the end of the log where it does not get ready in ``timeout`` seconds.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [str(binary), *FRUGAL, "--host", "127.0.0.1", "--port", str(port), *arguments]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as child,
    ):
        server = Server(f"http://127.0.0.1:{port}", log)
        try:
            _wait_until_ready(server, child, time.monotonic() + timeout)
            yield server
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()


def _wait_until_ready(server: Server, child: subprocess.Popen[bytes], deadline: float) -> None:
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        with contextlib.suppress(httpx.HTTPError):  # not there yet, or 503: still loading
            server.get("/health")
            return
        time.sleep(0.05)
    end = server.log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"llama-server did not get ready (exit status {child.poll()}):\n{end}")
