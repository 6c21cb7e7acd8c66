"""The profile: what to launch, what to speculate with and what to measure.

A profile is a mapping of tables, as TOML gives it. Reading one names file, key and the allowed
values in every complaint; writing one gives back exactly what was read, so that load → export →
load is the identity. Paths are kept as the caller resolved them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spectui.domain.errors import ProfileError, UsageError
from spectui.domain.speculation import KNOBS, OFF, TYPES, Number, Speculation, check
from spectui.domain.text import clean, nearest

TASKS = ("math", "code", "translation", "creative", "science", "rewrite")
"""The tasks of the built-in workload, in the order in which they are shown."""

EMBEDDED = "embedded"
DEMO = "demo"
BUILTIN = "builtin"
"""The source that names the prompts which come with spectui."""

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """Which llama-server to run. ``args`` are passed on as they are; ``port`` None: a free one."""

    engine: str = EMBEDDED
    args: tuple[str, ...] = ()
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """Model files. ``target`` may be "demo"; ``draft`` is empty where the type needs none."""

    target: str = DEMO
    draft: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What to send. ``tasks`` empty: all of them. ``max_tokens`` per answer, in tokens."""

    prompts: str = BUILTIN
    tasks: tuple[str, ...] = ()
    max_tokens: int = 128
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that one session runs with. ``evidence`` is what an export says of its proof."""

    server: ServerSpec = field(default_factory=ServerSpec)
    models: Models = field(default_factory=Models)
    speculation: Speculation = field(default_factory=Speculation)
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    evidence: Table = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_draft(self) -> bool:
        """Whether a draft model is named."""
        return bool(self.models.draft)

    def with_speculation(self, speculation: Speculation) -> Profile:
        """Return a copy that speculates otherwise; what was proved of the old one is dropped."""
        return replace(self, speculation=speculation, evidence=MappingProxyType({}))


OWNED_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("-m", "--model", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo"),
                *("-dr", "--docker-repo", "--models-dir", "--models-preset"),
            ),
            "models.target",
        ),
        **dict.fromkeys(
            (
                *("-md", "--model-draft", "--spec-draft-model"),
                *("-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"),
            ),
            "models.draft",
        ),
        "--port": "server.port",
        **dict.fromkeys(("--spec-type", "--spec-default"), "speculation.type"),
        **dict.fromkeys(
            (
                *("--host", "--reuse-port", "--api-key", "--api-key-file", "--api-prefix"),
                *("--ssl-key-file", "--ssl-cert-file", "--no-slots", "--log-file"),
                *("--log-disable", "-h", "--help", "--usage", "--version"),
            ),
            "",
        ),
        **{knob.flag: f"speculation.{knob.key}" for knob in KNOBS.values()},
        **dict.fromkeys(("--draft-max", "--draft-n", "--draft"), "speculation.n_max"),
        **dict.fromkeys(("--draft-min", "--draft-n-min"), "speculation.n_min"),
        "--draft-p-min": "speculation.p_min",
    }
)
"""llama-server's flags that the profile sets elsewhere → where. Empty: spectui sets it itself."""


class _Reader:
    """Reads one table: knows where it is, and which keys somebody has asked for."""

    def __init__(self, file: str, name: str, table: object) -> None:
        self.file, self.name = file, name
        if not isinstance(table, Mapping):
            raise ProfileError(file, f"[{name}] is not a table" if name else "not a table")
        self.table: Mapping[str, object] = table

    def where(self, key: str) -> str:
        path = f"{self.name}.{key}" if self.name else key
        return f"{self.file}: {path}" if self.file else path

    def fail(self, key: str, allowed: str) -> ProfileError:
        shown = clean(repr(self.table[key]), limit=60)
        return ProfileError(self.where(key), f"{shown} is not {allowed}")

    def known(self, keys: Iterable[str]) -> None:
        names = list(keys)
        for key in self.table:
            if key not in names:
                close = nearest(str(key), names)
                path = clean(self.where(str(key)), limit=300)
                fix = f"did you mean {close}?" if close else f"known here are {', '.join(names)}"
                raise ProfileError(path, "unknown key", fix)

    def text(self, key: str, default: str) -> str:
        value = self.table.get(key, default)
        if not isinstance(value, str) or (key in self.table and not value.strip()):
            raise self.fail(key, "a text")
        if "\0" in value:
            raise self.fail(key, "a text without NUL")
        return value

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        value = self.table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(key, f"a whole number from {low} to {high}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        if not isinstance(value, list | tuple) or not all(
            isinstance(item, str) and "\0" not in item for item in value
        ):
            raise self.fail(key, 'a list of texts, such as ["a", "b"]')
        return tuple(value)


