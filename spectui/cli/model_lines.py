"""What ``spectui models`` says to people: tables of models, and what can draft for what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from spectui.adapters.gguf_file import part_of
from spectui.cli.columns import Columns, entry, wrapped
from spectui.domain.models import BrokenModel, Catalogue, ModelFacts, ModelKind, SearchedFolder
from spectui.domain.pairing import KIND_NAMES, Candidate, Survey, file_name
from spectui.domain.text import clean

_HEAD = ("model", "arch", "params", "quant", "size", "context", "vocab", "")
_FIGURES = frozenset({2, 4, 5, 6})


def catalogue_lines(catalogue: Catalogue, width: int | None) -> list[str]:
    """Return a table of all models, folder by folder, in lines of ``width`` (None: of any)."""
    lines: list[str] = []
    if catalogue.models:
        rows = [_row(facts) for facts in catalogue.models]
        columns = Columns([_HEAD, *rows], width, right=_FIGURES)
        lines += columns.lines(_HEAD)
        last = None
        for facts, row in zip(catalogue.models, rows, strict=True):
            if (folder := _folder(facts.path)) != last:
                lines += ["", folder]
                last = folder
            lines += columns.lines(row)
    lines += _broken_lines(catalogue.broken, width)
    lines += _note_lines(catalogue.searched, width)
    return [*lines, "", *wrapped(_sum(catalogue), width)]


def _sum(catalogue: Catalogue) -> str:
    size = sum(facts.size for facts in catalogue.models)
    count = len(catalogue.models)
    return (
        f"{count:,} {'model' if count == 1 else 'models'}, {size_text(size)}. "
        "What can draft for one: `spectui models --target FILE`"
    )


def _broken_lines(broken: Sequence[BrokenModel], width: int | None) -> list[str]:
    if not broken:
        return []
    lines = ["", "Cannot be used"]
    for one in broken:
        lines += entry(shown(one.path), clean(one.reason, limit=300), width, "  ")
    return lines


def _note_lines(searched: Sequence[SearchedFolder], width: int | None) -> list[str]:
    """Return what went wrong in folders; that a cache is not there is no fault."""
    lines: list[str] = []
    for folder in searched:
        if folder.note and folder.note != "not there":
            lines += entry(shown(folder.path), folder.note, width)
    return ["", *lines] if lines else []


def survey_lines(found: Survey, width: int | None) -> list[str]:
    """Return what can draft for a target and what cannot, in lines of ``width`` (None: of any)."""
    target = found.target
    lines = [shown(target.path), *_fact_lines(target), ""]
    suggestion = found.suggestion
    if suggestion.type:
        draft = shown(suggestion.draft)
        lines.append(f"Suggested: {suggestion.type}{f' with {draft}' if draft else ''}")
        lines += wrapped(suggestion.why, width, "  ")
    else:
        lines += wrapped(suggestion.why[:1].upper() + suggestion.why[1:], width)
    lines += _fitting_lines(found.fitting, width)
    lines += _unfit_lines(found.unfit, width)
    if not found.fitting and not found.unfit:
        lines += ["", "No other model was found: name a folder that holds some"]
    return lines + _broken_lines(found.broken, width) + _note_lines(found.searched, width)


def _fitting_lines(fitting: Sequence[Candidate], width: int | None) -> list[str]:
    if not fitting:
        return []
    rows = [
        (
            shown(one.facts.path),
            one.type,
            f"1:{one.ratio:.1f}" if one.ratio else "",
            size_text(one.facts.size),
            one.remark,
        )
        for one in fitting
    ]
    columns = Columns(rows, width, right=frozenset({2, 3}), indent="  ")
    lines = ["", "Possible drafts, best first"]
    for row in rows:
        lines += columns.lines(row)
    return lines


def _unfit_lines(unfit: Sequence[Candidate], width: int | None) -> list[str]:
    """Return each reason once, and below it the files that it holds for."""
    if not unfit:
        return []
    by_reason: dict[str, list[str]] = {}
    for one in unfit:
        by_reason.setdefault(one.why_not, []).append(shown(one.facts.path))
    lines = ["", "No drafts for it"]
    for reason, paths in by_reason.items():
        if len(paths) == 1:
            lines += entry(paths[0], reason, width, "  ")
        else:
            lines += wrapped(f"{reason}:", width, "  ")
            lines += [f"    {path}" for path in paths]
    return lines


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
        clean(file_name(facts.path), limit=255),
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
    if len(facts.files) > 1 and not facts.missing:
        found.append(f"{len(facts.files)} parts")
    if 0 < facts.active < facts.parameters:
        found.append(f"{count_text(facts.active)} active")
    if facts.missing:
        found.append(_missing(facts))
    return ", ".join(found)


def _missing(facts: ModelFacts) -> str:
    """Return which parts are not there: ``parts 2 and 5 of 8 missing``."""
    numbers = [part.number for name in facts.missing if (part := part_of(Path(name)))]
    if not numbers:
        return clean(facts.missing[0], limit=100) + " missing"
    *some, last = map(str, numbers[:5])
    named = f"{', '.join(some)} and {last}" if some else last
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    total = len(facts.files) + len(facts.missing)
    return f"part{'s' if some else ''} {named}{more} of {total} missing"


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
    return shown(str(Path(path).parent))


def shown(path: str) -> str:
    """Return a path as it may be shown, with the home folder as ``~``."""
    home = str(Path.home())
    short = f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
    return clean(short, limit=300)
