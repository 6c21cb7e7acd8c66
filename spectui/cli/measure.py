"""``spectui measure``: the baseline and arms without a dashboard, with the same figures."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import sys
import threading
from pathlib import Path

from spectui import __version__
from spectui.adapters.toml_store import load_profile
from spectui.bootstrap import build_session
from spectui.cli.lifeline import Lifeline
from spectui.cli.options import add_workload
from spectui.cli.profile import arms_of
from spectui.cli.progress import Progress
from spectui.cli.table import result_table
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.report import report
from spectui.domain.runs import Arm
from spectui.session.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui measure``."""
    parser.add_argument("profile", type=Path, help="a TOML profile")
    add_workload(parser)
    parser.add_argument(
        "--arms",
        action="append",
        default=[],
        metavar="KEY=V1,V2",
        help="one arm for each value, e.g. speculation.n_max=1,4,8; given twice: all combinations",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("-o", "--output", type=Path, help="also export the best arm to this file")


def main(options: argparse.Namespace) -> int:
    """Measure, print the result on stdout, return the exit status.

    What was measured before a failure or Ctrl-C is printed all the same.
    """
    profile = load_profile(options.profile, options.settings)
    arms = arms_of(profile, options.arms)
    if not arms and (options.arms or not profile.speculation.is_off):
        raise UsageError(
            "no arm speculates: there is nothing to compare with the baseline",
            "add for example --set speculation.type=ngram-simple, or other --arms",
        )
    if options.output is not None:
        _need_writable(options.output)
    session = build_session(profile, source=options.profile, limit=options.limit)
    failure, number = _measure(session, [Arm(), *arms])
    snapshot = session.snapshot
    if snapshot.runs:
        result = report(snapshot, profile, version=__version__, prompts=len(session.prompts))
        print(json.dumps(result, indent=2) if options.json else result_table(snapshot))
    if options.output is not None and snapshot.runs:
        _export(session, options)
    if number is not None:
        print("spectui: stopped", file=sys.stderr)
        return 128 + number
    if failure is not None:
        raise failure
    if snapshot.baseline is None:
        raise SpectuiError(
            "the baseline was still drafting: nothing can be compared with it",
            "look for what turns speculation on: server.args, or a llama.cpp config file",
        )
    return 0


def _need_writable(output: Path) -> None:
    """Refuse a place that nothing can be written to before an hour was spent measuring."""
    if output.is_dir():
        raise UsageError(f"{output} is a folder", "name a .toml file")
    if output.exists():
        raise UsageError(f"{output} exists already", "choose another name")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {output.parent}", "make it first")
    if not os.access(output.absolute().parent, os.W_OK):
        raise UsageError(f"{output.parent} cannot be written", "choose another place")


def _measure(session: Session, arms: list[Arm]) -> tuple[SpectuiError | None, int | None]:
    """Run the arms; return what went wrong, and the signal that ended it, if any."""
    ended = threading.Event()
    failure: SpectuiError | None = None
    session.start()
    with Lifeline(session, lambda _: ended.set()) as lifeline, Progress(session):
        future = session.measure_arms(arms)
        future.add_done_callback(lambda _: ended.set())
        ended.wait()
        if lifeline.signal is None:
            try:
                future.result()
            except SpectuiError as error:
                failure = error
            except concurrent.futures.CancelledError:
                failure = SpectuiError("the measurement was cancelled")
    return failure, lifeline.signal


def _export(session: Session, options: argparse.Namespace) -> None:
    path = session.write(str(options.output))
    print(f"spectui: wrote {path}", file=sys.stderr)
