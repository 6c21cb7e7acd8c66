"""The command line: what was asked for, and the exit status: 0 fine, 1 it failed, 2 wrong usage.

Nothing slow is imported before it is known to be needed: ``spectui --version`` pays for none of
textual, httpx, pynvml and plotext.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from spectui import __version__
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.text import clean, nearest

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "open": ("dashboard", "the dashboard on a profile (`spectui PROFILE`)"),
    "demo": ("dashboard", "the dashboard on the embedded engine, small model"),
    "attach": ("attach", "the dashboard on a server that somebody else runs"),
    "measure": ("measure", "measure the baseline and arms without a dashboard"),
    "export": ("export", "write the tuned profile of a measurement"),
    "doctor": ("doctor", "look for what would go wrong, before anything is launched"),
    "models": ("models", "list model files, and what can draft for what"),
    "import": ("import_command", "make a profile of a llama-server command line"),
    "explain": ("explain", "say why a llama-server failed, from its log"),
}
"""Each command's module in this package, and its one line of help.

A module has ``add_arguments(parser)``, and ``main(options)``, which returns the exit status.
"""

_EPILOG = """\
examples:
  spectui demo                                    the dashboard on a small model, no profile needed
  spectui my.toml                                 the dashboard on your profile
  spectui import -o my.toml -- llama-server -m big.gguf -md small.gguf
  spectui doctor my.toml                          what would go wrong
  spectui measure my.toml --arms speculation.n_max=1,4,8
  spectui export -o tuned.toml                    the best setting of the last measurement
"""


def run(argv: Sequence[str]) -> int:
    """Do what ``argv`` asks for and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a poor encoding costs a sign, not the result
            stream.reconfigure(errors="replace")
    arguments = list(argv)
    first = next((word for word in arguments if not word.startswith("-")), None)
    try:
        if first is not None and first not in _COMMANDS and arguments[0] == first:
            _need_profile(first)
            arguments.insert(0, "open")  # `spectui my.toml`
        return _dispatch(arguments)
    except SpectuiError as error:
        return fail(error)
    except BrokenPipeError:  # the reader of our output went away: `spectui … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return fail(SpectuiError(f"{error.strerror or error}", "is the disk full?"))
    except Exception as error:  # noqa: BLE001 - the command line's edge: no traceback reaches a person
        return fail(SpectuiError(f"a fault in spectui ({type(error).__name__}: {error})", _kept()))


def _need_profile(word: str) -> None:
    """Take a word that is nearly a command, and no file, for a slip."""
    meant = nearest(word, _COMMANDS) if "." not in word and not Path(word).exists() else ""
    if meant:
        raise UsageError(f"there is no command {clean(word, limit=80)}", f"did you mean {meant}?")


def fail(error: SpectuiError) -> int:
    """Print an error's one line and return its exit status."""
    print(f"spectui: {error}", file=sys.stderr)
    return error.exit_code


def _kept() -> str:
    """Write the traceback to a file and return where it is."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="spectui-fault-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exc(file=file)
    return f"please report it with {file.name}"


def _dispatch(arguments: Sequence[str]) -> int:
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    command = _module(chosen) if chosen in _COMMANDS else None
    options = _parser(chosen, command).parse_args(arguments)
    if command is None:
        _parser("", None).print_usage(sys.stderr)
        raise UsageError("no profile given", "try `spectui demo`, or `spectui --help`")
    status: int = command.main(options)
    return status


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"spectui.cli.{_COMMANDS[command][0]}")


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in the one line that every other error has."""

    def error(self, message: str) -> None:  # type: ignore[override] # it does not return either
        raise UsageError(message, f"see `{self.prog} --help`")


def _parser(chosen: str, module: ModuleType | None) -> argparse.ArgumentParser:
    """Return the parser; only the ``chosen`` command's options are known, and paid for."""
    parser = _Parser(
        prog="spectui",
        description="Find out whether speculative decoding makes your llama-server faster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"spectui {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND|PROFILE", title="commands")
    for name, (_, line) in _COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line)
        if name == chosen and module is not None:
            module.add_arguments(command)
    return parser
