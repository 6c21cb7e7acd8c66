"""Read a command line of llama-server: argv in, assignments out. Needs no engine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from spectui.embedded.flags import FLAGS, Assignment, Flag
from spectui.embedded.values import BadValueError

_HELP = Flag(("-h", "--help", "--usage"), "print usage and exit", lambda _: ())
_VERSION = Flag(("--version",), "show version and build info", lambda _: ())
_COLUMN, _WIDTH = 40, 110


class Action(Enum):
    """What a command line asks for."""

    SERVE = auto()
    HELP = auto()
    VERSION = auto()


class ArgumentError(ValueError):
    """A command line that llama-server would refuse; ``str()`` is what it would print."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command line, understood. Assignments are in the order of the flags; the last one wins."""

    action: Action = Action.SERVE
    assignments: tuple[Assignment, ...] = ()

    def last(self, path: str) -> object:
        """Return what ``path`` is set to last, None where nothing sets it."""
        found = [item.value for item in self.assignments if item.path == path]
        return found[-1] if found else None


def _by_name() -> dict[str, tuple[Flag, str]]:
    table: dict[str, tuple[Flag, str]] = {}
    for flag in (_HELP, _VERSION, *FLAGS):
        table.update(dict.fromkeys(flag.names, (flag, "on")))
        table.update(dict.fromkeys(flag.off, (flag, "off")))
    return table


_TABLE = _by_name()


def parse(argv: Sequence[str]) -> Parsed:
    """Read ``argv``, the program's name left out. Raises ArgumentError at the first bad option.

    As llama-server does: ``--version`` ends the reading, ``-h`` does not; ``--ctx_size`` is
    ``--ctx-size``; an option that takes a value takes the next word, whatever it is.
    """
    parsed, words = Parsed(), iter(argv)
    for word in words:
        name = word.replace("_", "-") if word.startswith("--") else word
        if name not in _TABLE:
            raise ArgumentError(f"error: invalid argument: {name}")
        flag, state = _TABLE[name]
        if flag is _VERSION:
            return replace(parsed, action=Action.VERSION)
        if flag is _HELP:
            parsed = replace(parsed, action=Action.HELP)
            continue
        found = _assign(name, flag, next(words, None) if flag.metavar else state)
        parsed = replace(parsed, assignments=parsed.assignments + found)
    return parsed


def _assign(name: str, flag: Flag, value: str | None) -> tuple[Assignment, ...]:
    if value is None:
        raise _refusal(name, flag, "expected value for argument")
    try:
        return tuple(item for item in flag.assign(value) if item.path)
    except BadValueError as error:
        raise _refusal(name, flag, str(error)) from None


def _refusal(name: str, flag: Flag, reason: str) -> ArgumentError:
    return ArgumentError(
        f'error while handling argument "{name}": {reason}\n\n'
        f"usage:\n{_entry(flag)}\n\n\nto show complete usage, run with -h"
    )


def usage() -> str:
    """Return the help text, laid out as llama-server's is."""
    return "\n".join(_entry(flag) for flag in (_HELP, _VERSION, *FLAGS))


def _entry(flag: Flag) -> str:
    first, *others = (*flag.names, *flag.off)
    head = f"{first}, ".ljust(7) + ", ".join(others) if others else first
    head = f"{head} {flag.metavar}".rstrip()
    about = textwrap.wrap(flag.help, _WIDTH - _COLUMN)
    if len(head) > _COLUMN - 2:
        return "\n".join([head, *(" " * _COLUMN + line for line in about)])
    return "\n".join(
        (head if number == 0 else "").ljust(_COLUMN) + line for number, line in enumerate(about)
    )
