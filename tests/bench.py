"""What spectui itself costs: the demo for a minute behind a pseudo-terminal, measuring.

Prints its CPU share (the dashboard and the Session, apart from the engine), resident memory,
terminal output raw and compressed, and the time to the first paint, with the machine it ran on.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import zlib

import psutil

from spectui.adapters.machine import describe_cpu

COLUMNS, ROWS = 120, 36
ALTERNATE_SCREEN = b"\x1b[?1049h"


def main() -> int:
    """Run the bench; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        # enough prompts to measure all the while
        tasks = "workload.tasks=['rewrite', 'math', 'code', 'science', 'creative']"
        command = [sys.executable, "-m", "spectui", "demo", "--set", tasks]
        os.execv(sys.executable, command)  # noqa: S606 - the child itself
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began = time.monotonic()
    try:
        painted = first_paint(terminal, began)
        settle(terminal, 3)
        os.write(terminal, b"m")
        figures = watch(terminal, psutil.Process(pid), options.seconds)
    finally:
        end(pid, terminal)
    print(f"machine          {describe_cpu()}")
    print(f"first paint      {painted:.2f} s")
    for line in figures:
        print(line)
    return 0


def read(terminal: int, timeout: float) -> bytes:
    """Return what the terminal got within ``timeout`` s, empty if nothing."""
    ready, _, _ = select.select([terminal], [], [], timeout)
    return os.read(terminal, 1 << 16) if ready else b""


def first_paint(terminal: int, began: float) -> float:
    """Return the seconds until the first screenful stood."""
    seen = b""
    while time.monotonic() - began < 30:
        seen += read(terminal, 0.5)
        if ALTERNATE_SCREEN in seen and len(seen.partition(ALTERNATE_SCREEN)[2]) > 4000:
            return time.monotonic() - began
    raise SystemExit(f"nothing was painted within 30 s; the terminal got {seen[-500:]!r}")


def settle(terminal: int, seconds: float) -> None:
    """Let the model load."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        read(terminal, 0.1)


def watch(terminal: int, process: psutil.Process, seconds: float) -> list[str]:
    """Return the figures of ``seconds`` of measuring, a line each."""
    compressor = zlib.compressobj(6)
    raw = packed = 0
    cpu, threads = process.cpu_times(), {t.id: t for t in process.threads()}
    began = time.monotonic()
    while (took := time.monotonic() - began) < seconds:
        data = read(terminal, min(0.2, seconds - took))
        raw += len(data)
        # flushed piece by piece, as ssh -C does
        packed += len(compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH))
    took = time.monotonic() - began
    now = process.cpu_times()
    used = now.user + now.system - cpu.user - cpu.system
    by_thread = sorted(
        (
            t.user_time
            + t.system_time
            - (threads[t.id].user_time + threads[t.id].system_time if t.id in threads else 0)
            for t in process.threads()
        ),
        reverse=True,
    )
    engine = sum(
        child.cpu_times().user + child.cpu_times().system
        for child in process.children(recursive=True)
    )
    memory = process.memory_info().rss
    busiest = ", ".join(f"{t / took:.1%}" for t in by_thread[:3])
    return [
        f"CPU              {used / took:.1%} of a core over {took:.0f} s (by thread {busiest})",
        f"memory           {memory / 1e6:.0f} MB resident",
        f"terminal         {raw / took / 1000:.1f} kB/s raw, {packed / took / 1000:.1f} compressed",
        f"engine           {engine:.0f} s of CPU so far, not counted above",
    ]


def end(pid: int, terminal: int) -> None:
    """End the dashboard and wait for it, reading so that it never blocks."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 15
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        try:
            read(terminal, 0.05)
        except OSError:
            time.sleep(0.05)
    os.close(terminal)


if __name__ == "__main__":
    sys.exit(main())
