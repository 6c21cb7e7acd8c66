"""The dashboard in a terminal, from opening a profile to the exported TOML."""

import signal
import sys
import time
from pathlib import Path

import pytest
from fake_llama_server import install
from session_tools import started_with
from terminal import Terminal

from spectui.adapters.toml_store import load_profile

ROOT = Path(__file__).parents[2]
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path


def spectui(home, *argv, **terminal):
    env = {"HOME": str(home / "home"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "spectui", *map(str, argv)]
    return Terminal(command, env=env, cwd=str(home), **terminal)


def none_left(home, seconds=10):
    end = time.monotonic() + seconds
    while started_with(home / "home"):
        assert time.monotonic() < end, started_with(home / "home")
        time.sleep(0.05)


def stand_in(home, **options):
    """Write a profile on the stand-in server."""
    engine = install(home, **{"tps": 100, "time_scale": 0.1, **options})
    for model in ("target.gguf", "draft.gguf"):
        (home / model).write_bytes(b"GGUF\x03\0\0\0")
    path = home / "my.toml"
    path.write_text(
        f'[server]\nengine = "{engine}"\n'
        '[models]\ntarget = "target.gguf"\ndraft = "draft.gguf"\n'
        '[speculation]\ntype = "draft-simple"\nn_max = 4\n',
        encoding="utf-8",
    )
    return path


def measure_raise_apply_export(terminal, home):
    """Do the main job by its keys, from a profile with n_max 2 to its tuned one."""
    terminal.wait("stopped")
    terminal.press("m")
    terminal.wait(r"n_max 2 .*2/2", 90)
    terminal.wait(r"ready", 30)
    terminal.press("right")
    terminal.wait(r"pending|→")
    terminal.press("a")
    terminal.wait(r"n_max 3 .*2/2", 90)
    terminal.wait(r"ready", 30)
    assert "n_max 2" in terminal.text  # both runs are there to compare
    assert "off" in terminal.text
    terminal.press("e")
    terminal.wait("tuned profile|tuned")
    terminal.press("enter")
    deadline = time.monotonic() + 10
    while not (home / "my.tuned.toml").exists():
        assert time.monotonic() < deadline, terminal.text
        terminal.read(0.1)
    terminal.press("escape")
    terminal.press("q")
    assert terminal.wait_end() == 0
    none_left(home)


def tuned_of(home, profile):
    """Return what was exported, once it is seen to differ in its setting only."""
    tuned = load_profile(home / "my.tuned.toml")
    source = load_profile(profile)
    assert tuned.server == source.server
    assert tuned.models == source.models
    assert tuned.workload == source.workload
    assert tuned.speculation.type == "draft-simple"
    assert tuned.speculation.draft_length in {2, 3}
    assert tuned.evidence["setting"] == f"n_max {tuned.speculation.draft_length}"
    assert tuned.evidence["requests"] == 2
    assert 0 < tuned.evidence["acceptance_rate"] <= 1
    return tuned


@pytest.mark.embedded
@pytest.mark.timeout(300)
def test_open_measure_raise_n_max_apply_compare_export_quit(home):
    # the model is its own draft: nearly everything is accepted, and nothing is gained
    profile = home / "my.toml"
    profile.write_text(
        '[server]\nengine = "embedded"\nargs = ["-c", "1024", "-t", "1"]\n'
        '[models]\ntarget = "demo"\ndraft = "demo"\n'
        '[speculation]\ntype = "draft-simple"\nn_max = 2\n'
        '[workload]\ntasks = ["code", "creative"]\nmax_tokens = 24\n',
        encoding="utf-8",
    )
    with spectui(home, profile, "--limit", "1", columns=120, rows=36) as terminal:
        measure_raise_apply_export(terminal, home)
    evidence = tuned_of(home, profile).evidence
    assert evidence["engine"].startswith("embedded xllamacpp")
    assert evidence["model_bytes"] > 50_000_000


def test_the_same_where_80_by_24_characters_must_do(home):
    profile = stand_in(home)
    text = profile.read_text(encoding="utf-8").replace("n_max = 4", "n_max = 2")
    workload = '[workload]\ntasks = ["code", "creative"]\nmax_tokens = 24\n'
    profile.write_text(text + workload, encoding="utf-8")
    with spectui(home, profile, "--limit", "1", columns=80, rows=24) as terminal:
        measure_raise_apply_export(terminal, home)
    tuned_of(home, profile)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("phase", ["stopped", "loading", "measuring", "ready"])
def test_told_to_end_at_any_phase_it_leaves_no_server(home, number, phase):
    slow = {"load_seconds": 60} if phase == "loading" else {}
    with spectui(home, stand_in(home, **slow)) as terminal:
        terminal.wait("stopped")
        if phase == "ready":
            terminal.press("s")
        elif phase != "stopped":
            terminal.press("m")
        terminal.wait(phase)
        terminal.signal(number)
        assert terminal.wait_end() == (128 + number if number != signal.SIGKILL else -number)
        none_left(home)
        if number != signal.SIGKILL:
            assert b"\x1b[?1049l" in terminal.raw  # the terminal is as it was


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_stalled_terminal_stops_neither_the_measurement_nor_the_end(home, number):
    with spectui(home, stand_in(home, time_scale=0.3)) as terminal:
        terminal.wait("stopped")
        terminal.press("m")
        terminal.wait("measuring")
        [record] = (home / "home").rglob("sessions/*.jsonl")
        before = record.read_text(encoding="utf-8").count('"event": "request"')
        time.sleep(5)  # nobody reads: the terminal's buffer is full long before
        assert record.read_text(encoding="utf-8").count('"event": "request"') > before
        terminal.signal(number)
        terminal.wait_end(12, reading=False)
        none_left(home)


def test_ctrl_c_ends_it(home):
    with spectui(home, stand_in(home)) as terminal:
        terminal.wait("stopped")
        terminal.press("s")
        terminal.wait("ready")
        terminal.press("ctrl+c")
        assert terminal.wait_end() == 0
        none_left(home)


def test_a_server_killed_under_it_is_told_and_can_be_started_again(home):
    with spectui(home, stand_in(home)) as terminal:
        terminal.wait("stopped")
        terminal.press("s")
        terminal.wait("ready")
        server = [p for p in started_with(home / "home") if "--metrics" in p.cmdline()]
        max(server, key=lambda p: p.pid).kill()
        terminal.wait("SIGKILL")
        terminal.press("s")
        terminal.wait("ready")
        terminal.press("q")
        assert terminal.wait_end() == 0
        none_left(home)


def test_a_terminal_too_small_is_told_in_one_line(home):
    with spectui(home, stand_in(home), columns=50, rows=15) as terminal:
        assert terminal.wait_end() == 2
        assert "50×15" in terminal.text
        assert "60×18" in terminal.text


@pytest.mark.parametrize(
    "env", [{"TERM": "linux"}, {"TERM": "vt100"}, {"NO_COLOR": "1"}, {"LANG": "C", "LC_ALL": "C"}]
)
def test_it_draws_in_poor_terminals_too(home, env):
    command = [sys.executable, "-m", "spectui", str(stand_in(home, time_scale=0.02))]
    env = {"HOME": str(home / "home"), "PYTHONPATH": str(ROOT), **env}
    with Terminal([*command, "--limit", "1"], env=env, cwd=str(home)) as terminal:
        terminal.wait("stopped")
        terminal.press("m")
        terminal.wait(r"n_max 4 .*6/6")
        terminal.press("q")
        assert terminal.wait_end() == 0
        if env.get("TERM") in {"linux", "vt100"}:
            assert not any("\u2800" <= c <= "\u28ff" for c in terminal.text)
