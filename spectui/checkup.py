"""Gathers what preflight looks at: a profile's files, its engine and the machine. Starts no server.

At the level of bootstrap: adapters are put together here, so that the command line and a screen
show the same.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from spectui.adapters.dialect import dialect_of
from spectui.adapters.gguf_file import first_difference, read_model
from spectui.adapters.journal import Record, read_record
from spectui.adapters.program import find_program
from spectui.adapters.prompt_file import load_workload
from spectui.adapters.surroundings import (
    config_files,
    engine_devices,
    is_full,
    machine,
    place,
    port_problem,
    slow_disk,
    variables,
)
from spectui.adapters.toml_store import load_profile, toml_value
from spectui.bootstrap import cache_folder, state_folder
from spectui.domain.errors import EngineError, ModelFileError, ProfileError, SpectuiError
from spectui.domain.facts import EngineFacts, Facts, Measured, ModelFile, Problem
from spectui.domain.models import ModelFacts, TokenDifference
from spectui.domain.pairing import Candidate, candidates, judge, needs_tokens
from spectui.domain.plan import Plan, Table, read_plan
from spectui.domain.preflight import Preflight, preflight
from spectui.domain.profile import (
    BUILTIN,
    DEMO,
    EMBEDDED,
    Profile,
    to_mapping,
    with_setting,
)
from spectui.domain.text import clean
from spectui.embedded.demo_model import engine_build, find_demo_model
from spectui.session.book import replay

SERVER = "llama-server"
_MOST_BESIDE = 60
_PATIENCE = 3.0  # s for headers of models beside the target
_MOST_RECORDS = 40
_LONGEST = 1 << 20  # bytes of a profile

Refusal = tuple[str, str, str]


def check_profile(profile: Profile, source: Path | None = None) -> Preflight:
    """Return what preflight says of a profile as it is now; blocks for a second or so."""
    return preflight(gather(to_mapping(profile), source=source))


def read_leniently(path: Path, settings: Iterable[str] = ()) -> tuple[Table, Refusal | None]:
    """Return a profile's tables with absolute paths, and why the profile is refused, if it is.

    The refusal is the key, what is wrong and what to do. Raises ProfileError where the file is no
    TOML at all, and UsageError for a setting that is not KEY=VALUE.
    """
    changes = list(settings)
    refusal: Refusal | None = None
    try:
        load_profile(path, changes)
    except ProfileError as error:
        key = error.where.removeprefix(str(path)).removeprefix(": ")
        refusal = key, error.what.removeprefix(f"{error.where}: "), error.fix
        if _raw(path) is None:
            raise
    # read once more as it is: a loaded profile does not tell what was left out
    data: Table = _raw(path) or {}
    for setting in changes:
        data = with_setting(data, setting, toml_value)
    return _with_paths(data, path.parent), refusal


def _raw(path: Path) -> dict[str, object] | None:
    try:
        with path.open("rb") as file:  # the path may be anything, /dev/zero as well
            return tomllib.loads(file.read(_LONGEST).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None


def _with_paths(data: Table, folder: Path) -> Table:
    """Make the paths of the tables absolute, as far as they are texts."""
    plain = {"engine": EMBEDDED, "target": DEMO, "draft": DEMO, "prompts": BUILTIN}
    found: dict[str, object] = {}
    for name, table in data.items():
        if not isinstance(table, Mapping):
            found[name] = table
            continue
        found[name] = {
            key: _absolute(value, folder)
            if key in plain
            and isinstance(value, str)
            and value not in {plain[key], ""}
            # an engine without a slash is a name to look up
            and (key != "engine" or "/" in value)
            else value
            for key, value in table.items()
        }
    return found


def _absolute(path: str, folder: Path) -> str:
    with contextlib.suppress(RuntimeError):
        return str(folder.absolute() / Path(path).expanduser())
    return path


def gather(
    data: Table | None = None,
    *,
    refusal: Refusal | None = None,
    source: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Facts:
    """Return the facts about a profile's tables, or about the machine alone for None.

    ``source`` is the profile's file, by which its records are known.
    """
    around = os.environ if environment is None else environment
    files, found = config_files(around), variables(around)
    folder, elsewhere = state_folder()
    state = place(folder, elsewhere)
    if data is None:
        return Facts(machine(around), tuple(_engines()), files, found, state)
    plan = read_plan(data, [*(entry for file in files for entry in file.entries), *found])
    target = _model_file("models.target", plan.target)
    draft = _model_file("models.draft", plan.draft) if plan.draft else None
    projector = plan.text("mmproj")
    engine = _engine(plan.engine, plan.env)
    return Facts(
        machine=machine({**around, **plan.env}),
        engines=tuple(_engines()) if engine.problem else (),
        config_files=files,
        variables=found,
        state=state,
        plan=plan,
        refusal=refusal,
        engine=engine,
        target=target,
        draft=draft,
        projector=_model_file("--mmproj", projector) if projector else None,
        pair=_pair(target, draft),
        beside=_beside(target),
        port=port_problem(plan.port),
        workload=_workload(plan),
        measured=_measured(folder, plan, target, draft, source),
    )


# -- engines ---------------------------------------------------------------------------------------


def _engines() -> Iterator[EngineFacts]:
    yield _engine(EMBEDDED)
    yield _engine(SERVER)


def _engine(name: str, variables: Mapping[str, str] | None = None) -> EngineFacts:
    if name == EMBEDDED:
        try:
            return EngineFacts("embedded", build=engine_build(), devices=())
        except EngineError as error:
            return EngineFacts("embedded", problem=_problem("program-missing", error))
    try:
        program = find_program(name)
    except EngineError as error:
        code = "not-executable" if Path(name).is_file() else "program-missing"
        return EngineFacts("binary", name, problem=_problem(code, error))
    try:
        dialect = dialect_of(program, cache_folder())
    except EngineError as error:
        library = "127" in error.what or "librar" in error.fix
        code = "library-missing" if library else "not-executable"
        code = "illegal-instruction" if "SIGILL" in error.what else code
        return EngineFacts("binary", program, problem=_problem(code, error))
    return EngineFacts(
        "binary",
        program,
        build=dialect.version if dialect else "",
        devices=engine_devices(program, variables) if dialect else None,
        dialect=dialect,
    )


def _problem(code: str, error: SpectuiError) -> Problem:
    return Problem(code, error.what, error.fix)


# -- models ----------------------------------------------------------------------------------------


# an address, or a repository such as someone/Some-Model-GGUF:Q4_K_M
_REMOTE = re.compile(r"\w:/|/[\w.-]+[-_]gguf(:[\w.-]+)?$", re.IGNORECASE)


def _elsewhere(path: str) -> Problem:
    """Return what is wrong with a name that stands for a model on another machine."""
    name = clean(path.rpartition("/")[2], limit=200)
    fix = "spectui starts from files: download it (`hf download`), and name the file"
    return Problem("model-missing", f"{name} is no file on this machine", fix)


def _model_file(key: str, path: str) -> ModelFile:
    if path == DEMO:
        try:
            path = str(find_demo_model())
        except EngineError as error:
            return ModelFile(key, path, problem=_problem("model-missing", error))
    try:
        model = read_model(Path(path))
    except ModelFileError as error:
        remote = error.code == "model-missing" and _REMOTE.search(path)
        problem = _elsewhere(path) if remote else _problem(error.code, error)
        return ModelFile(key, path, problem=problem)
    return ModelFile(key, path, model, slow=slow_disk(path), full=is_full(path))


def _pair(target: ModelFile, draft: ModelFile | None) -> Candidate | None:
    if target.model is None or draft is None or draft.model is None:
        return None
    return _judged(target.model, draft.model)


def _judged(target: ModelFacts, draft: ModelFacts) -> Candidate:
    difference = None
    if needs_tokens(target, draft):
        with contextlib.suppress(ModelFileError):
            difference = first_difference(Path(target.path), Path(draft.path))
    return judge(target, draft, difference)


def _beside(target: ModelFile) -> tuple[Candidate, ...]:
    """Hold the models in the target's folder against it, those that fit first."""
    if target.model is None:
        return ()
    mine = {*target.model.files, target.model.path}
    until = time.monotonic() + _PATIENCE
    read: dict[str, ModelFacts] = {}
    differences: dict[str, TokenDifference] = {}
    try:
        files = sorted(Path(target.model.path).parent.glob("*.gguf"))[:_MOST_BESIDE]
    except OSError:
        return ()
    for file in files:
        if str(file) in mine or time.monotonic() > until:
            continue
        with contextlib.suppress(ModelFileError):
            model = read_model(file)
            if needs_tokens(target.model, model):
                difference = first_difference(Path(target.model.path), file)
                differences |= {model.path: difference} if difference else {}
            read[model.path] = model
    return candidates(target.model, read.values(), differences)


