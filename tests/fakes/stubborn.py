"""A small program with bad habits, to be supervised: ``stubborn.py HABIT [ARGUMENT]``."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

MEMORY = 64 << 20  # bytes that "grow" takes


def wait() -> None:
    print("waiting", flush=True)
    time.sleep(60)


def main(habit: str, argument: str = "") -> int:
    match habit:
        case "wait":
            wait()
        case "polite":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            wait()
        case "ignore-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            wait()
        case "exit":
            return int(argument)
        case "die":
            signal.signal(int(argument), signal.SIG_DFL) if int(argument) != signal.SIGKILL else None
            os.kill(os.getpid(), int(argument))
        case "signals":
            ignored = [s.name for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN]
            blocked = [signal.Signals(s).name for s in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
            # Python itself ignores these two when it starts
            print("ignored", sorted(set(ignored) - {"SIGPIPE", "SIGXFSZ"}), "blocked", blocked)
        case "chatter":
            line = b"x" * 99 + b"\n"
            for _ in range(int(argument) // (1000 * len(line))):
                os.write(1, line * 1000)
            os.write(1, b"the last line\n")
        case "listen":
            with socket.create_server(("127.0.0.1", int(argument))):
                wait()
        case "grow":
            hoard = b"x" * MEMORY
            wait()
            del hoard
        case "stdin-and-files":
            files = sorted(os.listdir("/dev/fd"))
            print("stdin", repr(sys.stdin.read()), "files", files)
        case "environment":
            print(sorted(n for n in os.environ if n.startswith(("LLAMA_", "GGML_", "SPECTUI_T"))))
        case "launch":  # be a spectui that will be killed: launch the rest, tell the pids, wait
            from spectui.adapters.llama_process import LlamaLauncher

            launcher = LlamaLauncher(Path(argument))
            process = launcher.launch(sys.argv[3:], launcher.free_port(None))
            while process.server_pid is None or not process.tail(1):
                time.sleep(0.01)
            print(process.pid, process.server_pid, flush=True)
            time.sleep(60)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
