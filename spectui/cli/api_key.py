"""An API key from the environment or a file, never from the command line: everybody reads that."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spectui.domain.address import Secret
from spectui.domain.errors import UsageError
from spectui.domain.text import clean

VARIABLES = ("SPECTUI_API_KEY", "LLAMA_API_KEY")
"""Where a key is looked for if nobody says otherwise; the second is llama-server's own."""

_LONGEST = 4096  # characters


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add ``--api-key-env`` and ``--api-key-file``, and what refuses a bare key."""
    parser.add_argument(
        "--api-key-env",
        metavar="VAR",
        help=f"the environment variable with the API key (otherwise {' or '.join(VARIABLES)})",
    )
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="a file whose first line is the API key"
    )
    parser.add_argument(
        *("--api-key", "--apikey", "--key", "--token"),
        action=_Refuse,
        nargs="?",
        help=argparse.SUPPRESS,
    )


class _Refuse(argparse.Action):
    """Refuses a key on the command line without repeating it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del parser, namespace, values, option_string
        raise UsageError(
            "an API key does not belong on the command line: every user of the machine can read it",
            f"put it in {VARIABLES[0]}, or name a file with --api-key-file",
        )


def read_key(options: argparse.Namespace) -> Secret:
    """Return the key, an empty Secret where there is none. Raises UsageError, without the key."""
    if options.api_key_file is not None and options.api_key_env is not None:
        raise UsageError("two places for one API key", "give --api-key-env or --api-key-file")
    if options.api_key_file is not None:
        return _checked(_from_file(options.api_key_file), str(options.api_key_file))
    if options.api_key_env is not None:
        name = clean(options.api_key_env, limit=80)
        value = os.environ.get(options.api_key_env, "")
        if not value:
            raise UsageError(f"there is no API key in {name}", f"export {name} first")
        return _checked(value, name)
    name = next((name for name in VARIABLES if os.environ.get(name)), "")
    return _checked(os.environ[name], name) if name else Secret()


def _from_file(path: Path) -> str:
    shown = clean(str(path), limit=200)
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read(_LONGEST + 1).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"the API key in {shown} cannot be read", str(why)) from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        print(f"spectui: others can read {shown}; chmod 600 helps", file=sys.stderr)
    return next((line for line in lines if line.strip()), "")


def _checked(text: str, where: str) -> Secret:
    key = text.strip()
    if not key:
        raise UsageError(f"there is no API key in {clean(where, limit=200)}")
    if len(key) > _LONGEST or not key.isascii() or not key.isprintable():
        raise UsageError(
            f"what is in {clean(where, limit=200)} is no API key", "it has signs that no key has"
        )
    return Secret(key)