def parse_profile(
    data: Table, *, file: str = "", resolve: Callable[[str], str] = lambda path: path
) -> Profile:
    """Return the profile in ``data``; ``resolve`` makes a path of it absolute.

    Raises ProfileError naming ``file``, the key and what is allowed there.
    """
    top = _Reader(file, "", data)
    top.known(("server", "models", "speculation", "workload", "evidence"))
    models = _models(_Reader(file, "models", data.get("models", {})), resolve)
    evidence = _Reader(file, "evidence", data.get("evidence", {})).table
    return Profile(
        server=_server(_Reader(file, "server", data.get("server", {})), resolve),
        models=models,
        speculation=_speculation(
            _Reader(file, "speculation", data.get("speculation", {})), has_draft=bool(models.draft)
        ),
        workload=_workload(_Reader(file, "workload", data.get("workload", {})), resolve),
        evidence=MappingProxyType(dict(evidence)),
    )


def _server(table: _Reader, resolve: Callable[[str], str]) -> ServerSpec:
    table.known(("engine", "args", "port"))
    engine = table.text("engine", EMBEDDED)
    args = table.texts("args")
    for arg in args:
        flag = arg.partition("=")[0]
        if flag.startswith("--"):  # llama-server takes --spec_type for --spec-type
            flag = flag.replace("_", "-")
        if flag in OWNED_FLAGS:
            key = OWNED_FLAGS[flag]
            fix = (
                f"set {key} instead" if key else "spectui could not talk to the server, or read it"
            )
            raise ProfileError(table.where("args"), f"{flag} is not for args", fix)
    port = table.whole("port", 1024, 1, 65535) if "port" in table.table else None
    # a bare name is looked up in PATH, anything with a slash is a file
    return ServerSpec(resolve(engine) if "/" in engine else engine, args, port)


def _models(table: _Reader, resolve: Callable[[str], str]) -> Models:
    table.known(("target", "draft"))
    target = table.text("target", DEMO)
    draft = table.text("draft", "")
    return Models(
        target if target == DEMO else resolve(target),
        draft if draft in {"", DEMO} else resolve(draft),
    )


def _speculation(table: _Reader, *, has_draft: bool) -> Speculation:
    tables = sorted({key.partition(".")[0] for key in KNOBS if "." in key})
    plain = [key for key in KNOBS if "." not in key]
    table.known(("type", *plain, *tables))
    kind = table.text("type", OFF)
    if kind not in TYPES:
        close = nearest(kind, TYPES)
        fix = f"did you mean {close}?" if close else ""
        raise ProfileError(
            table.where("type"), f"{clean(repr(kind))} is not one of {', '.join(TYPES)}", fix
        )
    settings: dict[str, Number] = {}
    for name in (key for key in tables if key in table.table):
        inner = _Reader(table.file, f"{table.name}.{name}", table.table[name])
        inner.known(key.partition(".")[2] for key in KNOBS if key.startswith(f"{name}."))
        settings |= _numbers(inner, f"{name}.")
    outer = _Reader(table.file, table.name, {k: v for k, v in table.table.items() if k in plain})
    speculation = Speculation.of(kind, settings | _numbers(outer, ""))
    for key, why in check(speculation, has_draft=has_draft):
        raise ProfileError(table.where(key), why)
    return speculation


