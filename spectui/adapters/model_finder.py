"""Model files on this machine: in given folders, and in the caches of programs that download them.

A search is bounded in depth, folders and files, follows symbolic links without running in circles,
and takes each model once, however many names it has. A broken file is listed with its reason.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectui.adapters.gguf_file import Part, first_difference, part_of, read_model
from spectui.adapters.gguf_header import MISSING
from spectui.domain.errors import ModelFileError
from spectui.domain.models import (
    BrokenModel,
    Catalogue,
    ModelFacts,
    SearchedFolder,
    TokenDifference,
)
from spectui.domain.pairing import Candidate, Survey, candidates, needs_tokens, suggest
from spectui.domain.text import clean

MAX_DEPTH: Final = 10
"""Folders below the one that is searched; a model in Hugging Face's cache lies four deep."""
MAX_FOLDERS: Final = 20_000
MAX_FILES: Final = 5000

GIVEN: Final = "given"

Progress = Callable[[int, str], None]
"""Called with how many files were read and the one that is next; may raise to stop the search."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, or one file, to look in. ``what`` says whose it is; ``depth`` 0 is itself only."""

    path: Path
    what: str = GIVEN
    depth: int = MAX_DEPTH


def cache_places(
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
    platform: str = sys.platform,
) -> tuple[Place, ...]:
    """Return where llama.cpp, Hugging Face's programs and LM Studio keep models, there or not."""
    env = os.environ if environment is None else environment
    home = Path.home() if home is None else home
    cache = Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    local = home / "Library" / "Caches" if platform == "darwin" else cache
    named = [
        (Path(env.get("LLAMA_CACHE") or local / "llama.cpp"), "llama.cpp's cache"),
        (_hub(env, cache), "Hugging Face's cache"),
        (_studio(home) / "models", "LM Studio's models"),
        (cache / "lm-studio" / "models", "LM Studio's models (older versions)"),
    ]
    places: dict[Path, str] = {}
    for path, what in named:
        places.setdefault(_expanded(path), what)
    return tuple(Place(path, what) for path, what in places.items())


def _expanded(path: Path) -> Path:
    with contextlib.suppress(RuntimeError):  # the home of somebody who is not there
        return path.expanduser()
    return path


def _studio(home: Path) -> Path:
    """Return LM Studio's folder: a file in the home says so where it is not the usual one."""
    try:
        named = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        named = ""
    return Path(named) if named and "\0" not in named else home / ".lmstudio"


def _hub(env: Mapping[str, str], cache: Path) -> Path:
    for name, below in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if value := env.get(name):
            return Path(value) / below
    return cache / "huggingface" / "hub"


def find_models(places: Sequence[Place], progress: Progress | None = None) -> Catalogue:
    """Find and read all model files in ``places``, in their order, each folder by name.

    Never raises for what it finds: unreadable folders and broken files are noted.
    """
    search = _Search(progress)
    for place in places:
        search.look_in(place)
    return Catalogue(tuple(search.models), tuple(search.broken), tuple(search.searched))


def survey(target: ModelFacts, catalogue: Catalogue, progress: Progress | None = None) -> Survey:
    """Hold all models of a catalogue against a target, and suggest what to draft with.

    Vocabularies are compared token by token where nothing else rules a model out. The target itself
    is left out, under whatever name it was found.
    """
    others = [other for other in catalogue.models if not _same_file(target.path, other.path)]
    differences: dict[str, TokenDifference] = {}
    broken: list[Candidate] = []
    for number, other in enumerate(others):
        if not needs_tokens(target, other):
            continue
        if progress is not None:
            progress(number, other.path)
        try:
            found = first_difference(Path(target.path), Path(other.path))
        except ModelFileError as error:  # it was there a moment ago
            broken.append(Candidate(other, "", f"it cannot be read any more: {error.what}"))
            continue
        if found is not None:
            differences[other.path] = found
    gone = {one.facts.path for one in broken}
    there = [other for other in others if other.path not in gone]
    judged = (*candidates(target, there, differences), *broken)
    return Survey(
        target,
        tuple(one for one in judged if not one.why_not),
        tuple(one for one in judged if one.why_not),
        suggest(target, judged),
        catalogue.broken,
        catalogue.searched,
    )


