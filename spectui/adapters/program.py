"""Finds the program that is to be run, and says in one line why it can't be."""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from spectui.domain.errors import EngineError
from spectui.domain.text import nearest

# These change a server's options behind one's back; what is measured must be what is shown.
_HIDDEN_OPTION = re.compile(
    r"LLAMA_API_KEY$|LLAMA_ARG_(SPEC_|DRAFT|MODEL|HF|ENDPOINT_|HOST$|PORT$|API_|SSL_|LOG_FILE)",
)
_SET = "set server.engine to the path of a llama-server program"
_ELF_MACHINES = {
    "x86_64": {62: "x86-64", 3: "x86"},
    "aarch64": {183: "ARM64", 40: "ARM"},
}
_ELF_NAMES = {3: "x86", 21: "PowerPC", 40: "ARM", 62: "x86-64", 183: "ARM64", 243: "RISC-V"}
_MACH_O = {b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"}
_BINFMT = Path("/proc/sys/fs/binfmt_misc")


def child_environment(base: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the environment for a server, and the names that were left out of it, sorted.

    GGML_NO_BACKTRACE is set: a failed assertion would start a debugger otherwise.
    """
    dropped = tuple(sorted(name for name in base if _HIDDEN_OPTION.match(name)))
    kept = {name: value for name, value in base.items() if name not in dropped}
    return kept | {"GGML_NO_BACKTRACE": "1"}, dropped


def find_program(name: str, search: str | None = None) -> str:
    """Return the absolute path of the program ``name``; links in it are kept.

    A name without a slash is looked up in ``search`` (PATH where None). Raises EngineError.
    """
    if not name or "\0" in name:
        raise EngineError("the engine has no usable name", _SET)
    if "/" not in name:
        found = shutil.which(name, path=search)
        if found is None:
            raise EngineError(f"{name} is not in PATH", _hint(name, search))
        name = found
    try:
        path = Path(name).absolute()
        if not path.exists():
            broken = path.is_symlink()
            what = "is a link to something that does not exist" if broken else "does not exist"
            raise EngineError(f"{path} {what}", _SET)
        problem = _problem(path)
    except OSError as error:
        raise EngineError(f"{name} cannot be read ({error.strerror or error})", _SET) from None
    if problem is not None:
        raise EngineError(f"{path} {problem[0]}", problem[1])
    return str(path)


def _hint(name: str, search: str | None) -> str:
    if Path(name).is_file():
        return f"set server.engine to ./{name} if you mean the file here"
    known: set[str] = set()
    for directory in (search or os.environ.get("PATH", os.defpath)).split(os.pathsep):
        try:
            known.update(entry for entry in os.listdir(directory or ".") if "llama" in entry)  # noqa: PTH208 - names are enough
        except OSError:
            continue
    close = nearest(name, known)
    return f'did you mean "{close}"? If not, {_SET}' if close else "set server.engine to its path"


def _problem(path: Path) -> tuple[str, str] | None:
    """Return (what is wrong, what to do) with an existing path, None if nothing is."""
    if path.is_dir():
        for inside in ("llama-server", "bin/llama-server", "build/bin/llama-server"):
            if (path / inside).is_file():
                return "is a directory", f"set server.engine to {path / inside}"
        return "is a directory", _SET
    if not path.is_file():
        return "is not a file", _SET
    if not os.access(path, os.X_OK):
        return "is not executable", f"chmod +x {path}, if it is the program you mean"
    try:
        with path.open("rb") as file:
            head = file.read(256)
    except OSError:
        return None  # a program may be runnable and not readable
    wrong = _format_problem(head)
    return (wrong, "use a llama-server that is built for this machine") if wrong else None


def _format_problem(head: bytes) -> str:
    """Return why the kernel would refuse a program that starts with ``head``, or nothing."""
    if not head:
        return "is empty"
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
        interpreter = os.fsdecode(words[0]) if words else ""
        if not Path(interpreter).is_file():
            return f"asks for an interpreter that does not exist ({interpreter or 'no name'})"
        return ""
    if _runs_foreign_formats():
        return ""
    linux = sys.platform.startswith("linux")
    if head.startswith(b"\x7fELF"):
        return _elf_problem(head) if linux else "is built for Linux or another Unix"
    if head[:4] in _MACH_O:
        return "is built for macOS" if linux else ""
    if head.startswith(b"MZ"):
        return "is a Windows program"
    return "is not a program (its format is not known)"


def _elf_problem(head: bytes) -> str:
    if len(head) < 20:
        return "is cut off"
    (machine,) = struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])
    runs = _ELF_MACHINES.get(platform.machine())
    if runs is None or machine in runs:
        return ""
    return f"is built for {_ELF_NAMES.get(machine, 'another processor')}, not {platform.machine()}"


def _runs_foreign_formats() -> bool:
    """Return whether this Linux has been taught other formats (Wine, QEMU)."""
    try:
        return any(entry.name not in {"register", "status"} for entry in _BINFMT.iterdir())
    except OSError:
        return False