# -- what there is besides -------------------------------------------------------------------------


def _workload(plan: Plan) -> Problem | None:
    try:
        load_workload(plan.prompts, plan.tasks or None)
    except SpectuiError as error:
        return Problem("workload-invalid", error.what, error.fix)
    return None


def _measured(
    folder: Path, plan: Plan, target: ModelFile, draft: ModelFile | None, source: Path | None
) -> Measured | None:
    """Return the newest measurement of this profile: of its file, or of the same models."""
    try:
        paths = sorted((folder / "sessions").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    except OSError:
        return None
    for path in reversed(paths[-_MOST_RECORDS:]):
        try:
            record = read_record(path)
        except SpectuiError:
            continue
        if not any(run.requests for run in record.runs):
            continue
        if _is_of(record, plan, target, draft, source):
            date = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
            return Measured(date, _result(record), str(path))
    return None


def _is_of(
    record: Record, plan: Plan, target: ModelFile, draft: ModelFile | None, source: Path | None
) -> bool:
    if record.target != target.path:
        return False
    if source is not None and record.source == source.absolute():
        return True
    same_draft = record.draft == (draft.path if draft else "")
    return same_draft and any(run.arm.speculation.type in _types(plan) for run in record.runs)


def _types(plan: Plan) -> frozenset[str]:
    return frozenset({",".join(plan.types)})


def _result(record: Record) -> str:
    names = Path(record.target).name, Path(record.draft).name
    return replay(record.runs, record.engine, *names).answer.text
