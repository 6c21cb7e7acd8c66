"""``spectui import``: a profile from a llama-server command line, however old, and what it did.

The profile goes to stdout, or to the file of ``-o``; what there is to know about it to stderr. The
exit status is 0 when there is a profile, 1 when a file cannot be read or written, 2 where there is
no command in what was given.
"""

from __future__ import annotations

import argparse
import codecs
import json
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from spectui.adapters.command_text import LIMIT, commands_of_words, find_commands
from spectui.adapters.toml_store import save_text, toml_text
from spectui.cli.options import positive
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.imported import Imported, Notice, OldCommand
from spectui.domain.old_command import import_command
from spectui.domain.profile import parse_profile
from spectui.domain.text import clean, nearest

_EPILOG = """\
examples:
  spectui import -o my.toml -- llama-server -m big.gguf -md small.gguf
  spectui import start.sh                     a script, a unit, a compose file
  spectui import --name qwen llama-swap.yaml  one of several models
  pbpaste | spectui import -                  what was copied from a post

Reads sh, cmd and PowerShell, docker and podman, docker compose, systemd units and
llama-swap's configuration. Nothing in it is run. Of several commands the first is
taken, unless --name or --number chooses another.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui import``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.usage = "spectui import [options] (-- COMMAND… | FILE | -)"
    parser.add_argument(
        "words", nargs="*", metavar="-- COMMAND…|FILE|-", help="the command, its file, or stdin"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="PROFILE", help="where to write it")
    parser.add_argument("--force", action="store_true", help="replace PROFILE if it is there")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", help="of several commands the one of this name")
    which.add_argument("--number", type=positive, metavar="N", help="of several the Nth")
    parser.add_argument("--json", action="store_true", help="for programs")


def main(options: argparse.Namespace) -> int:
    """Turn a command into a profile; return the exit status."""
    output: Path | None = options.output
    if output is not None and output.exists() and not options.force:
        shown = clean(str(output), limit=300)
        raise UsageError(f"{shown} is there already", "give another name, or --force to replace it")
    command, others = _chosen(_commands(options.words), options)
    imported = import_command(command)
    parse_profile(imported.profile, file="the imported profile")  # it can be used, or says why not
    warnings = [*others, *imported.warnings]
    text = toml_text(imported.profile)
    if output is not None:
        save_text(text, output)
    if options.json:
        print(json.dumps(_mapping(imported, warnings), indent=2, ensure_ascii=False))
        return 0
    if output is None:
        print(text, end="", flush=True)
    for line in _report(warnings, output):
        print(line, file=sys.stderr)
    return 0


def _commands(words: Sequence[str]) -> tuple[OldCommand, ...]:
    if not words:
        raise UsageError("no command given", "write it after --, or name a file, or - for stdin")
    if len(words) > 1 or any(blank in words[0] for blank in " \t\n"):
        found = commands_of_words(words)
        where = "this"
    else:
        found = find_commands(_read(words[0]))
        where = "stdin" if words[0] == "-" else clean(words[0], limit=300)
    if not found:
        raise UsageError(
            f"there is no llama-server command in {where}",
            "give the line that starts it, with -m and the model",
        )
    return found


def _read(name: str) -> str:
    if name == "-":
        if sys.stdin.isatty():
            raise UsageError("no command given", "pipe one in, or write it after --")
        return _text(sys.stdin.buffer.read(4 * LIMIT))
    try:
        with Path(name).open("rb") as file:
            return _text(file.read(4 * LIMIT))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = error.strerror if isinstance(error, OSError) else None
        raise SpectuiError(
            f"{clean(name, limit=300)}: {why or error}",
            "name the command's file, or write the command after --",
        ) from None


def _text(raw: bytes) -> str:
    """Return a file's text; PowerShell writes UTF-16."""
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if wide else "utf-8-sig", "replace")


def _chosen(
    found: tuple[OldCommand, ...], options: argparse.Namespace
) -> tuple[OldCommand, list[Notice]]:
    """Return the command that is meant, and what to say about the others."""
    names = [command.name or f"{at}" for at, command in enumerate(found, 1)]
    if options.name is not None:
        return found[_named(options.name, names)], []
    if options.number is not None:
        if options.number > len(found):
            only = "is only one command" if len(found) == 1 else f"are {len(found)} commands"
            raise UsageError(f"--number {options.number}: there {only}", "leave it out")
        return found[options.number - 1], []
    if len(found) == 1:
        return found[0], []
    told = f"{_some(names)}" if any(command.name for command in found) else f"1 to {len(found)}"
    how = "--name" if any(command.name for command in found) else "--number"
    why = f"the first of {len(found)} commands is taken; {how} chooses another: {told}"
    return found[0], [Notice("several", why)]


def _named(name: str, names: Sequence[str]) -> int:
    alike = [at for at, other in enumerate(names) if name.lower() in other.lower()]
    if name in names:
        return names.index(name)
    if len(alike) == 1:
        return alike[0]
    close = nearest(name, names)
    fix = f"did you mean {clean(close, limit=80)}?" if close else f"there are {_some(names)}"
    if alike:
        fix = f"more than one has it: {_some([names[at] for at in alike])}"
    raise UsageError(f"--name {clean(name, limit=80)}: there is no such command", fix)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(clean(name, limit=60) for name in names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown


def _mapping(imported: Imported, warnings: Sequence[Notice]) -> dict[str, object]:
    return {
        "profile": imported.profile,
        "env": dict(imported.env),
        "warnings": [{"code": each.code, "message": each.message} for each in warnings],
    }


_GROUPS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "What this command really does",
        frozenset(
            {
                *("type-not-set", "no-effect", "draft-missing", "unknown-type", "combined"),
                *("default-changed", "out-of-range", "duplicate", "embedding", "parallel"),
                "mmproj",
            }
        ),
    ),
    ("Written in today's words", frozenset({"renamed", "expanded"})),
    (
        "Left out",
        frozenset(
            {
                *("removed", "ignored", "unknown-flag", "invalid-value", "owned"),
                *("secret-dropped", "not-a-server"),
            }
        ),
    ),
)
_REST = "Look at before you start it"


def _report(warnings: Sequence[Notice], output: Path | None) -> Iterator[str]:
    """Yield the lines for people: what matters most comes first."""
    grouped = frozenset[str]().union(*(codes for _, codes in _GROUPS))
    rest = frozenset(each.code for each in warnings) - grouped
    for title, codes in (*_GROUPS, (_REST, rest)):
        messages = [each.message for each in warnings if each.code in codes]
        if messages:
            yield f"{title}:"
            for message in messages:
                yield from _item(message)
    if output is not None:
        name = shlex.quote(clean(str(output), limit=300))
        yield f"spectui: wrote {name}; next: spectui doctor {name}"


def _item(message: str) -> list[str]:
    """Return a message as an item of a list; only a terminal gets it broken into lines."""
    if not sys.stderr.isatty():
        return [f"  - {message}"]
    return textwrap.wrap(
        message,
        min(100, max(40, shutil.get_terminal_size().columns)),
        initial_indent="  - ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
