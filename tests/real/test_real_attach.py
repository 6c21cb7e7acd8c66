"""A real llama-server that somebody started by hand, used by others, and watched by spectui."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from server import serving
from session_tools import until

from spectui.cli.watching import build_watching
from spectui.domain.address import Secret, parse_address
from spectui.domain.attached import Found, ServerKind
from spectui.domain.runs import WATCHED

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CANARY = "canary-5ecret-real"
RATES = (0.95, 0.915, 0.88, 0.835)
DRAFTING = ("--spec-type", "draft-simple", "--spec-draft-n-max", "4", "--metrics", "--ignore-eos")


@pytest.fixture
def by_hand(real_engine, real_models, tmp_path):
    """A server that drafts with known acceptance at real cost."""
    models = ("-m", real_models["target"], "-md", real_models["draft"])
    rates = ("--spec-synth-rates", ",".join(map(str, RATES)))
    log = tmp_path / "by-hand.log"
    with serving(real_engine, *models, *DRAFTING, *rates, log=log) as server:
        yield server


def follow(url, tokens):
    """Send a request as somebody else would; return the server's account of every moment of it.

    That is (monotonic time, tokens, decode seconds), and at last its whole timings.
    """
    body = {"messages": [{"role": "user", "content": "A story."}], "max_tokens": tokens}
    body |= {"temperature": 0, "stream": True, "timings_per_token": True}
    course, timings = [], {}
    with httpx.stream(
        "POST", f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {") and (told := json.loads(line[6:]).get("timings")):
                timings = told
                course.append((time.monotonic(), told["predicted_n"], told["predicted_ms"] / 1000))
    return course, timings


def newest(session):
    runs = [run for run in session.snapshot.runs if run.arm == WATCHED]
    return session.snapshot.summaries[runs[-1].number]


def test_live_rate_and_decay_are_what_the_server_itself_says(by_hand, tmp_path):
    before = by_hand.accepted_at() or [0] * len(RATES)
    session = build_watching(
        parse_address(by_hand.url), Secret(), Found(ServerKind.LLAMA), folder=tmp_path
    )
    session.start()
    try:
        until(lambda: session.snapshot.runs)
        until(lambda: session.snapshot.attached.speculating)
        shown = []
        over = threading.Event()

        def look():
            while not over.wait(0.05):
                tps = session.snapshot.attached.tps
                if tps is not None:
                    shown.append((session.snapshot.at, tps))

        looking = threading.Thread(target=look)
        looking.start()
        course, timings = follow(by_hand.url, 500)
        over.set()
        looking.join()
        until(lambda: newest(session).tokens == timings["predicted_n"])
        found, summary = session.snapshot, newest(session)
    finally:
        assert session.close(10)

    acceptance = summary.acceptance
    assert summary.requests == 1
    assert acceptance.drafted == timings["draft_n"] > 0
    assert acceptance.accepted == timings["draft_n_accepted"]
    gained = [now - then for then, now in zip(before, by_hand.accepted_at(), strict=True)]
    assert list(acceptance.accepted_at) == gained
    assert found.attached.types == ("draft-simple",)
    assert found.attached.missing == ()
    assert [point.tps for point in found.settled] == pytest.approx(
        [timings["predicted_per_second"]], rel=0.01
    )
    (start, _, _), (end, _, _) = course[0], course[-1]
    assert len(shown) > (end - start) / 0.05 / 3  # most of the time something was shown
    for at, tps in shown:
        # what is shown is the mean since the reading of /slots before, half a second to two ago
        near = [n for when, n, _ in course if at - 2.5 < when <= at]
        if at - 2.5 > start and at < end:
            assert tps == pytest.approx((near[-1] - near[0]) / 2.5, rel=0.35)


@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_however_spectui_ends_the_server_goes_on_and_no_key_is_shown(
    real_engine, real_models, tmp_path, how, status
):
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "SPECTUI_API_KEY": CANARY}
    log = tmp_path / "by-hand.log"
    options = ("-m", real_models["target"], "--metrics", "--api-key", CANARY, "-lv", "4")
    with serving(real_engine, *options, log=log) as server:
        with subprocess.Popen(
            [sys.executable, "-m", "spectui", "attach", server.url, "--for", "60", "--json"],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            try:
                # it says so after each reading of its counters
                until(lambda: log.read_text(errors="replace").count("all slots are idle") > 3)
                child.send_signal(how)
                out, err = child.communicate(timeout=20)
            finally:
                child.kill()
        assert child.returncode == status
        assert server.get("/health")
    assert CANARY not in out + err
    if status > 0:
        assert json.loads(out)["phase"] == "ready"
        assert json.loads(out)["missing"] == []
    files = [path for path in home.rglob("*") if path.is_file()]
    assert not [path for path in files if CANARY in path.read_text(errors="replace")]