class _Search:
    """One search over several places; what was seen in one is not taken again in the next."""

    def __init__(self, progress: Progress | None) -> None:
        """Begin with nothing found."""
        self.models: list[ModelFacts] = []
        self.broken: list[BrokenModel] = []
        self.searched: list[SearchedFolder] = []
        self._progress = progress
        self._folders: set[tuple[int, int]] = set()
        self._files: set[tuple[int, int]] = set()
        self._read = 0
        self._note = ""

    def look_in(self, place: Place) -> None:
        self._note = ""
        if _is_file(place.path):
            self._take(place.path)
        else:
            for folder, names in self._walk(place):
                for path in _one_each(folder, names):
                    self._take(path)
        self.searched.append(SearchedFolder(str(place.path), place.what, self._note))

    def _walk(self, place: Place) -> Iterator[tuple[Path, list[str]]]:
        """Yield each folder with the names of its model files."""
        waiting = deque([(place.path, 0)])
        while waiting:
            folder, depth = waiting.popleft()
            try:
                status = folder.stat()
                if (status.st_dev, status.st_ino) in self._folders:
                    continue
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self._unreadable(place, folder, error)
                continue
            if place.depth:  # a folder whose own files alone were asked for may be searched yet
                self._folders.add((status.st_dev, status.st_ino))
            if len(self._folders) > MAX_FOLDERS:
                self._note = f"stopped after {MAX_FOLDERS:,} folders: name a smaller one"
                return
            below = [entry.name for entry in entries if _is_folder(entry)]
            names = [entry.name for entry in entries if entry.name.lower().endswith(".gguf")]
            yield folder, [name for name in names if name not in below]
            if depth < place.depth:
                waiting.extend((folder / name, depth + 1) for name in below)

    def _unreadable(self, place: Place, folder: Path, error: OSError) -> None:
        if folder == place.path and isinstance(error, FileNotFoundError):
            self._note = "not there"
            return
        reason = clean(error.strerror or str(error), limit=80).lower()
        where = "" if folder == place.path else f"{clean(str(folder), limit=200)}: "
        self._note = self._note or f"{where}{reason}"

    def _take(self, path: Path) -> None:
        """Read one file, if it is not one that was taken under another name."""
        size = 0
        try:
            status = path.stat()
            size = status.st_size
            if (status.st_dev, status.st_ino) in self._files:
                return
            self._files.add((status.st_dev, status.st_ino))
        except OSError:
            pass  # reading it says why
        if self._read >= MAX_FILES:
            self._note = f"stopped after {MAX_FILES:,} files: name a smaller folder"
            return
        if self._progress is not None:
            self._progress(self._read, str(path))
        self._read += 1
        try:
            self.models.append(read_model(path))
        except ModelFileError as error:
            self.broken.append(BrokenModel(str(path), size, error.code, _reason(path, error)))


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return one == other


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # it lies in a folder that may not be entered
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _one_each(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the files to read: of a split model the first part that is there."""
    taken: set[tuple[str, int]] = set()
    chosen = []
    for name in names:  # sorted, so the first part comes first
        part: Part | None = part_of(folder / name)
        if part is not None:
            if (part.stem, part.total) in taken:
                continue
            taken.add((part.stem, part.total))
        chosen.append(folder / name)
    return chosen


def _reason(path: Path, error: ModelFileError) -> str:
    """Return what is wrong without the path, which stands beside it."""
    if error.code == MISSING:
        part = part_of(path)
        if part is not None:
            return f"{clean(part.name(1), limit=120)} is missing"
        return "it is a link to a file that is not there"
    shown = clean(str(path), limit=300)
    return error.what.removeprefix(shown).lstrip(": ")