def _numbers(table: _Reader, prefix: str) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for key, value in table.table.items():
        knob = KNOBS[prefix + key]
        if isinstance(value, int) and not isinstance(value, bool) and not knob.integral:
            value = float(value)  # noqa: PLW2901 - p_min = 0 is as good as 0.0
        why = knob.check(value)
        if why:
            raise ProfileError(table.where(key), clean(why, limit=200))
        assert isinstance(value, int | float)  # noqa: S101 - check() has seen to it
        found[prefix + key] = value
    return found


def _workload(table: _Reader, resolve: Callable[[str], str]) -> WorkloadSpec:
    table.known(("prompts", "tasks", "max_tokens", "seed"))
    prompts = table.text("prompts", BUILTIN)
    tasks = table.texts("tasks")
    if prompts == BUILTIN:
        for task in tasks:
            if task not in TASKS:
                close = nearest(task, TASKS)
                fix = f"did you mean {close}?" if close else ""
                what = f"{clean(repr(task))} is not one of {', '.join(TASKS)}"
                raise ProfileError(table.where("tasks"), what, fix)
    return WorkloadSpec(
        prompts=prompts if prompts == BUILTIN else resolve(prompts),
        tasks=tasks,
        max_tokens=table.whole("max_tokens", 128, 2, 1_000_000),
        seed=table.whole("seed", 1, 0, 2**32 - 1),
    )


def to_mapping(
    profile: Profile, *, relate: Callable[[str], str] = lambda path: path
) -> dict[str, object]:
    """Return the tables of a profile, ready for TOML; ``relate`` shortens its paths.

    Values that equal a default and were never set are left out, except the ones a reader looks
    for first (engine, target, type).
    """
    server: dict[str, object] = {"engine": profile.server.engine}
    if "/" in profile.server.engine:
        server["engine"] = relate(profile.server.engine)
    if profile.server.args:
        server["args"] = list(profile.server.args)
    if profile.server.port is not None:
        server["port"] = profile.server.port
    target, draft = profile.models.target, profile.models.draft
    models = {"target": target if target == DEMO else relate(target)}
    if draft:
        models["draft"] = draft if draft == DEMO else relate(draft)
    speculation: dict[str, object] = {"type": profile.speculation.type}
    tables: dict[str, dict[str, Number]] = {}
    for key, value in profile.speculation.settings:
        name, _, inner = key.partition(".")
        if inner:
            tables.setdefault(name, {})[inner] = value
        else:
            speculation[key] = value
    spec = profile.workload
    workload: dict[str, object] = {
        "prompts": spec.prompts if spec.prompts == BUILTIN else relate(spec.prompts),
        "max_tokens": spec.max_tokens,
        "seed": spec.seed,
    }
    if spec.tasks:
        workload["tasks"] = list(spec.tasks)
    result: dict[str, object] = {
        "server": server,
        "models": models,
        "speculation": speculation | tables,
        "workload": workload,
    }
    if profile.evidence:
        result["evidence"] = dict(profile.evidence)
    return result


def with_setting(data: Table, setting: str, parse: Callable[[str], object]) -> dict[str, object]:
    """Return ``data`` with one ``table.key=value`` of the command line applied.

    ``parse`` turns the text of the value into a value. Raises UsageError for a malformed one;
    whether the key exists is for parse_profile to say.
    """
    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys) or len(keys) < 2:
        raise UsageError(
            f"{clean(setting, limit=80)!r} is not table.key=value",
            "write for example speculation.n_max=4",
        )
    result = dict(data)
    table = result
    for key in keys[:-1]:
        inner = table.get(key, {})
        if not isinstance(inner, Mapping):
            raise UsageError(f"{clean(path, limit=80)}: {key} is not a table")
        copy = dict(inner)
        table[key] = copy
        table = copy
    table[keys[-1]] = parse(text.strip())
    return result
