"""Every way to draft on the embedded engine, with models small enough to write on the spot."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.embedded
pytest.importorskip("gguf")

from tiny_models import CYCLE, write_family  # noqa: E402  (it needs gguf)

SAID = (CYCLE * 2).decode().strip()  # and about to be said again: what ngram-cache drafts from
COUNT = re.compile(r"^llamacpp:spec_decode_num_(\w+)_total (\d+)", re.MULTILINE)
POSITION = re.compile(r'accepted_tokens_per_pos_total\{position="\d+"\} (\d+)')

WAYS = [  # type, what goes with it, effective length
    ("draft-simple", "-m {target} -md {draft}", 3),
    ("draft-mtp", "-m {mtp_target}", 3),
    ("draft-mtp", "-m {mtp_target} -md {mtp_sidecar}", 3),
    ("draft-mtp", "-m {mtp_three_heads} --spec-draft-n-max 6", 3),
    ("draft-eagle3", "-m {target} -md {eagle3}", 3),
    ("draft-dflash", "-m {target} -md {dflash} --spec-draft-n-max 6", 3),
    ("draft-dspark", "-m {target} -md {dspark} --spec-draft-n-max 6", 4),
    ("ngram-cache", "-m {target}", 8),
    ("ngram-simple", "-m {target}", 48),
    ("ngram-map-k", "-m {target}", 48),
    ("ngram-map-k4v", "-m {target}", 48),
    ("ngram-mod", "-m {target}", 64),
    ("--spec-default", "-m {target}", 64),
    ("ngram-mod,draft-simple", "-m {target} -md {draft} -devd none -ngld 0 -ctkd q8_0", 64),
    ("ngram-cache,draft-mtp", "-m {mtp_target}", 8),
    ("", "-m {target} -md {dflash}", 3),
]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    paths = write_family(tmp_path_factory.mktemp("tiny"))
    return {name: str(path) for name, path in asdict(paths).items()}


@contextlib.contextmanager
def serving(log: Path, *words: str) -> Iterator[httpx.Client]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "spectui.embedded", "-t", "1", "--metrics"]
    argv += ["--port", str(port), *words]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as child,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        try:
            _wait(client, child, log)
            yield client
        finally:
            child.terminate()
            child.wait(20)


def _wait(client: httpx.Client, child: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        assert child.poll() is None, log.read_text()
        with contextlib.suppress(httpx.HTTPError):
            if client.get("/health").status_code == 200:
                return
        time.sleep(0.05)
    pytest.fail(log.read_text())


def ask(client: httpx.Client) -> str:
    body = {
        "messages": [{"role": "user", "content": SAID}],
        "max_tokens": 160,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    answer = client.post("/v1/chat/completions", json=body).raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(("kind", "words", "length"), WAYS)
def test_every_type_starts_and_drafts(kind, words, length, family, tmp_path):
    flags = [kind] if kind.startswith("--") else ["--spec-type", kind] if kind else []
    filled = [word.format(**family) for word in words.split()]
    with serving(tmp_path / "log", *flags, *filled) as client:
        text = ask(client)
        assert client.get("/slots").json()[0]["speculative"]
        page = client.get("/metrics").text
    counts = {name: int(value) for name, value in COUNT.findall(page)}
    assert counts["draft_tokens"] >= counts["drafts"] > 0
    positions = [int(count) for count in POSITION.findall(page)]
    assert len(positions) == length
    assert sum(positions) == counts["accepted_tokens"]
    # random drafts of two kinds are refused; the text is the target's either way
    assert (counts["accepted_tokens"] > 0) == ("eagle3" not in words and "dflash" not in words)
    assert text.startswith((CYCLE[1:] + CYCLE * 2).decode())


@pytest.mark.parametrize("flags", ["-md {draft}", "-md {dflash} --spec-type none"])
def test_a_draft_model_alone_or_with_none_drafts_nothing(flags, family, tmp_path):
    words = f"-m {{target}} {flags}".format(**family).split()
    with serving(tmp_path / "log", *words) as client:
        ask(client)
        assert not json.loads(client.get("/slots").text)[0]["speculative"]
        assert "num_draft_tokens_total 0\n" in client.get("/metrics").text
