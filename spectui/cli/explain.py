"""``spectui explain``: why a llama-server failed, from its log, wherever that comes from.

The exit status is 0 when the log was read, whatever it says; 1 when it cannot be read; 2 for wrong
usage. What was found is for people on stdout, or with ``--json`` for programs.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from spectui.cli.columns import terminal_width
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.failures import Diagnosis, Examiner
from spectui.domain.text import clean

_CHUNK = 1 << 16
_LONGEST = 1 << 14  # bytes of a line that are kept; the rest of a longer one is passed over
_WIDTH = 96  # columns, where the terminal is not narrower


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui explain``."""
    parser.add_argument("log", metavar="LOGFILE|-", help="the server's log; - for stdin")
    parser.add_argument(
        "--exit",
        type=_status,
        metavar="N",
        help="the server's exit status, if the log does not tell: 1, 137, or -9 for a signal",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def _status(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{clean(text, limit=40)!r} is not a number") from None


def main(options: argparse.Namespace) -> int:
    """Explain a log; return the exit status."""
    examiner = Examiner()
    empty = True
    for line in _lines_of(options.log):
        empty = empty and not line.strip()
        examiner.feed(line)
    found = examiner.diagnosis(options.exit)
    if options.json:
        print(
            json.dumps(
                _mapping(found, examiner.exit if options.exit is None else options.exit),
                ensure_ascii=False,
            )
        )
    else:
        print(_for_people(found, empty=empty))
    return 0


def _lines_of(name: str) -> Iterator[str]:
    """Yield the lines of a file or of stdin. Raises SpectuiError where it cannot be read."""
    if name == "-":
        if sys.stdin.isatty():
            raise UsageError("no log given", "pipe one in, or name a file")
        yield from _read(sys.stdin.buffer)
        return
    shown = clean(name, limit=300)
    try:
        with Path(name).open("rb") as file:
            yield from _read(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = error.strerror if isinstance(error, OSError) else None
        raise SpectuiError(
            f"{shown}: {why or error}", "name the log's file, or - for stdin"
        ) from None


def _read(file: BinaryIO) -> Iterator[str]:
    """Yield lines, each cut at ``_LONGEST`` bytes: a log of any size takes the same memory."""
    kept = b""
    while chunk := file.read(_CHUNK):
        *whole, rest = chunk.replace(b"\r", b"\n").split(b"\n")
        for part in whole:
            yield _text((kept + part)[:_LONGEST])
            kept = b""
        kept = (kept + rest)[:_LONGEST]
    if kept:
        yield _text(kept)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _mapping(found: Diagnosis | None, status: int | None) -> dict[str, object]:
    if found is None:
        return {"class": None, "line": "", "exit": status, "advice": "", "also": []}
    return {
        "class": found.code,
        "line": found.line,
        "exit": found.exit,
        "advice": found.advice,
        "also": list(found.also),
    }


def _for_people(found: Diagnosis | None, *, empty: bool) -> str:
    if found is None:
        return "The log is empty." if empty else "Nothing is wrong as far as this log shows."
    parts = [("what", f"{found.what} ({found.code})"), ("line", found.line)]
    if found.exit is not None:
        parts.append(("exit", str(found.exit)))
    parts.append(("do", found.advice))
    if found.also:
        parts.append(("also", ", ".join(found.also)))
    return "\n".join(_block(name, text) for name, text in parts if text)


def _block(name: str, text: str) -> str:
    return textwrap.fill(
        clean(text, limit=1000),
        min(_WIDTH, terminal_width() or _WIDTH),
        initial_indent=f"{name:5} ",
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )
