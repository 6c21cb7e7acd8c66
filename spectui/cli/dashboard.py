"""``spectui PROFILE`` and ``spectui demo``: the dashboard in a terminal."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from spectui.bootstrap import build_session, demo_profile
from spectui.checkup import check_profile
from spectui.cli.lifeline import Lifeline
from spectui.cli.options import add_look, add_workload
from spectui.cli.profile import profile_with
from spectui.domain.errors import SpectuiError, UsageError
from spectui.domain.preflight import Preflight
from spectui.domain.profile import Profile
from spectui.drafts import survey_of
from spectui.session.session import Session
from spectui.tui.size import MIN_HEIGHT, MIN_WIDTH
from spectui.workbench import Workbench


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui PROFILE`` and ``spectui demo``."""
    if parser.prog.endswith(" open"):
        parser.add_argument("profile", type=Path, help="a TOML profile")
    add_workload(parser)
    add_look(parser)


def main(options: argparse.Namespace) -> int:
    """Open the dashboard; return the exit status."""
    need_terminal()
    if options.command == "demo":
        profile, source = profile_with(demo_profile(), options.settings), None
    else:
        from spectui.adapters.toml_store import load_profile

        profile, source = load_profile(options.profile, options.settings), options.profile

    def build(profile: Profile, *, notices: int = 0) -> Session:
        return build_session(profile, source=source, limit=options.limit, notices=notices)

    def check(profile: Profile) -> Preflight:
        return check_profile(profile, source)

    bench = Workbench(build(profile), build, check, survey_of)
    if options.command == "demo":
        return show(bench, options, lambda: bench.launch(profile.speculation))
    return show(bench, options)


def show(
    bench: Workbench, options: argparse.Namespace, begin: Callable[[], object] | None = None
) -> int:
    """Start ``bench`` and show it until a person quits; ``begin`` is done first."""
    from spectui.tui.app import SpectuiApp

    app = SpectuiApp(bench, theme=options.theme, glyphs=options.glyphs)

    def told(_: int) -> None:
        with contextlib.suppress(RuntimeError):  # the app has not begun, or has ended
            app.call_later(app.exit)

    bench.start()
    with Lifeline(bench, told) as lifeline:
        if begin is not None:
            begin()
        app.run()
    if lifeline.signal is not None:
        return 128 + lifeline.signal
    if app.return_code:
        raise SpectuiError("the dashboard failed", "what was measured is in the session's record")
    return 0


def need_terminal(instead: str = "`spectui measure`") -> None:
    """Refuse a place where a dashboard cannot be drawn; ``instead`` is what works there."""
    # it is drawn on stderr, so that stdout stays free for a person's redirection
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise UsageError("the dashboard needs a terminal", f"use {instead} where there is none")
    columns, rows = os.get_terminal_size(sys.stderr.fileno())  # COLUMNS may tell of another one
    if (columns, rows) == (0, 0):  # a terminal that does not tell, such as a serial line
        return
    if columns < MIN_WIDTH or rows < MIN_HEIGHT:
        raise UsageError(
            f"the terminal has {columns}×{rows} characters",
            f"make it at least {MIN_WIDTH}×{MIN_HEIGHT}, or use {instead}",
        )
