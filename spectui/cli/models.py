"""``spectui models``: the model files on this machine, and what can draft for what."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spectui.adapters.gguf_file import read_model
from spectui.adapters.model_finder import Place, cache_places, find_models, survey
from spectui.domain.errors import ModelFileError, SpectuiError, UsageError
from spectui.domain.models import Catalogue, ModelFacts, ModelKind
from spectui.domain.pairing import KIND_NAMES, Candidate, Survey, file_name
from spectui.domain.text import clean

_HEAD = ("model", "architecture", "parameters", "quant", "size", "context", "vocabulary", "")
_RIGHT = frozenset({2, 4, 5, 6})
"""Columns of figures."""


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
    places = _places(options.folders, options.target, caches=not options.no_caches)
    with _Progress() as progress:
        catalogue = find_models(places, progress)
        found = survey(target, catalogue, progress) if target else None
    if options.json:
        print(json.dumps(_as_json(catalogue, found), indent=2))
    elif found is not None:
        print("\n".join(_survey_lines(found, catalogue)))
    elif catalogue.models or catalogue.broken:
        print("\n".join(_catalogue_lines(catalogue)))
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


def _places(folders: Sequence[Path], target: Path | None, *, caches: bool) -> list[Place]:
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{clean(str(folder), limit=300)} is not there", "name a folder")
    places = [Place(folder) for folder in folders]
    if target is not None:  # drafts often lie beside it
        places.append(Place(target.parent, "beside the target", depth=0))
    elif not folders and not caches:
        raise UsageError("there is nowhere to look", "name a folder, or leave out --no-caches")
    return [*places, *(cache_places() if caches else ())]


def _nothing(catalogue: Catalogue) -> SpectuiError:
    where = "; ".join(
        f"{clean(_short(folder.path), limit=200)}{f' ({folder.note})' if folder.note else ''}"
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


def _as_json(catalogue: Catalogue, found: Survey | None) -> dict[str, Any]:
    if found is None:
        return asdict(catalogue)
    return {
        "target": asdict(found.target),
        "suggestion": asdict(found.suggestion),
        "fitting": [_candidate(one) for one in found.fitting],
        "unfit": [_candidate(one) for one in found.unfit],
        "broken": [asdict(one) for one in catalogue.broken],
        "searched": [asdict(one) for one in catalogue.searched],
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    more = asdict(one)
    facts = more.pop("facts")
    return {"path": facts["path"], **more, "facts": facts}


def _catalogue_lines(catalogue: Catalogue) -> list[str]:
    """Return the table, folder by folder."""
    lines: list[str] = []
    rows = [(_folder(facts.path), _row(facts)) for facts in catalogue.models]
    widths = _widths([_HEAD, *(row for _, row in rows)])
    last = None
    for folder, row in rows:
        if folder != last:
            lines += ["", folder] if lines else [_line(_HEAD, widths), "", folder]
            last = folder
        lines.append(_line(row, widths))
    lines += _broken_lines(catalogue)
    for searched in catalogue.searched:
        if searched.note and searched.note != "not there":
            lines.append(f"{clean(_short(searched.path), limit=200)}: {searched.note}")
    return lines


def _broken_lines(catalogue: Catalogue) -> list[str]:
    if not catalogue.broken:
        return []
    head = ["", "Cannot be used"]
    return head + [
        f"  {clean(_short(one.path), limit=300)}: {clean(one.reason, limit=300)}"
        for one in catalogue.broken
    ]


def _survey_lines(found: Survey, catalogue: Catalogue) -> list[str]:
    target = found.target
    lines = [clean(_short(target.path), limit=300), *_fact_lines(target), ""]
    suggestion = found.suggestion
    if suggestion.type:
        draft = clean(_short(suggestion.draft), limit=300)
        lines.append(f"Suggested: {suggestion.type}{f' with {draft}' if draft else ''}")
        lines.append(f"  {suggestion.why}")
    else:
        lines.append(suggestion.why[:1].upper() + suggestion.why[1:])
    if found.fitting:
        lines += ["", "Possible drafts, best first"]
        rows = [
            (
                clean(_short(one.facts.path), limit=300),
                one.type,
                f"1:{one.ratio:.1f}" if one.ratio else "",
                size_text(one.facts.size),
                one.remark,
            )
            for one in found.fitting
        ]
        widths = _widths(rows)
        lines += [f"  {_line(row, widths, right=frozenset({2, 3}))}" for row in rows]
    if found.unfit:
        lines += ["", "No drafts for it"]
        lines += [
            f"  {clean(_short(one.facts.path), limit=300)}: {one.why_not}" for one in found.unfit
        ]
    if not found.fitting and not found.unfit:
        lines += ["", "No other model was found: name a folder that holds some"]
    return lines + _broken_lines(catalogue)


def _fact_lines(facts: ModelFacts) -> Iterable[str]:
    vocabulary = facts.vocabulary
    kind = " ".join(part for part in (vocabulary.model, vocabulary.pre) if part)
    parts = (
        ("name", facts.name),
        ("architecture", facts.architecture),
        ("parameters", count_text(facts.parameters)),
        ("quantisation", facts.quantisation),
        ("size", size_text(facts.size)),
        ("context", f"{facts.context:,} tokens" if facts.context else ""),
        ("layers", str(facts.layers) if facts.layers is not None else ""),
        ("vocabulary", f"{vocabulary.size:,} tokens{f' ({kind})' if kind else ''}"),
        ("", notes(facts)),
    )
    return (f"  {label:<12}  {value}".rstrip() for label, value in parts if value)


def _row(facts: ModelFacts) -> tuple[str, ...]:
    return (
        clean(file_name(facts.path), limit=60),
        facts.architecture or "–",
        count_text(facts.parameters),
        facts.quantisation or "–",
        size_text(facts.size),
        f"{facts.context:,}" if facts.context else "–",
        f"{facts.vocabulary.size:,}" if facts.vocabulary.size else "–",
        notes(facts),
    )


def notes(facts: ModelFacts) -> str:
    """Return what else a person should know about a model, in a few words."""
    found = []
    if facts.kind is ModelKind.OTHER:
        found.append(facts.detail)
    elif facts.kind is not ModelKind.MODEL:
        found.append(KIND_NAMES[facts.kind])
    if facts.longest_draft is not None:
        found.append(f"drafts up to {facts.longest_draft}")
    if facts.mtp_layers and facts.kind is ModelKind.MODEL:
        found.append(f"MTP {facts.mtp_layers} layer{'s' if facts.mtp_layers > 1 else ''}")
    if len(facts.files) > 1:
        found.append(f"{len(facts.files)} parts")
    if 0 < facts.active < facts.parameters:
        found.append(f"{count_text(facts.active)} active")
    if facts.missing:
        more = f" and {len(facts.missing) - 1} more" if len(facts.missing) > 1 else ""
        found.append(f"{clean(facts.missing[0], limit=100)}{more} missing")
    return ", ".join(found)


def count_text(count: int) -> str:
    """Return a count of parameters: ``135 M``, ``7.6 B``."""
    return _scaled(count, 1000, ("", " K", " M", " B", " T"))


def size_text(size: int) -> str:
    """Return a size in bytes as file managers and model pages give it: ``98 MB``, ``4.4 GB``."""
    return _scaled(size, 1000, (" B", " kB", " MB", " GB", " TB"))


def _scaled(value: float, step: int, units: Sequence[str]) -> str:
    if not value:
        return "–"
    for unit in units:
        if value < step or unit == units[-1]:
            return f"{value:.1f}{unit}" if value < 10 and unit != units[0] else f"{value:.0f}{unit}"
        value /= step
    return ""


def _folder(path: str) -> str:
    return clean(_short(str(Path(path).parent)), limit=300)


def _short(path: str) -> str:
    """Return a path with the home folder as ``~``."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def _widths(rows: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def _line(row: Sequence[str], widths: Sequence[int], right: frozenset[int] = _RIGHT) -> str:
    cells = (
        cell.rjust(width) if index in right else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
