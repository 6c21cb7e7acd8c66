"""A small program with bad habits, to be supervised: ``stubborn.py HABIT [ARGUMENT…]``."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

MEMORY = 64 << 20  # bytes that "grow" takes


def wait() -> None:
    print("waiting", flush=True)
    time.sleep(60)


def polite() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    wait()


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait()


def leave(code: str) -> None:
    sys.exit(int(code))


def die(number: str) -> None:
    if int(number) != signal.SIGKILL:
        signal.signal(int(number), signal.SIG_DFL)
    os.kill(os.getpid(), int(number))


def signals() -> None:
    ignored = {s.name for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN}
    blocked = [signal.Signals(s).name for s in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
    # Python itself ignores these two when it starts
    print("ignored", sorted(ignored - {"SIGPIPE", "SIGXFSZ"}), "blocked", blocked)


def chatter(size: str) -> None:
    line = b"x" * 99 + b"\n"
    for _ in range(int(size) // (1000 * len(line))):
        os.write(1, line * 1000)
    time.sleep(0.2)
    os.write(1, b"the last line\n")


def listen(port: str) -> None:
    with socket.create_server(("127.0.0.1", int(port))):
        wait()


def grow() -> None:
    hoard = b"x" * MEMORY
    wait()
    del hoard


def files() -> None:
    print("stdin", repr(sys.stdin.read()), end=" ")
    print("files", sorted(path.name for path in Path("/dev/fd").iterdir()))


def environment() -> None:
    print(sorted(n for n in os.environ if n.startswith(("LLAMA_", "GGML_", "SPECTUI_T"))))


def launch(directory: str, *argv: str) -> None:
    """Be a spectui that will be killed: launch a server, tell the pids, wait."""
    from spectui.adapters.llama_process import LlamaLauncher

    launcher = LlamaLauncher(Path(directory))
    process = launcher.launch(argv, launcher.free_port(None))
    while process.server_pid is None or not process.tail(1):
        time.sleep(0.01)
    print(process.pid, process.server_pid, flush=True)
    time.sleep(60)


HABITS: dict[str, Callable[..., None]] = {
    "wait": wait,
    "polite": polite,
    "ignore-term": ignore_term,
    "exit": leave,
    "die": die,
    "signals": signals,
    "chatter": chatter,
    "listen": listen,
    "grow": grow,
    "files": files,
    "environment": environment,
    "launch": launch,
}

if __name__ == "__main__":
    HABITS[sys.argv[1]](*sys.argv[2:])
