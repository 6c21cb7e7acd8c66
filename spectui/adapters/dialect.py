"""Asks a llama-server binary, once, which words it understands; the answer is kept on disk.

``--help`` is printed on stdout and ``--version`` on stderr by most builds: both streams of both are
read. A binary is known again by its path, size and time of change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import tempfile
from dataclasses import asdict
from pathlib import Path

from spectui.adapters.printed import printed
from spectui.domain.dialect import Dialect, read_help
from spectui.domain.errors import EngineError
from spectui.domain.text import clean

_FORMAT = 1  # of the file; another one is asked for again


def dialect_of(program: str, cache: Path | None = None) -> Dialect | None:
    """Return the dialect of the binary ``program``, None where its help lists no flags.

    ``cache`` is the folder where answers are kept. Raises EngineError where it cannot be run at
    all, with the line in which it says why.
    """
    identity = _identity(program)
    kept = cache / f"{hashlib.sha256(program.encode()).hexdigest()[:16]}.json" if cache else None
    if kept is not None and (known := _read(kept, identity)) is not None:
        return known
    found = _ask(program)
    if kept is not None and found is not None:
        _write(kept, identity, found)
    return found


def _ask(program: str) -> Dialect | None:
    text, code = printed(program, "--help")
    found = read_help(text)
    if found is None:
        if code in {126, 127} or (code is not None and code < 0):
            line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            ended = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
            raise EngineError(f"{program} cannot be run ({ended})", clean(line, limit=200))
        return None
    return read_help(text, _version(printed(program, "--version")[0]))


def _version(text: str) -> str:
    told = (line.strip() for line in text.splitlines() if "version:" in line)
    return next(told, "").partition("version:")[2].strip()


def _identity(program: str) -> list[object]:
    try:
        status = Path(program).stat()
    except OSError as error:
        raise EngineError(f"{program} cannot be read ({error.strerror})") from None
    return [_FORMAT, program, status.st_size, status.st_mtime_ns]


def _read(kept: Path, identity: list[object]) -> Dialect | None:
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
        if data["binary"] != identity:
            return None
        fields = data["dialect"]
        types = fields["types"]
        return Dialect(
            **fields
            | {
                "flags": frozenset(fields["flags"]),
                "removed": frozenset(fields["removed"]),
                "types": None if types is None else tuple(types),
            }
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, damaged or of another version: the binary is asked again


def _write(kept: Path, identity: list[object], found: Dialect) -> None:
    fields = asdict(found) | {"flags": sorted(found.flags), "removed": sorted(found.removed)}
    with contextlib.suppress(OSError):  # a cache that cannot be written costs only time
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=kept.parent, delete=False, encoding="utf-8"
        ) as file:
            json.dump({"binary": identity, "dialect": fields}, file)
        Path(file.name).replace(kept)
