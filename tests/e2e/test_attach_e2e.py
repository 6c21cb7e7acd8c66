"""A server started by hand, watched in a terminal while somebody else uses it, and left running."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_llama_server import FakeLlamaServer
from session_tools import started_with, until
from terminal import Terminal

from spectui.adapters.tcp_port import free_port
from spectui.cli.watching import build_watching
from spectui.domain.address import Secret, parse_address
from spectui.domain.attached import Found, ServerKind
from spectui.embedded.demo_model import find_demo_model
from spectui.session.attached import Pace
from spectui.workbench import Workbench

ROOT = Path(__file__).parents[2]
CANARY = "canary-5ecret"
DRAFTING = ("--metrics", "--spec-type", "draft-simple", "-md", "d.gguf", "--spec-draft-n-max", "4")
POSITION = re.compile(r'accepted_tokens_per_pos_total\{position="(\d+)"\} (\d+)')


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - loopback only
        return answer.read().decode()


def ask(url, text="Repeat: one two three. One two three.", tokens=24, **fields):
    """Send a request as somebody else would, and return the server's own timings of it."""
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens}
    body |= {"temperature": 0, "cache_prompt": False, **fields}
    request = urllib.request.Request(  # noqa: S310 - loopback only
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)["timings"]


@contextmanager
def traffic(url, **body):
    """Keep somebody else's requests coming."""
    over = threading.Event()

    def send():
        while not over.wait(0.05):
            ask(url, **body)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path


def attach(home, *argv, columns=120, rows=36, **env):
    env = {"HOME": str(home / "home"), "PYTHONPATH": str(ROOT), "TMPDIR": str(home), **env}
    command = [sys.executable, "-m", "spectui", "attach", *map(str, argv)]
    return Terminal(command, env=env, cwd=str(home), columns=columns, rows=rows)


