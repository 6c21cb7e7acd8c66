"""The model files that an old command names, or lets llama-server download."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spectui.domain.errors import UsageError
from spectui.domain.flags import flag_named
from spectui.domain.imported import shown
from spectui.domain.old_paths import Places
from spectui.domain.old_settings import Setting, Settings, read_settings
from spectui.domain.remote_models import FOLDER, PRESETS, from_docker, from_hub, from_url
from spectui.domain.speculation import TYPES, Draft


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The target's path, the repository it comes from (or empty), and the draft's path or empty."""

    target: str
    remote: str
    draft: str


_ASIDE: Mapping[str, str] = MappingProxyType(
    {
        "--model": "--spec-draft-model",
        "--gpu-layers": "--spec-draft-ngl",
        "--device": "--spec-draft-device",
        "--cache-type-k": "--spec-draft-type-k",
        "--cache-type-v": "--spec-draft-type-v",
        "--override-tensor": "--spec-draft-override-tensor",
        "--threads": "--spec-draft-threads",
        "--threads-batch": "--spec-draft-threads-batch",
        "--cpu-moe": "--spec-draft-cpu-moe",
        "--n-cpu-moe": "--spec-draft-n-cpu-moe",
    }
)
"""The target's flag → the draft's, for ik_llama.cpp's ``-draft "…"``."""


def take_aside(found: Settings) -> None:
    """Write presets, and what ik_llama.cpp gives its draft model in one word, as plain flags."""
    for preset, plain in PRESETS.items():
        if found.take(preset):
            found.note("expanded", f"{preset} stands for {shown(' '.join(plain), 300)}")
            found.items[:0] = read_settings(plain, ()).items
    item = found.take("--draft-params")
    if item is None:
        return
    lexer = shlex.shlex(item.value, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""  # D:\\models stays
    try:
        words = tuple(lexer)
    except ValueError:
        found.note("invalid-value", "-draft has an open quotation mark: left out")
        return
    lost: list[str] = []
    for inner in read_settings(words, ()).items:
        name = _ASIDE.get(inner.flag.name, "")
        if name:
            found.items.append(Setting(flag_named(name), inner.values, inner.positive, name))
        else:
            lost.append(inner.written)
    rest = f"; left out: {', '.join(lost)}" if lost else ""
    found.note("dialect", f"-draft of ik_llama.cpp is written as the draft's own flags{rest}")


def models_of(found: Settings, places: Places) -> ModelFiles:
    """Take the models out of the settings. Raises UsageError where there is no target."""
    target, repository = _target(found, places)
    if not target:
        raise UsageError(
            "the command names no model, so llama-server would start as a router",
            "add -m FILE to it, or import the command of one model",
        )
    return ModelFiles(target, repository, _draft(found, places))


def _target(found: Settings, places: Places) -> tuple[str, str]:
    file = found.take("--model")
    hub, hub_file = found.take("--hf-repo"), found.take("--hf-file")
    url, docker = found.take("--model-url"), found.take("--docker-repo")
    path, why = "", ""
    if hub and hub.value:
        path, why = from_hub(hub.written, hub.value, hub_file.value if hub_file else "")
    elif docker and docker.value:
        path, why = from_docker(docker.written, docker.value)
    elif url and url.value:
        path, why = from_url(url.written, url.value)
    if file and file.value.strip():
        path = places.host(file.value)
    if why:
        found.note("remote-model", why)
    return path.strip() and path, hub.value if hub else ""


def _draft(found: Settings, places: Places) -> str:
    old = found.take("--draft-model")
    file, hub = found.take("--spec-draft-model"), found.take("--spec-draft-hf")
    if old:
        found.note("renamed", "--draft-model was never a flag: it is --model-draft, -md for short")
        file = file or old
    if hub and hub.value:
        path, why = from_hub(hub.written, hub.value, file.value if file else "")
        found.note("remote-model", why)
        return path
    return places.host(file.value) if file and file.value.strip() else ""


def sidecar_of(found: Settings, models: ModelFiles, kinds: Iterable[str]) -> str:
    """Return the expected draft of a type that needs one, which the target's repository holds."""
    kind = next((kind for kind in kinds if TYPES[kind].draft is Draft.NEEDED), "")
    if not kind:
        return ""
    leaf = models.target.replace("\\", "/").rpartition("/")[2]
    path = f"{FOLDER}/{kind.removeprefix('draft-')}-{leaf}"
    found.note(
        "remote-model",
        f"llama-server takes the draft of {kind} from the target's own repository"
        f" {shown(models.remote)}; get that file too: {path} is a guess",
    )
    return path
