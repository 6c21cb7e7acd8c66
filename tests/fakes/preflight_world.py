"""A world for preflight without disk, GPU or server: models by path, engines by name.

``World(...).facts(profile)`` is what ``spectui.checkup.gather`` would find there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import fake_help

from spectui.domain.dialect import Dialect, read_help
from spectui.domain.errors import ProfileError
from spectui.domain.facts import (
    ConfigFile,
    Device,
    EngineFacts,
    Facts,
    Machine,
    Measured,
    ModelFile,
    Place,
    Problem,
)
from spectui.domain.models import ModelFacts, ModelKind, TokenDifference, Vocabulary
from spectui.domain.pairing import candidates, judge
from spectui.domain.plan import Outside, read_plan
from spectui.domain.profile import parse_profile, with_value

GIB = 1 << 30
MORE_FLAGS = """
-np,   --parallel N                     slots
-c,    --ctx-size N                     context
-ctk,  --cache-type-k TYPE              KV cache
-ctv,  --cache-type-v TYPE              KV cache
-fa,   --flash-attn [on|off|auto]       flash attention
-mm,   --mmproj FILE                    projector
-lm,   --load-mode MODE                 how to load
-t,    --threads N                      threads
-n,    --predict N                      tokens
--log-colors [on|off|auto]              colours
"""
WORDS = Vocabulary("gpt2", "qwen2", 151_936, bos=None, eos=151_645, add_bos=False, add_eos=False)
OTHER_WORDS = Vocabulary("gpt2", "llama-bpe", 128_256, bos=128_000, eos=128_009, add_bos=True)


def model(path: str, parameters: float, **more: Any) -> ModelFacts:
    """Return a qwen3 of so many parameters, in five bits each, as far as not said otherwise."""
    plain: dict[str, Any] = {
        "files": (path,),
        "size": int(parameters * 0.6),
        "architecture": "qwen3",
        "context": 40_960,
        "layers": 36,
        "embedding": 4096,
        "heads": 32,
        "kv_heads": (8,),
        "key_length": 128,
        "value_length": 128,
        "vocabulary": WORDS,
        "parameters": int(parameters),
    }
    return ModelFacts(path, **{**plain, **more})


TARGET = "/m/target.gguf"
DRAFT = "/m/draft.gguf"
EAGLE = {
    "kind": ModelKind.EAGLE3,
    "architecture": "eagle3",
    "layers": 1,
    "target_layers": (2, 18, 33),
    "target_embedding": 4096,
}
BLOCKS = {**EAGLE, "architecture": "dflash", "block_size": 8}
MODELS = (
    model(TARGET, 8.2e9),
    model(DRAFT, 1e9, layers=28, embedding=1024),
    model("/m/heads.gguf", 8.2e9, mtp_layers=1),
    model("/m/small.gguf", 1.5e9),
    model("/m/tiny.gguf", 0.1e9, layers=2, embedding=64),
    model("/m/large-draft.gguf", 6e9),
    model("/other/draft.gguf", 1e9, vocabulary=OTHER_WORDS),
    model("/other/tokens.gguf", 1e9),
    model("/m/eagle3.gguf", 0.5e9, **EAGLE),
    model("/other/eagle3.gguf", 0.5e9, **{**EAGLE, "target_embedding": 5120}),
    model("/m/dflash.gguf", 0.5e9, **{**BLOCKS, "kind": ModelKind.DFLASH}),
    model("/m/dspark.gguf", 0.5e9, **{**BLOCKS, "kind": ModelKind.DSPARK, "confidence": False}),
    model("/m/mmproj.gguf", 0.4e9, kind=ModelKind.PROJECTOR),
    model("/m/adapter.gguf", 1e7, kind=ModelKind.OTHER, detail="a LoRA adapter"),
    model("/m/split-00001-of-00002.gguf", 8.2e9, missing=("split-00002-of-00002.gguf",)),
)
DIFFERENCE = TokenDifference(271, "\n\n", "\r\n")
ENGINE = "/bin/llama-server"
GPU = Device("CUDA0", "RTX 3090", 24 * GIB, 23 * GIB)
MACHINE = Machine("a processor", 64 * GIB, 60 * GIB, (GPU,))
STATE = Place("/state", 500 * GIB)


def help_of(text: str) -> Dialect:
    found = read_help(text + MORE_FLAGS)
    assert found is not None
    return found


TODAY = help_of(fake_help.TODAY)


@dataclass(frozen=True)
class World:
    """What there is. ``engines`` and ``ports`` hold what is wrong with them."""

    models: Mapping[str, ModelFacts] = field(
        default_factory=lambda: {found.path: found for found in MODELS}
    )
    broken: Mapping[str, Problem] = field(default_factory=dict)
    slow: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()
    devices: tuple[Device, ...] | None = (GPU,)
    machine: Machine = MACHINE
    dialect: Dialect = TODAY
    engines: Mapping[str, Problem] = field(default_factory=dict)
    ports: Mapping[int, Problem] = field(default_factory=dict)
    workloads: Mapping[str, Problem] = field(default_factory=dict)
    config_files: tuple[ConfigFile, ...] = ()
    variables: tuple[Outside, ...] = ()
    state: Place = STATE
    measured: Measured | None = None

    def facts(self, profile: Mapping[str, object] | None) -> Facts:
        """Return the facts about a profile's tables; without any, about the machine."""
        if profile is None:
            engines = (self._engine("embedded"), self._engine("llama-server"))
            return Facts(self.machine, engines, self.config_files, self.variables, self.state)
        entries = [entry for file in self.config_files for entry in file.entries]
        plan = read_plan(profile, [*entries, *self.variables])
        target = self._file("models.target", plan.target)
        draft = self._file("models.draft", plan.draft) if plan.draft else None
        projector = plan.text("mmproj")
        pair = None
        if target.model and draft and draft.model:
            pair = judge(target.model, draft.model, self._difference(draft.path))
        beside = [found for found in self.models.values() if found.path.startswith("/m/")]
        engine = self._engine(plan.engine)
        others = (self._engine("embedded"), self._engine("llama-server"))
        return Facts(
            self.machine,
            others if engine.problem else (),
            self.config_files,
            self.variables,
            self.state,
            plan=plan,
            refusal=refusal_of(profile),
            engine=engine,
            target=target,
            draft=draft,
            projector=self._file("--mmproj", projector) if projector else None,
            pair=pair,
            beside=candidates(target.model, beside) if target.model else (),
            port=self.ports.get(plan.port or 0),
            workload=self.workloads.get(plan.prompts),
            measured=self.measured,
        )

    def _difference(self, path: str) -> TokenDifference | None:
        return DIFFERENCE if path == "/other/tokens.gguf" else None

    def _file(self, key: str, path: str) -> ModelFile:
        found = ModelFile(key, path, slow="a rotating disk (sda)" if path in self.slow else "")
        found = replace(found, full=path in self.full)
        if path in self.models:
            return replace(found, model=self.models[path])
        missing = Problem("model-missing", f"{path} is not there", "name another one")
        return replace(found, problem=self.broken.get(path, missing))

    def _engine(self, name: str) -> EngineFacts:
        if name == "embedded":
            problem = self.engines.get(name)
            return EngineFacts("embedded", build="" if problem else "xllamacpp", problem=problem)
        if name in self.engines:
            return EngineFacts("binary", name, problem=self.engines[name])
        return EngineFacts("binary", name, "b11434", devices=self.devices, dialect=self.dialect)


def refusal_of(profile: Mapping[str, object]) -> tuple[str, str, str] | None:
    """Return why the profile cannot be used: its key, what is wrong, what to do."""
    try:
        parse_profile(profile)
    except ProfileError as error:
        return error.where, error.what.removeprefix(f"{error.where}: "), error.fix
    return None


def profile(**changes: object) -> dict[str, object]:
    """Return a profile that nothing is wrong with, changed: ``server__port`` is server.port."""
    data: dict[str, object] = {
        "server": {"engine": ENGINE, "context": 16_384, "parallel": 1},
        "models": {"target": TARGET, "draft": DRAFT},
        "speculation": {"type": "draft-simple", "n_max": 4},
    }
    for key, value in changes.items():
        data = with_value(data, key.replace("__", "."), value)
    return data
