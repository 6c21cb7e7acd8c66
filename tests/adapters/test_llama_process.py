"""Real processes, small ones: what must hold whatever a server does."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from processes import ROOT, STUBBORN, is_alive, open_files, stubborn, until
from stubborn import MEMORY

from spectui.adapters.llama_process import LlamaLauncher, LlamaProcess
from spectui.domain.errors import EngineError, PortError, SpectuiError
from spectui.domain.samples import Exit


class Starter:
    """Launches, and ends what a test leaves running."""

    def __init__(self, launcher: LlamaLauncher) -> None:
        self.launcher = launcher
        self.started: list[LlamaProcess] = []

    def __call__(self, *argv: str, port: int | None = None) -> LlamaProcess:
        process = self.launcher.launch(argv, self.launcher.free_port(port))
        self.started.append(process)
        return process

    def waiting(self, *argv: str, port: int | None = None) -> LlamaProcess:
        """Launch, and return when the server has said something."""
        process = self(*argv, port=port)
        assert until(lambda: process.tail(1) and process.server_pid)
        return process


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(LlamaLauncher(tmp_path / "logs", log_limit=1 << 20))
    yield starter
    for process in starter.started:
        process.kill_now()
        assert until(process.poll)


def ended(process: LlamaProcess) -> int:
    assert until(process.poll)
    end = process.poll()
    assert isinstance(end, Exit)
    return end.code


def server_of(process: LlamaProcess) -> int:
    assert process.server_pid is not None
    return process.server_pid


def test_a_server_runs_in_a_group_of_its_own_and_its_output_is_read(start: Starter) -> None:
    process = start.waiting(*stubborn("wait"))
    assert process.poll() is None
    assert os.getpgid(server_of(process)) == process.pid != os.getpgrp()
    assert process.tail(5) == ("waiting",)


@pytest.mark.parametrize("code", [0, 1, 127])
def test_an_exit_status_passes_through(start: Starter, code: int) -> None:
    process = start(*stubborn("exit", code))
    assert ended(process) == code
    assert process.server_pid is None
    assert process.poll() is process.poll()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_signal_passes_through(start: Starter, number: signal.Signals) -> None:
    assert ended(start(*stubborn("die", int(number)))) == -number


def test_the_output_of_a_server_that_has_ended_is_kept(start: Starter) -> None:
    process = start("/bin/sh", "-c", "echo one; echo two >&2; exit 3")
    assert ended(process) == 3
    assert process.tail(9) == ("one", "two")
    assert process.progress() == (8, 0)


async def test_stop_ends_a_server_in_its_own_way(start: Starter) -> None:
    process = start.waiting(*stubborn("polite"))
    server = server_of(process)
    await process.stop(5)
    assert process.poll() == Exit(0)
    assert not is_alive(server)


async def test_a_server_that_ignores_sigterm_is_killed_at_the_deadline(start: Starter) -> None:
    process = start.waiting(*stubborn("ignore-term"))
    server = server_of(process)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began = time.monotonic()
    await process.stop(0.4)
    assert 0.4 <= time.monotonic() - began < 2
    assert process.poll() == Exit(-signal.SIGKILL)
    assert not is_alive(server)
    assert ticks > 5  # the loop went on meanwhile
    ticking.cancel()


async def test_stop_may_be_called_again_and_after_the_end(start: Starter) -> None:
    process = start(*stubborn("exit", 5))
    assert ended(process) == 5
    await process.stop(1)
    await process.stop(1)
    process.kill_now()
    assert process.poll() == Exit(5)


async def test_two_stops_at_once_are_one(start: Starter) -> None:
    process = start.waiting(*stubborn("polite"))
    await asyncio.gather(process.stop(5), process.stop(5))
    assert process.poll() == Exit(0)


async def test_a_stop_that_is_cancelled_kills_at_once(start: Starter) -> None:
    process = start.waiting(*stubborn("ignore-term"))
    server = server_of(process)
    stopping = asyncio.create_task(process.stop(30))
    await asyncio.sleep(0.1)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert process.poll() == Exit(-signal.SIGKILL)
    assert until(lambda: not is_alive(server), 2)


async def test_a_stop_right_after_the_launch_works(start: Starter) -> None:
    for pause in (0, 0.01, 0.03):
        process = start(*stubborn("wait"))
        await asyncio.sleep(pause)
        await process.stop(5)
        assert process.poll() == Exit(-signal.SIGTERM)


async def test_a_suspended_server_is_ended_too(start: Starter) -> None:
    process = start.waiting(*stubborn("polite"))
    server = server_of(process)
    os.kill(server, signal.SIGSTOP)
    await process.stop(0.2)
    assert process.poll() is not None
    assert not is_alive(server)


@pytest.mark.parametrize("habit", ["wait", "ignore-term"])
async def test_a_server_behind_a_shell_script_is_ended_too(start: Starter, habit: str) -> None:
    process = start.waiting("/bin/sh", "-c", f"{' '.join(stubborn(habit))} & wait")
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 2
    await process.stop(0.5)
    assert until(lambda: not any(is_alive(child.pid) for child in family), 2)


def test_kill_now_works_from_another_thread(start: Starter) -> None:
    process = start.waiting(*stubborn("ignore-term"))
    server = server_of(process)
    thread = threading.Thread(target=process.kill_now)
    thread.start()
    thread.join()
    assert ended(process) == -signal.SIGKILL
    assert until(lambda: not is_alive(server), 2)


def test_a_process_that_was_reaped_is_never_signalled(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(*stubborn("exit", 0))
    assert ended(process) == 0
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("somebody else may have that number"))
    process.kill_now()
    asyncio.run(process.stop(1))


def test_when_the_guard_is_killed_the_whole_group_goes(start: Starter) -> None:
    process = start.waiting("/bin/sh", "-c", f"{' '.join(stubborn('ignore-term'))} & wait")
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    assert ended(process) == -signal.SIGKILL
    assert until(lambda: not any(is_alive(child.pid) for child in family), 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("habit", ["wait", "ignore-term"])
def test_when_spectui_dies_everything_goes_within_3_seconds(
    tmp_path: Path, number: signal.Signals, habit: str
) -> None:
    spectui = subprocess.Popen(
        [sys.executable, str(STUBBORN), "launch", str(tmp_path), *stubborn(habit)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert spectui.stdout is not None
    pids = [int(word) for word in spectui.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(is_alive, pids))
    spectui.send_signal(number)
    spectui.communicate()
    assert spectui.returncode == -number
    assert until(lambda: not any(map(is_alive, pids)), 3)


def test_another_child_does_not_hold_the_lifeline(start: Starter) -> None:
    process = start.waiting(*stubborn("wait"))
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    second = start.waiting(*stubborn("wait"))
    process._lifeline.close()
    assert until(process.poll, 3)
    assert second.poll() is None
    assert bystander.poll() is None
    bystander.communicate(b"\n")


def test_a_chatty_server_is_never_blocked_and_its_log_stays_bounded(
    start: Starter, tmp_path: Path
) -> None:
    size = 50_000_000
    process = start(*stubborn("chatter", size))
    assert ended(process) == 0
    assert process.tail(1)[0].endswith("the last line")
    files = {path.name: path.stat().st_size for path in (tmp_path / "logs").iterdir()}
    assert files["server.log"] <= 1 << 20
    assert files["server.log.1"] <= 1 << 18
    assert 0.5 * size < process.progress()[0] <= size + 14


def test_progress_tells_bytes_logged_and_memory_without_the_guards(start: Starter) -> None:
    process = start.waiting(*stubborn("grow"))
    logged, resident = process.progress()
    assert logged == len("waiting\n")
    server = psutil.Process(server_of(process)).memory_info().rss
    assert resident > MEMORY
    assert resident == pytest.approx(server, rel=0.1)


def test_the_environment_has_nothing_that_changes_options(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = ["SPEC_TYPE", "DRAFT_MAX", "MODEL", "MODEL_DRAFT", "HF_REPO", "HFD_REPO", "HOST"]
    hidden += ["PORT", "ENDPOINT_METRICS"]
    for name in hidden:
        monkeypatch.setenv(f"LLAMA_ARG_{name}", "1")
    monkeypatch.setenv("LLAMA_ARG_THREADS", "1")
    monkeypatch.setenv("LLAMA_CACHE", "elsewhere")
    process = start(*stubborn("environment"))
    assert ended(process) == 0
    assert process.tail(1) == ("['GGML_NO_BACKTRACE', 'LLAMA_ARG_THREADS', 'LLAMA_CACHE']",)
    assert process.dropped == tuple(sorted(f"LLAMA_ARG_{name}" for name in hidden))


def test_what_the_caller_adds_to_the_environment_arrives(start: Starter) -> None:
    process = start.launcher.launch(stubborn("environment"), 1, env={"SPECTUI_TEST": "1"})
    start.started.append(process)
    assert ended(process) == 0
    assert "SPECTUI_TEST" in process.tail(1)[0]


def test_a_free_port_can_be_bound(start: Starter) -> None:
    with socket.create_server(("127.0.0.1", start.launcher.free_port(None))) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortError):
            start.launcher.free_port(port)
    assert start.launcher.free_port(port) == port


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_the_owner_of_a_port_is_named(start: Starter, address: str) -> None:
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortError) as caught:
            start.launcher.free_port(port)
    name = psutil.Process().name()
    assert str(caught.value) == (
        f"port {port} is used by {name} (pid {os.getpid()}): "
        "stop that program, or choose another port with server.port"
    )


def test_a_port_whose_owner_cannot_be_told_is_still_refused(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: object) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(PortError, match="is used by another program"),
    ):
        start.launcher.free_port(server.getsockname()[1])


@pytest.mark.parametrize("port", [0, -1, 65536, 70000])
def test_what_is_not_a_port_is_refused(start: Starter, port: int) -> None:
    with pytest.raises(PortError, match="from 1 to 65535"):
        start.launcher.free_port(port)


def test_connections_that_linger_do_not_make_a_port_taken(start: Starter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # who closes first is left in TIME_WAIT
        client.close()
    assert start.launcher.free_port(port) == port


async def test_after_stop_the_port_is_free(start: Starter) -> None:
    port = start.launcher.free_port(None)
    process = start.waiting(*stubborn("listen", port), port=port)
    with pytest.raises(PortError):
        start.launcher.free_port(port)
    await process.stop(5)
    assert start.launcher.free_port(port) == port


async def test_stop_waits_for_the_port(start: Starter) -> None:
    process = start.waiting(*stubborn("wait"))
    with socket.create_server(("127.0.0.1", process.port)) as other:
        asyncio.get_running_loop().call_later(0.4, other.close)
        began = time.monotonic()
        await process.stop(5)
        assert time.monotonic() - began >= 0.35


@pytest.mark.parametrize(
    ("name", "content", "mode", "text"),
    [
        ("missing", None, 0, "does not exist"),
        ("text", b"hello", 0o644, "is not executable: chmod +x"),
        ("text", b"hello", 0o755, "is not a program"),
        ("empty", b"", 0o755, "is empty"),
        ("script", b"#!/no/such/thing -x\n", 0o755, "interpreter that does not exist"),
        ("windows", b"MZ\x90\x00", 0o755, "is a Windows program"),
    ],
)
def test_a_program_that_cannot_be_run_is_refused_in_one_line(
    start: Starter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes | None,
    mode: int,
    text: str,
) -> None:
    monkeypatch.setattr("spectui.adapters.program._BINFMT", tmp_path / "none")
    program = tmp_path / name
    if content is not None:
        program.write_bytes(content)
        program.chmod(mode)
    with pytest.raises(EngineError) as caught:
        start(str(program))
    assert str(caught.value).startswith(str(program))
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "logs").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="about Linux' formats")
def test_a_program_for_another_processor_is_refused(
    start: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectui.adapters.program._BINFMT", tmp_path / "none")
    program = tmp_path / "llama-server"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\x00" + bytes(44))
    program.chmod(0o755)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(EngineError, match="is built for RISC-V, not x86_64"):
        start(str(program))
    program.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(60))
    with pytest.raises(EngineError, match="is built for macOS"):
        start(str(program))


def test_a_directory_is_refused_and_the_program_in_it_named(start: Starter, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"is a directory: set server\.engine to the path"):
        start(str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "llama-server").touch()
    with pytest.raises(EngineError, match=r"is a directory: .*/bin/llama-server"):
        start(str(tmp_path))


def test_a_link_to_nothing_is_called_so(start: Starter, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(EngineError, match="is a link to something that does not exist"):
        start(str(tmp_path / "link"))


def test_a_name_that_is_not_in_path_is_refused_with_the_nearest(
    start: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        EngineError, match=r"^llama-server is not in PATH: set server.engine to its"
    ):
        start("llama-server")
    (tmp_path / "llama-server").write_text("#!/bin/sh\n")
    (tmp_path / "llama-server").chmod(0o755)
    with pytest.raises(EngineError, match='did you mean "llama-server"'):
        start("lama-server")
    assert ended(start("llama-server")) == 0


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",)])
def test_no_program_at_all_is_refused(start: Starter, argv: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match="no usable name"):
        start(*argv)


@pytest.mark.parametrize("argument", ["nul\0", "x" * 5_000_000])
def test_an_argument_that_no_system_takes_is_refused_and_leaves_nothing_open(
    start: Starter, argument: str
) -> None:
    before = open_files()
    with pytest.raises(EngineError, match="cannot be started"):
        start("/bin/sh", argument)
    assert open_files() == before


def test_a_program_that_fails_in_exec_itself_ends_with_a_reason(
    start: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectui.adapters.program._format_problem", lambda _head: "")
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF but not really")
    program.chmod(0o755)
    process = start(str(program))
    assert ended(process) == 126
    assert process.tail(1) == (f"spectui: cannot run {program}: Exec format error",)


def test_where_no_log_can_be_written_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(SpectuiError, match="no log can be written"):
        LlamaLauncher(tmp_path / "file").launch(["/bin/sh"], 1)


async def test_20_starts_and_stops_leave_nothing_behind(start: Starter, tmp_path: Path) -> None:
    files, children = open_files(), psutil.Process().children(recursive=True)
    for number in range(20):
        process = start(*stubborn("wait"))
        if number % 2:
            assert until(lambda process=process: process.tail(1))  # type: ignore[misc]
        await process.stop(5)
        assert process.poll() is not None
    assert open_files() == files
    assert psutil.Process().children(recursive=True) == children
    assert len(list((tmp_path / "logs").iterdir())) <= 2
