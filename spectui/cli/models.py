"""``spectui models``: the model files on this machine, and what can draft for what."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spectui.adapters.gguf_file import read_model
from spectui.adapters.model_finder import find_models, survey
from spectui.cli.columns import terminal_width
from spectui.cli.model_lines import catalogue_lines, shown, survey_lines
from spectui.domain.errors import ModelFileError, SpectuiError, UsageError
from spectui.domain.models import Catalogue, ModelFacts
from spectui.domain.pairing import Candidate, Survey, file_name
from spectui.domain.text import clean
from spectui.drafts import places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui models``."""
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="where to look, besides the caches"
    )
    parser.add_argument(
        "--target", type=Path, metavar="FILE", help="say what can draft for this model"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--no-caches",
        action="store_true",
        help="leave out the caches of llama.cpp, Hugging Face and LM Studio",
    )


def main(options: argparse.Namespace) -> int:
    """List the models, or what can draft for one; return the exit status."""
    target = _target(options.target) if options.target else None
    _check_folders(options)
    where = places(options.folders, options.target, caches=not options.no_caches)
    with _Progress() as progress:
        catalogue = find_models(where, progress)
        found = survey(target, catalogue, progress) if target else None
    if options.json:
        print(json.dumps(_as_json(found) if found else asdict(catalogue), indent=2))
    elif found is not None:
        print("\n".join(survey_lines(found, terminal_width())))
    elif catalogue.models or catalogue.broken:
        print("\n".join(catalogue_lines(catalogue, terminal_width())))
    if found is None and not catalogue.models and not catalogue.broken:
        raise _nothing(catalogue)
    return 0


def _target(path: Path) -> ModelFacts:
    try:
        return read_model(path)
    except ModelFileError as error:
        if error.code == "model-missing":
            raise UsageError(error.what, error.fix) from None
        raise


def _check_folders(options: argparse.Namespace) -> None:
    for folder in options.folders:
        try:
            folder.stat()
        except FileNotFoundError:
            raise UsageError(f"{shown(str(folder))} is not there", "name a folder") from None
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{shown(str(folder))} cannot be looked in: {error}", "name another folder"
            ) from None
    if options.no_caches and not options.folders and options.target is None:
        raise UsageError("there is nowhere to look", "name a folder, or leave out --no-caches")


def _nothing(catalogue: Catalogue) -> SpectuiError:
    where = "; ".join(
        f"{shown(folder.path)}{f' ({folder.note})' if folder.note else ''}"
        for folder in catalogue.searched
    )
    return SpectuiError(
        f"no model file (*.gguf) found in {where}",
        "name the folder that holds yours: `spectui models FOLDER`",
    )


class _Progress:
    """Says on stderr how far the search is, once it has taken longer than a second."""

    def __init__(self) -> None:
        """Begin the second."""
        self._next = time.monotonic() + 1.0
        self._live = sys.stderr.isatty()
        self._said = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live and self._said:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __call__(self, done: int, path: str) -> None:
        """Take note that the file after ``done`` others is read now."""
        now = time.monotonic()
        if now < self._next or (self._said and not self._live):
            return
        self._said = True
        self._next = now + 0.1
        if not self._live:
            print("spectui: reading model files", file=sys.stderr, flush=True)
            return
        width = shutil.get_terminal_size().columns - 1
        line = f"{done} files read, now {clean(file_name(path), limit=200)}"
        print(f"\r\x1b[K{line[:width]}", end="", file=sys.stderr, flush=True)


def _as_json(found: Survey) -> dict[str, Any]:
    return {
        "target": asdict(found.target),
        "suggestion": asdict(found.suggestion),
        "fitting": [_candidate(one) for one in found.fitting],
        "unfit": [_candidate(one) for one in found.unfit],
        "broken": [asdict(one) for one in found.broken],
        "searched": [asdict(one) for one in found.searched],
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    more = asdict(one)
    facts = more.pop("facts")
    return {"path": facts["path"], **more, "facts": facts}