# -- a real engine ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """The embedded engine as a process that spectui knows nothing of."""
    port = free_port(None)
    log = tmp_path_factory.mktemp("by-hand") / "log"
    argv = [sys.executable, "-m", "spectui.embedded", "-m", str(find_demo_model())]
    argv += ["--port", str(port), "-t", "1", "-c", "1024", "--metrics"]
    argv += ["--spec-type", "ngram-simple"]
    argv += ["--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "4"]
    with log.open("wb") as output, subprocess.Popen(argv, stdout=output, stderr=output) as process:
        url = f"http://127.0.0.1:{port}"
        until(lambda: is_up(url), 60)
        yield url, process
        assert process.poll() is None, log.read_text(errors="replace")
        process.kill()


def is_up(url):
    try:
        return get(f"{url}/health")
    except OSError:
        return False


def positions(url):
    found = POSITION.findall(get(f"{url}/metrics"))
    return [int(count) for _, count in sorted((int(at), count) for at, count in found)]


@pytest.mark.embedded
def test_rate_and_decay_are_those_of_the_server(by_hand, tmp_path):
    url, _ = by_hand
    ask(url)  # nobody watched this one
    before = positions(url)
    found = Found(ServerKind.LLAMA, "demo")
    pace = Pace(metrics=0.1, slots=0.1)
    session = build_watching(parse_address(url), Secret(), found, folder=tmp_path, pace=pace)
    session.start()
    try:
        until(lambda: session.snapshot.runs)
        timings = []
        for i in range(4):
            timings.append(ask(url, f"Repeat: {i} one two three. One two three.", tokens=40))
            until(lambda: shown(session).requests == len(timings))
        summary, accepted = shown(session), positions(url)
        assert summary.tokens == sum(t["predicted_n"] for t in timings)
        assert summary.acceptance.drafted == sum(t.get("draft_n", 0) for t in timings) > 0
        assert summary.acceptance.accepted == sum(t.get("draft_n_accepted", 0) for t in timings)
        gained = [now - then for then, now in zip(before, accepted, strict=True)]
        assert list(summary.acceptance.accepted_at) == gained
        settled = [point.tps for point in session.snapshot.settled]
        assert settled == pytest.approx([t["predicted_per_second"] for t in timings], rel=0.02)
        assert session.snapshot.attached.speculating is True
        assert session.snapshot.attached.types == ("ngram-simple",)
        assert "/" not in session.snapshot.target  # a name, and no path of this machine
    finally:
        assert session.close(10)
    assert ask(url)["predicted_n"] > 1


def shown(session):
    return session.snapshot.summaries[session.snapshot.runs[-1].number]


@pytest.mark.embedded
@pytest.mark.parametrize(("columns", "rows"), [(120, 36), (80, 24)])
def test_the_dashboard_shows_what_others_do_and_leaves_the_server(by_hand, home, columns, rows):
    url, process = by_hand
    with attach(home, url, columns=columns, rows=rows) as terminal:
        terminal.wait("ready|busy")
        with traffic(url, tokens=120, ignore_eos=True):
            terminal.wait(r"now \d")
            terminal.wait(r"settled \d")
            terminal.wait(r"\d tokens a step")
        assert "ngram-simple" in terminal.text
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert process.poll() is None
    assert ask(url)["predicted_n"] > 1


# -- how it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["q", "ctrl+c", signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_however_it_ends_the_server_goes_on(home, end):
    with FakeLlamaServer(*DRAFTING, tps=100) as server:
        with attach(home, server.url) as terminal:
            terminal.wait("ready")
            answers = []
            other = threading.Thread(target=lambda: answers.append(ask(server.url, tokens=150)))
            other.start()
            terminal.wait("busy")
            if isinstance(end, signal.Signals):
                terminal.signal(end)
                wanted = -end if end is signal.SIGKILL else 128 + end
            else:
                terminal.press(end)
                wanted = 0
            assert terminal.wait_end() == wanted
        other.join()
        assert answers[0]["predicted_n"] == 150  # not even the request under way was disturbed
        until(lambda: not started_with(home / "home"))


def test_nothing_on_the_screen_would_stop_or_restart_it(home):
    with FakeLlamaServer(*DRAFTING, tps=100, time_scale=0.02) as server:
        with attach(home, server.url) as terminal:
            terminal.wait("ready")
            terminal.press("s", "b", "a", "t", "right", "4", "enter", "e", "d", "D")
            terminal.read(0.5)
            terminal.press("escape")
            terminal.wait("ready")
            terminal.press("q")
            assert terminal.wait_end() == 0
        assert server.chats == 0
        assert ask(server.url)["predicted_n"] == 24


def test_prompts_are_sent_only_after_a_question(home):
    with FakeLlamaServer(*DRAFTING, tps=100, time_scale=0.02) as server:
        with attach(home, server.url, "--limit", "1") as terminal:
            terminal.wait("ready")
            terminal.press("m")
            terminal.wait("sends every prompt")
            terminal.press("enter")  # which means no
            terminal.read(0.5)
            assert server.chats == 0
            terminal.press("m")
            terminal.wait("sends every prompt")
            terminal.press("y")
            terminal.wait("as it runs .*6/6")
            terminal.press("q")
            assert terminal.wait_end() == 0
        assert server.chats == 7  # with the warm-up


def test_a_server_that_ends_is_told_and_found_again(home):
    server = FakeLlamaServer(*DRAFTING, tps=100).start()
    port = server.port
    with attach(home, server.url) as terminal:
        terminal.wait("ready")
        server.stop()
        terminal.wait("gone: .*spectui keeps trying")
        with FakeLlamaServer(*DRAFTING, "--port", str(port), tps=100):
            terminal.wait("ready")
            terminal.press("q")
            assert terminal.wait_end() == 0


# -- the key ---------------------------------------------------------------------------------------


def test_the_key_is_on_no_screen_and_in_no_file(home):
    """With a server that repeats it wherever it can."""
    options = {"echo_key": True, "tps": 100, "time_scale": 0.02}
    with FakeLlamaServer(*DRAFTING, "--api-key", CANARY, **options) as server:
        with attach(home, server.url, "--limit", "1", SPECTUI_API_KEY=CANARY) as terminal:
            terminal.wait("ready")
            terminal.press("m")
            terminal.wait("send them")
            terminal.press("y")
            terminal.wait("as it runs .*6/6")
            server.options["fail_requests"] = range(100)
            server.options["status"] = {"/metrics": 500}
            for key in ("l", "escape", "?", "escape"):
                terminal.press(key)
            server.flags.values["--api-key"] = "another"
            terminal.wait("API key", 30)
            terminal.press("q")
            assert terminal.wait_end() == 0
            assert CANARY.encode() not in terminal.raw
        assert f"Bearer {CANARY}" in server.keys
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in files if "attached" in path.parts]
    assert not [path for path in files if CANARY in path.read_text(errors="replace")]


async def test_the_key_is_in_no_picture_and_in_no_snapshot(tmp_path):
    from spectui.tui.app import SpectuiApp

    options = {"echo_key": True, "tps": 100, "time_scale": 0.02}
    with FakeLlamaServer(*DRAFTING, "--api-key", CANARY, **options) as server:
        address = parse_address(f"{server.url}/?token={CANARY}")
        found = Found(ServerKind.LLAMA, "x")
        session = build_watching(address, Secret(CANARY), found, limit=1, folder=tmp_path)
        bench = Workbench(session)
        app = SpectuiApp(bench, glyphs="braille")
        bench.start()
        try:
            async with app.run_test(size=(120, 36)) as pilot:
                end = time.monotonic() + 15
                while session.snapshot.attached.speculating is None and time.monotonic() < end:
                    await pilot.pause(0.05)
                assert session.snapshot.attached.speculating
                picture = app.export_screenshot()
                assert "127.0.0.1" in picture
                said = picture + repr(session.snapshot) + repr(vars(session)) + repr(address)
                assert CANARY not in said
        finally:
            assert bench.close(10)
