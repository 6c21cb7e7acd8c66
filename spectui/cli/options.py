"""Options that several commands share."""

from __future__ import annotations

import argparse


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Add what changes the profile and its workload: ``settings`` and ``limit``."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="change one key of the profile, e.g. speculation.n_max=4",
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="send at most N prompts of each task"
    )


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add how the dashboard looks: ``theme`` and ``glyphs``."""
    parser.add_argument("--theme", help="a theme by its name")
    parser.add_argument("--glyphs", choices=("braille", "block", "ascii"), help="how to draw")


def positive(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
