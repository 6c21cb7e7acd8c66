"""``python -m spectui.embedded`` as a supervisor sees it: a real process with the demo model."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from spectui.embedded.demo_model import find_demo_model

pytestmark = pytest.mark.embedded

PROMPT = "one two three four five " * 4
# a grammar, so that the text repeats whatever the rounding of this CPU makes the model say
REPEATING = 'root ::= ("one two three four five ")+'


@dataclass
class Engine:
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @contextmanager
    def answer(self, method: str, path: str, body: object = None) -> Iterator[HTTPResponse]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            text = json.dumps(body) if body else None
            connection.request(method, path, text, {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                yield response

    def get(self, path: str) -> str:
        with self.answer("GET", path) as response:
            return response.read().decode()

    def status(self, path: str) -> int | None:
        """The HTTP status, None while the connection is refused."""
        try:
            with self.answer("GET", path) as response:
                return response.status
        except OSError:
            return None

    def complete(self, **body: object) -> Any:
        with self.answer("POST", "/completion", body) as response:
            return json.load(response)

    def wait(self) -> int:
        return self.process.wait(30)

    def until_ready(self) -> list[int | None]:
        seen = []
        for _ in range(3000):
            seen.append(self.status("/health"))
            if seen[-1] == 200:
                return seen
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        raise AssertionError(self.log.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(folder: Path, *args: str, model: str = "", port: int = 0) -> Iterator[Engine]:
    port, log = port or free_port(), folder / "log"
    argv = [sys.executable, "-m", "spectui.embedded", "-m", model or str(find_demo_model())]
    argv += ["--port", str(port), "-t", "1", "-c", "1024", *args]
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield Engine(process, port, log)
    finally:
        process.kill()
        process.wait(30)
    assert "Traceback" not in log.read_text(errors="replace")


def ran(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "spectui.embedded", *args]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def speculating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    knobs = ["--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8"]
    knobs += ["--spec-type", "ngram-simple", "--metrics"]
    with started(tmp_path_factory.mktemp("engine"), *knobs) as engine:
        engine.until_ready()
        yield engine


def test_health_is_refused_then_503_then_200(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        seen = engine.until_ready()
    phases = [status for number, status in enumerate(seen) if seen[number - 1 : number] != [status]]
    assert phases in ([None, 503, 200], [503, 200])


def test_metrics_count_accepted_tokens_by_position(speculating: Engine) -> None:
    body = {"prompt": PROMPT, "grammar": REPEATING, "n_predict": 48, "temperature": 0}
    timings = speculating.complete(**body)["timings"]
    metrics = speculating.get("/metrics")
    positions = [line for line in metrics.splitlines() if "per_pos_total{position=" in line]
    assert len(positions) == 8
    assert timings["draft_n"] >= timings["draft_n_accepted"] > 0
    for name in ("drafts", "draft_tokens", "accepted_tokens"):
        assert f"llamacpp:spec_decode_num_{name}_total" in metrics


def test_a_stream_carries_timings_with_every_token(speculating: Engine) -> None:
    body = {"prompt": PROMPT, "n_predict": 8, "stream": True, "timings_per_token": True}
    with speculating.answer("POST", "/completion", body) as answer:
        chunks = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
    counts = [chunk["timings"]["predicted_n"] for chunk in chunks if "timings" in chunk]
    assert counts[-1] == 8
    assert counts == sorted(counts)


def test_there_is_one_slot_and_it_speculates(speculating: Engine) -> None:
    slots = json.loads(speculating.get("/slots"))
    assert [slot["speculative"] for slot in slots] == [True]


def test_props_tell_the_build(speculating: Engine) -> None:
    assert json.loads(speculating.get("/props"))["build_info"]


def test_type_none_is_a_baseline_without_draft_counters(tmp_path: Path) -> None:
    with started(tmp_path, "--spec-type", "none", "--no-slots") as engine:
        engine.until_ready()
        assert engine.status("/slots") == 501
        assert engine.status("/metrics") == 501
        assert "draft_n" not in engine.complete(prompt="Hello", n_predict=4)["timings"]


def test_synthetic_rates_decide_what_is_accepted(tmp_path: Path) -> None:
    args = ["-md", str(find_demo_model()), "--spec-type", "draft-simple", "--metrics"]
    args += ["--spec-draft-n-max", "2", "--spec-synth-rates", "1,0", "--no-warmup"]
    with started(tmp_path, *args) as engine:
        engine.until_ready()
        engine.complete(prompt="Once upon a time", n_predict=24, ignore_eos=True)
        metrics = engine.get("/metrics")
    found = [line.split()[-1] for line in metrics.splitlines() if "total{position=" in line]
    assert float(found[0]) > 5
    assert float(found[1]) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_loading_kills_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path) as engine:
        while engine.status("/health") is None:
            time.sleep(0.005)
        engine.process.send_signal(number)
        assert engine.wait() == -number
        assert "listening" not in engine.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_serving_ends_with_status_0(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path) as engine:
        engine.until_ready()
        time.sleep(0.2)
        engine.process.send_signal(number)
        assert engine.wait() == 0
        assert engine.status("/health") is None


def test_a_request_that_streams_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with started(tmp_path) as engine:
        engine.until_ready()
        body = {"prompt": "A story", "n_predict": 900, "ignore_eos": True, "stream": True}
        with engine.answer("POST", "/completion", body) as answer:
            answer.readline()
            begun = time.monotonic()
            engine.process.terminate()
            assert engine.wait() == 0
        assert time.monotonic() - begun < 5


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with started(tmp_path, port=holder.getsockname()[1]) as engine:
            assert engine.wait() == 1
            assert "couldn't bind HTTP server socket" in engine.log.read_text()


def test_a_missing_model_ends_with_one_readable_line(tmp_path: Path) -> None:
    with started(tmp_path, model=str(tmp_path / "none.gguf")) as engine:
        assert engine.wait() == 1
        log = engine.log.read_text()
    assert "failed to open GGUF file" in log
    # the engine's log has a thread of its own: it may have the last word
    assert any(line.startswith("error: the server did not start") for line in log.splitlines())


def test_a_file_that_is_no_model_ends_with_status_1(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + os.urandom(200))
    with started(tmp_path, model=str(broken)) as engine:
        assert engine.wait() == 1


def test_a_missing_draft_model_is_named(tmp_path: Path) -> None:
    args = ["-md", "none.gguf", "--spec-type", "draft-simple"]
    with started(tmp_path, *args) as engine:
        assert engine.wait() == 1
        log = engine.log.read_text()
    assert "failed to load draft model, 'none.gguf'" in log
    assert ", draft model 'none.gguf')" in log.splitlines()[-1]


def test_version_is_printed_on_stderr() -> None:
    done = ran("--version")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("version: xllamacpp 2")
    assert "built with" in done.stderr


def test_help_is_printed_on_stdout() -> None:
    done = ran("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--spec-type" in done.stdout


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ("--no-such-flag", "error: invalid argument: --no-such-flag"),
        ("--port x", 'error while handling argument "--port": stoi'),
        ("--metrics", "error: no model: name one with -m FILE"),
    ],
)
def test_a_bad_command_line_exits_1(args: str, line: str) -> None:
    done = ran(*args.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == line
    assert "Traceback" not in done.stderr
