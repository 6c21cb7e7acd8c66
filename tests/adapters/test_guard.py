"""The guard as a program of its own, as spectui starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from processes import is_alive, stubborn, until

from spectui.adapters import guard

Guard = subprocess.Popen[bytes]
Start = Callable[..., Guard]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start guards; output goes to ``out`` in the test's folder, stdin is the lifeline."""
    guards: list[Guard] = []

    def start(*argv: str, **options: object) -> Guard:
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, "--", *argv],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
                **options,  # type: ignore[call-overload]
            )
        guards.append(process)
        return process

    yield start
    for process in guards:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def output(tmp_path: Path) -> Callable[[], str]:
    return lambda: (tmp_path / "out").read_text(errors="replace")


def group(process: Guard) -> list[int]:
    """The living processes of a guard's group but itself."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getpgid(pid) == process.pid and pid != process.pid and is_alive(pid):
                found.append(pid)
        except ProcessLookupError:
            continue
    return found


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_the_exit_status_of_the_server_is_the_guards(start: Start, code: int) -> None:
    assert start(*stubborn("exit", code)).wait(10) == code


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGTERM, signal.SIGINT],
)
def test_the_signal_that_ended_the_server_ends_the_guard(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    process = start(*stubborn("die", int(number)), cwd=tmp_path)
    assert process.wait(10) == -number
    assert [path.name for path in tmp_path.iterdir() if "core" in path.name] == []


def test_the_server_has_default_dispositions_and_no_signal_blocked(
    start: Start, output: Callable[[], str]
) -> None:
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        process = start(*stubborn("signals"))
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    assert process.wait(10) == 0
    assert output() == "ignored [] blocked []\n"


def test_the_server_reads_nothing_and_has_no_file_of_ours(
    start: Start, output: Callable[[], str]
) -> None:
    assert start(*stubborn("files")).wait(10) == 0
    # three, and the one that lists them
    assert output() == "stdin '' files ['0', '1', '2', '3']\n"


def test_signals_for_the_group_pass_the_guard_by(start: Start, output: Callable[[], str]) -> None:
    process = start(*stubborn("ignore-term"))
    assert until(output)
    for number in (signal.SIGTERM, signal.SIGTERM):
        os.killpg(process.pid, number)
    time.sleep(0.2)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # Python's own habit: a traceback, and death by SIGINT
    assert process.wait(10) == -signal.SIGINT


def test_sigterm_to_the_group_ends_a_server_with_its_own_status(
    start: Start, output: Callable[[], str]
) -> None:
    process = start(*stubborn("polite"))
    assert until(output)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(10) == 0


def test_a_signal_that_comes_before_the_server_is_there_reaches_it(tmp_path: Path) -> None:
    early = (
        "import os, signal, sys; "
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}); "
        "os.kill(os.getpid(), signal.SIGTERM); "  # it stays pending across exec
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", early, "-I", "-S", guard.__file__, "--", *stubborn("wait")],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.wait(5) == -signal.SIGTERM
    finally:
        process.communicate()


@pytest.mark.parametrize("habit", ["wait", "ignore-term"])
def test_when_the_lifeline_breaks_everything_ends(
    start: Start, output: Callable[[], str], habit: str
) -> None:
    process = start("/bin/sh", "-c", f"{' '.join(stubborn(habit))} & wait")
    assert until(output)
    members = group(process)
    assert len(members) == 2
    assert process.stdin is not None
    process.stdin.close()
    began = time.monotonic()
    process.wait(10)
    assert until(lambda: not any(map(is_alive, members)), 1)
    assert time.monotonic() - began < 3


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux' own")
def test_a_killed_guard_takes_the_server_along(start: Start, output: Callable[[], str]) -> None:
    process = start(*stubborn("ignore-term"))
    assert until(output)
    (server,) = group(process)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    assert until(lambda: not is_alive(server), 3)


def test_what_the_server_leaves_behind_is_ended(start: Start, output: Callable[[], str]) -> None:
    process = start("/bin/sh", "-c", f"{' '.join(stubborn('ignore-term'))} & sleep 0.3; exit 7")
    assert until(output)
    (left,) = [pid for pid in group(process) if "ignore-term" in psutil.Process(pid).cmdline()]
    assert process.wait(10) == 7
    assert until(lambda: not is_alive(left), 1)


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (None, 127, "No such file or directory"),
        (b"#!/no/such/interpreter\n", 127, "the interpreter or loader"),
        (b"neither a script nor a program", 126, "Exec format error"),
    ],
)
def test_a_program_that_cannot_be_run_is_one_line_and_a_shells_status(
    start: Start,
    output: Callable[[], str],
    tmp_path: Path,
    content: bytes | None,
    code: int,
    text: str,
) -> None:
    program = tmp_path / "program"
    if content is not None:
        program.write_bytes(content)
        program.chmod(0o755)
    assert start(str(program)).wait(10) == code
    (line,) = output().splitlines()
    assert line.startswith(f"spectui: cannot run {program}: ")
    assert text in line


def test_a_program_that_may_not_be_run_says_so(
    start: Start, output: Callable[[], str], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    assert start(str(program)).wait(10) == 126
    assert "Permission denied" in output()


def test_without_a_command_it_says_how_it_is_used() -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-S", guard.__file__], capture_output=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"usage: guard.py -- PROGRAM")


@pytest.mark.skipif(not os.access("/bin/ps", os.X_OK), reason="there is no ps here")
def test_members_of_a_group_are_found_with_ps_too(start: Start, output: Callable[[], str]) -> None:
    process = start(*stubborn("wait"))
    assert until(output)
    (server,) = group(process)
    assert sorted(guard._members_by_ps(process.pid)) == sorted([process.pid, server])
    assert guard._is_in(server, process.pid)
    assert not guard._is_in(server, os.getpid())
