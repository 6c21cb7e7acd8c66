"""Looks on this machine for what can draft for a target. Starts no server.

At the level of bootstrap: adapters are put together here, so that the command line and the
dashboard look in the same places.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spectui.adapters.gguf_file import read_model
from spectui.adapters.model_finder import Place, Progress, cache_places, find_models, survey
from spectui.domain.pairing import Survey
from spectui.domain.profile import DEMO, Profile
from spectui.embedded.demo_model import find_demo_model


def places(
    folders: Iterable[Path] = (),
    target: Path | None = None,
    draft: Path | None = None,
    *,
    caches: bool = True,
) -> tuple[Place, ...]:
    """Return where to look: ``folders`` first, then beside the models in use, then the caches."""
    beside = {
        file.parent: what
        for file, what in ((draft, "beside the draft"), (target, "beside the target"))
        if file is not None
    }
    return (
        *(Place(folder) for folder in folders),
        *(Place(folder, what, depth=0) for folder, what in beside.items()),
        *(cache_places() if caches else ()),
    )


def survey_of(
    profile: Profile, folders: Iterable[Path] = (), progress: Progress | None = None
) -> Survey:
    """Find the models on this machine and hold each against a profile's target.

    Looks in ``folders`` and below, in those of the profile's own models, and in the caches. Blocks
    for as long as reading the headers takes: seconds for hundreds of large vocabularies. Raises
    ModelFileError or EngineError where the target cannot be read; whatever is wrong with another
    file is said in its place.
    """
    target = _path(profile.models.target)
    draft = _path(profile.models.draft) if profile.has_draft else None
    facts = read_model(target)
    catalogue = find_models(places(folders, target, draft), progress)
    return survey(facts, catalogue, progress)


def _path(model: str) -> Path:
    return find_demo_model() if model == DEMO else Path(model)
