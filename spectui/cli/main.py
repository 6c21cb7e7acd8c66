"""The command line: what was asked for, and the exit status: 0 fine, 1 it failed, 2 wrong usage.

Nothing slow is imported before it is known to be needed: ``spectui --version`` pays for none of
textual, httpx, pynvml and plotext.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from spectui import __version__
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.text import clean, nearest

_COMMANDS = ("open", "demo", "measure", "export")

_EPILOG = """\
examples:
  spectui demo                                    the dashboard on a small model, no profile needed
  spectui my.toml                                 the dashboard on your profile
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
        options = _parser().parse_args(arguments)
        return _dispatch(options)
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


def _dispatch(options: argparse.Namespace) -> int:
    if options.command is None:
        _parser().print_usage(sys.stderr)
        raise UsageError("no profile given", "try `spectui demo`, or `spectui --help`")
    if options.command == "measure":
        from spectui.cli.measure import measure

        return measure(options)
    if options.command == "export":
        from spectui.cli.export import export

        return export(options)
    from spectui.cli.dashboard import dashboard

    return dashboard(options)


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in the one line that every other error has."""

    def error(self, message: str) -> None:  # type: ignore[override] # it does not return either
        raise UsageError(message, f"see `{self.prog} --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="spectui",
        description="Find out whether speculative decoding makes your llama-server faster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"spectui {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND|PROFILE", title="commands")
    opened = commands.add_parser("open", help="the dashboard on a profile (`spectui PROFILE`)")
    opened.add_argument("profile", type=Path, help="a TOML profile")
    demo = commands.add_parser("demo", help="the dashboard on the embedded engine, small model")
    for face in (opened, demo):
        _add_workload(face)
        _add_look(face)
    measured = commands.add_parser(
        "measure", help="measure the baseline and arms without a dashboard"
    )
    measured.add_argument("profile", type=Path, help="a TOML profile")
    _add_workload(measured)
    measured.add_argument(
        "--arms",
        action="append",
        default=[],
        metavar="KEY=V1,V2",
        help="one arm for each value, e.g. speculation.n_max=1,4,8; given twice: all combinations",
    )
    measured.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    measured.add_argument("-o", "--output", type=Path, help="also export the best arm to this file")
    exported = commands.add_parser("export", help="write the tuned profile of a measurement")
    exported.add_argument(
        "session", nargs="?", type=Path, help="a session's record; the newest if left out"
    )
    exported.add_argument("-o", "--output", type=Path, help="where to write")
    exported.add_argument("--run", type=int, help="the run to export; the best one if left out")
    return parser


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="change one key of the profile, e.g. speculation.n_max=4",
    )
    parser.add_argument(
        "--limit", type=_positive, metavar="N", help="send at most N prompts of each task"
    )


def _add_look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", help="a theme by its name")
    parser.add_argument("--glyphs", choices=("braille", "block", "ascii"), help="how to draw")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
