"""Runs one server and dies with it: ``python -I -S guard.py -- /path/of/program ARGS…``.

It stands between spectui and the server, so that no server outlives spectui, whatever ends it:

- standard input is a pipe from spectui. When it closes, the process group gets SIGTERM and, a
  second later, SIGKILL;
- on Linux the server dies with this process too (PR_SET_PDEATHSIG). The signal follows the thread
  that forked, and this process has one only; spectui has several, and cannot ask for it itself;
- it ends as the server ended: with its exit status, or by the same signal. 126 and 127 mean, as in
  a shell, that the program could not be run or found; one line in the log says why.

It leads the process group of the server (spectui starts it in a session of its own) and holds back
the signals that are meant for the server. It needs the standard library only, and is a file to run,
not a module to import: it must start fast and stay small.
"""

from __future__ import annotations

import errno
import io
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence

GRACE = 1.0  # seconds between SIGTERM and SIGKILL
_LIFELINE = 0  # standard input
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_HELD = {
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
}


def main(argv: Sequence[str]) -> int:
    """Run ``argv`` (after a leading ``--``), and end as it ends."""
    command = list(argv[1:]) if argv[:1] == ["--"] else []
    if not command:
        sys.stderr.write("usage: guard.py -- PROGRAM [ARGUMENT…]\n")
        return 2
    if os.getpgrp() != os.getpid():
        os.setsid()  # run by hand: the group we end must not be somebody else's
    # Held back, not ignored: an ignored signal would stay ignored in the server, and one that
    # comes between fork and exec is not lost. SIGCHLD must not be held, whoever started us.
    signal.pthread_sigmask(signal.SIG_SETMASK, _HELD)
    bell = _wake_on_child()
    prctl = _find_prctl()
    guard = os.getpid()
    server = os.fork()
    if server == 0:
        _become(command, guard, prctl)
    for number in signal.sigpending() & _HELD:
        os.kill(server, number)  # it came before the fork, and reached us alone
    status = _watch(server, bell)
    if status is None:
        _end_group(server)
        return 0  # not reached: the group's SIGKILL includes us
    _end_others()
    return _end_like(status, prctl)


def _wake_on_child() -> int:
    """Return a file descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reader


def _find_prctl() -> Callable[..., int] | None:
    """Return Linux' prctl, looked up before the fork; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes  # noqa: PLC0415 - some builds of Python lack it, and macOS has no use for it

        prctl: Callable[..., int] = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return prctl


def _become(command: list[str], guard: int, prctl: Callable[..., int] | None) -> None:
    """Turn the forked child into the server. Never returns."""
    try:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != guard:  # it died before we could ask for its death to be told
                os._exit(126)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execv(command[0], command)  # noqa: S606 - no shell is what we want
    except OSError as error:
        line = f"spectui: cannot run {command[0]}: {_explain(command[0], error)}\n"
        os.write(2, line.encode("utf-8", "backslashreplace"))
        os._exit(127 if error.errno == errno.ENOENT else 126)
    finally:
        os._exit(126)  # whatever happened: never go on as a second guard


def _explain(program: str, error: OSError) -> str:
    if error.errno == errno.ENOENT and os.access(program, os.F_OK):
        return "the interpreter or loader that it asks for does not exist on this machine"
    return error.strerror or str(error)


def _watch(server: int, bell: int) -> int | None:
    """Return the wait status of the server once it ended, None when spectui ended first."""
    while True:
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            return status
        ready, _, _ = select.select([_LIFELINE, bell], [], [])
        if bell in ready:
            os.read(bell, 4096)
        if _LIFELINE in ready and not os.read(_LIFELINE, 4096):
            return None


def _end_group(server: int) -> None:
    """SIGTERM to the group, and SIGKILL when it is gone or the grace is over."""
    os.killpg(0, signal.SIGTERM)
    running = True
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        if running:
            running = os.waitpid(server, os.WNOHANG)[0] == 0
        if not running and not _others():
            break
        time.sleep(0.02)
    os.killpg(0, signal.SIGKILL)


def _end_others() -> None:
    """End what the server left behind in its group."""
    began = time.monotonic()
    asked: set[int] = set()  # once each: a second SIGTERM makes llama-server drop everything
    while (others := _others()) and (waited := time.monotonic() - began) < 2 * GRACE:
        for pid in others:
            if waited < GRACE and pid in asked:
                continue
            asked.add(pid)
            try:
                os.kill(pid, signal.SIGTERM if waited < GRACE else signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)


def _others() -> list[int]:
    """Return the processes of our group but us; dead ones that nobody waited for are left out."""
    group = os.getpgrp()
    if os.access("/proc/self/stat", os.R_OK):
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        members = [pid for pid in pids if _is_in(pid, group)]
    else:
        members = _members_by_ps(group)
    return [pid for pid in members if pid != os.getpid()]


def _is_in(pid: int, group: int) -> bool:
    try:
        with io.FileIO(f"/proc/{pid}/stat") as file:
            # The name is in brackets and may hold anything; state, parent and group follow it.
            state, _, its_group = file.readall().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(its_group) == group and state not in b"ZX"


def _members_by_ps(group: int) -> list[int]:
    """Ask ps; it is in another group, so that it does not find itself."""
    import subprocess  # noqa: PLC0415 - slow to import, and Linux needs none

    try:
        listing = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,pgid=,stat="],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=5,
            start_new_session=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split() for line in listing.decode("ascii", "replace").splitlines()]
    return [
        int(row[0])
        for row in rows
        if len(row) >= 3 and row[1] == str(group) and not row[2].startswith("Z")
    ]


def _end_like(status: int, prctl: Callable[..., int] | None) -> int:
    """Return the server's exit status, or end by the signal that ended it (without a core dump)."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # a core_pattern with a pipe ignores the limit
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
