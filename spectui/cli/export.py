"""``spectui export``: the tuned profile of a measurement that was made before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from spectui.adapters.journal import newest_record, read_record
from spectui.bootstrap import exporter_of, state_folder
from spectui.domain.errors import SpectuiError
from spectui.session.book import replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui export``."""
    parser.add_argument(
        "session", nargs="?", type=Path, help="a session's record; the newest if left out"
    )
    parser.add_argument("-o", "--output", type=Path, help="where to write")
    parser.add_argument("--run", type=int, help="the run to export; the best one if left out")


def main(options: argparse.Namespace) -> int:
    """Write the tuned profile of a recorded session; return the exit status."""
    path = options.session or newest_record(state_folder()[0] / "sessions")
    if path is None:
        raise SpectuiError(
            "nothing was measured yet", "run `spectui measure PROFILE` or the dashboard first"
        )
    record = read_record(path)
    exporter = exporter_of(record)
    written = exporter.write(
        str(options.output or exporter.suggest()),
        replay(record.runs, record.engine, Path(record.target).name, Path(record.draft).name),
        options.run,
    )
    print(f"spectui: wrote {written}", file=sys.stderr)
    return 0
