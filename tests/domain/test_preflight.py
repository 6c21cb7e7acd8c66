"""Preflight: what would go wrong is found, only then, with the right weight and a way out."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import fake_help
import pytest
from preflight_world import (
    DRAFT,
    ENGINE,
    GPU,
    MACHINE,
    MODELS,
    TARGET,
    World,
    help_of,
    model,
    profile,
    refusal_of,
)

from spectui import domain
from spectui.domain.facts import ConfigFile, Measured, Place, Problem
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.plan import Outside
from spectui.domain.preflight import Preflight, Reply, preflight
from spectui.domain.profile import with_value

BLOCKER, WARNING, HINT = Severity.BLOCKER, Severity.WARNING, Severity.HINT
GIB = 1 << 30
WORLD = World()
Changes = dict[str, object]


@dataclass(frozen=True)
class Case:
    """One thing that is wrong with an otherwise good profile, and how each fix is called.

    ``fixes`` maps a label to the changes of the profile. ``words`` are in the sentence or advice.
    """

    name: str
    code: str
    severity: Severity
    words: str
    changes: Changes = field(default_factory=dict)
    fixes: dict[str, Changes] = field(default_factory=dict)
    world: World = WORLD

    @property
    def profile(self) -> dict[str, object]:
        return profile(**self.changes)


def world(**changes: Any) -> World:
    return replace(WORLD, **changes)


def problem(code: str, what: str, fix: str = "do something") -> Problem:
    return Problem(code, what, fix)


TEXT = {
    "draft from repeats of the text": {"speculation.type": "ngram-mod", "models.draft": None},
}
OFF = {"turn speculation off": {"speculation.type": "none"}}
DRAFTS = {
    "draft with dflash.gguf": {
        "models.draft": "/m/dflash.gguf",
        "speculation.type": "draft-dflash",
    },
    "draft with dspark.gguf": {
        "models.draft": "/m/dspark.gguf",
        "speculation.type": "draft-dspark",
    },
}
OUTSIDE = ConfigFile("/etc/llama.cpp/config.ini", (Outside("/etc/x", "ctx-size", "512"),))

TYPE_CASES = [
    Case(
        "draft-without-type",
        "draft-unused",
        BLOCKER,
        "nothing will use it: no type is set",
        {"speculation__type": None},
        {
            "set the type to draft-simple": {"speculation.type": "draft-simple"},
            "leave the draft model out": {"models.draft": None},
        },
    ),
    Case(
        "type-left-at-none",
        "draft-unused",
        WARNING,
        "nothing will use it: type is none",
        {"speculation__type": "none"},
        {
            "set the type to draft-simple": {"speculation.type": "draft-simple"},
            "leave the draft model out": {"models.draft": None},
        },
    ),
    Case(
        "eagle3-draft-without-type",
        "draft-unused",
        BLOCKER,
        "no type is set",
        {"speculation__type": None, "models__draft": "/m/eagle3.gguf"},
        {
            "set the type to draft-eagle3": {"speculation.type": "draft-eagle3"},
            "leave the draft model out": {"models.draft": None},
        },
    ),
    Case(
        "unfit-draft-without-type",
        "draft-unused",
        BLOCKER,
        "no type is set",
        {"speculation__type": None, "models__draft": "/other/draft.gguf"},
        {"leave the draft model out": {"models.draft": None}},
    ),
    Case(
        "draft-of-n-grams",
        "draft-unused",
        WARNING,
        "type is ngram-simple",
        {"speculation": {"type": "ngram-simple"}},
        {
            "set the type to draft-simple": {"speculation.type": "draft-simple"},
            "leave the draft model out": {"models.draft": None},
        },
    ),
    Case(
        "type-without-draft",
        "draft-missing",
        BLOCKER,
        "draft-simple needs a draft model and none is given",
        {"models__draft": None},
        {
            **DRAFTS,
            "draft from repeats of the text": {"speculation.type": "ngram-mod"},
            **OFF,
        },
    ),
    Case(
        "no-such-type",
        "argument-invalid",
        BLOCKER,
        "'draft-simpel' is no type of speculation",
        {"speculation__type": "draft-simpel"},
        {"set the type to draft-simple": {"speculation.type": "draft-simple"}, **OFF},
    ),
    Case(
        "one-of-two-types-is-none",
        "argument-invalid",
        BLOCKER,
        "turns every other type off",
        {"speculation__type": "none,draft-simple"},
        {"set the type to draft-simple": {"speculation.type": "draft-simple"}, **OFF},
    ),
    Case(
        "two-draft-models",
        "argument-invalid",
        BLOCKER,
        "draft-simple and draft-eagle3 cannot share the one draft model",
        {"speculation__type": "draft-simple,draft-eagle3"},
        {
            "set the type to draft-simple": {"speculation.type": "draft-simple"},
            "set the type to draft-eagle3": {"speculation.type": "draft-eagle3"},
        },
    ),
]

KNOB_CASES = [
    Case(
        "n-max-zero",
        "argument-invalid",
        BLOCKER,
        "speculation.n_max is 0, which is not off",
        {"speculation__n_max": 0},
        {
            "set n_max to 3": {"speculation.n_max": 3},
            "turn speculation off": {"speculation.type": "none", "speculation.n_max": None},
        },
    ),
    Case(
        "a-length-of-n-grams-zero",
        "argument-invalid",
        BLOCKER,
        "speculation.ngram_mod.n_max is 0",
        {
            "models__draft": None,
            "speculation": {"type": "ngram-mod", "ngram_mod": {"n_max": 0, "n_min": 0}},
        },
        {
            "set n_max to 64": {"speculation.ngram_mod.n_max": 64},
            "turn speculation off": {
                "speculation.type": "none",
                "speculation.ngram_mod.n_max": None,
            },
        },
    ),
    Case(
        "n-max-zero-of-nothing",
        "argument-invalid",
        BLOCKER,
        "speculation.n_max is 0",
        {"models__draft": None, "speculation": {"n_max": 0}},
        {
            "set n_max to 3": {"speculation.n_max": 3},
            "turn speculation off": {"speculation.type": "none", "speculation.n_max": None},
        },
    ),
    Case(
        "p-min-two",
        "argument-invalid",
        BLOCKER,
        "speculation.p_min: 2 is not a number from 0.0 to 1.0",
        {"speculation__p_min": 2},
        {"set p_min to 1": {"speculation.p_min": 1.0}},
    ),
    Case(
        "a-text-for-a-number",
        "argument-invalid",
        BLOCKER,
        "'many' is not a whole number",
        {"speculation__n_max": "many"},
        {"set n_max to 3": {"speculation.n_max": 3}},
    ),
    Case(
        "n-min-above-n-max",
        "argument-invalid",
        BLOCKER,
        "n_min 6 is above n_max 4: every draft of draft-simple would be thrown away",
        {"speculation__n_min": 6},
        {
            "set n_min to 0": {"speculation.n_min": 0},
            "set n_max to 6": {"speculation.n_max": 6},
        },
    ),
    Case(
        "p-min-one",
        "p-min-too-high",
        WARNING,
        "stops every draft",
        {"speculation__p_min": 1.0},
        {"let p_min be 0": {"speculation.p_min": 0.0}},
    ),
    Case(
        "n-max-of-n-grams",
        "no-effect",
        HINT,
        "n_max has no effect on ngram-simple; its draft length is speculation.ngram_simple.size_m",
        {"models__draft": None, "speculation": {"type": "ngram-simple", "n_max": 8}},
        {"take them out": {"speculation.n_max": None}},
    ),
    Case(
        "longer-than-it-was-trained-for",
        "n-max-clamped",
        WARNING,
        "n_max 16 is more than the 7 tokens that dflash.gguf can draft at a time",
        {
            "models__draft": "/m/dflash.gguf",
            "speculation__type": "draft-dflash",
            "speculation__n_max": 16,
        },
        {"set n_max to 7": {"speculation.n_max": 7}},
    ),
    Case(
        "a-cutoff-without-confidence",
        "cutoff-unsupported",
        BLOCKER,
        "p_min is 0.5, and dspark.gguf does not tell how sure it is",
        {
            "models__draft": "/m/dspark.gguf",
            "speculation__type": "draft-dspark",
            "speculation__p_min": 0.5,
        },
        {"set p_min to 0": {"speculation.p_min": 0.0}},
    ),
]

PAIR_CASES = [
    Case(
        "another-vocabulary",
        "vocab-mismatch",
        BLOCKER,
        "draft.gguf cannot draft for this target",
        {"models__draft": "/other/draft.gguf"},
        DRAFTS | TEXT,
    ),
    Case(
        "one-other-token",
        "vocab-mismatch",
        BLOCKER,
        "token 271",
        {"models__draft": "/other/tokens.gguf"},
        DRAFTS | TEXT,
    ),
    Case(
        "another-vocabulary-that-nothing-uses",
        "vocab-mismatch",
        HINT,
        "cannot draft for this target",
        {"models__draft": "/other/draft.gguf", "speculation__type": "none"},
        DRAFTS | TEXT,
    ),
    Case(
        "eagle3-for-another-target",
        "draft-wrong-kind",
        BLOCKER,
        "made for another target: it reads a hidden size of 5120, this one's is 4096",
        {"models__draft": "/other/eagle3.gguf", "speculation__type": "draft-eagle3"},
        DRAFTS | TEXT,
    ),
    Case(
        "plain-draft-for-eagle3",
        "draft-wrong-kind",
        BLOCKER,
        "draft.gguf is a model, and draft-eagle3 cannot draft with it",
        {"speculation__type": "draft-eagle3"},
        {"set the type to draft-simple": {"speculation.type": "draft-simple"}},
    ),
    Case(
        "eagle3-for-plain-type",
        "draft-wrong-kind",
        BLOCKER,
        "eagle3.gguf is an EAGLE-3 draft, and draft-simple cannot draft with it",
        {"models__draft": "/m/eagle3.gguf", "speculation__type": "ngram-mod,draft-simple"},
        {"set the type to ngram-mod,draft-eagle3": {"speculation.type": "ngram-mod,draft-eagle3"}},
    ),
    Case(
        "adapter-as-draft",
        "draft-wrong-kind",
        BLOCKER,
        "adapter.gguf is a LoRA adapter, and draft-simple cannot draft with it",
        {"models__draft": "/m/adapter.gguf"},
        TEXT,
    ),
    Case(
        "no-mtp-layers",
        "mtp-missing",
        BLOCKER,
        "draft-mtp needs MTP layers, and target.gguf has none",
        {"models__draft": None, "speculation__type": "draft-mtp"},
        {
            **DRAFTS,
            "draft from repeats of the text": {"speculation.type": "ngram-mod"},
            **OFF,
        },
    ),
    Case(
        "a-small-target",
        "target-small",
        HINT,
        "a target of 1.5 billion parameters gains little",
        {"models__target": "/m/small.gguf", "models__draft": "/m/tiny.gguf"},
    ),
    Case(
        "a-large-draft",
        "size-ratio",
        HINT,
        "large-draft.gguf is rather large: each draft costs much (1:1.4 of the target",
        {"models__draft": "/m/large-draft.gguf"},
    ),
    Case(
        "a-tiny-draft",
        "size-ratio",
        HINT,
        "tiny.gguf is rather small: fewer drafts may be accepted (1:82 of the target",
        {"models__draft": "/m/tiny.gguf"},
    ),
]

FILE_CASES = [
    Case(
        "no-target",
        "model-missing",
        BLOCKER,
        "models.target: /m/nope.gguf is not there",
        {"models__target": "/m/nope.gguf"},
    ),
    Case(
        "no-draft",
        "model-missing",
        BLOCKER,
        "models.draft: /m/nope.gguf is not there",
        {"models__draft": "/m/nope.gguf"},
        TEXT,
    ),
    Case(
        "no-permission",
        "permission-denied",
        BLOCKER,
        "models.draft: it may not be read",
        {"models__draft": "/m/locked.gguf"},
        TEXT,
        world(broken={"/m/locked.gguf": problem("permission-denied", "it may not be read")}),
    ),
    Case(
        "a-part-is-missing",
        "model-missing",
        BLOCKER,
        "a part of it is not there: split-00002-of-00002.gguf",
        {"models__target": "/m/split-00001-of-00002.gguf"},
    ),
    Case(
        "projector-as-target",
        "model-wrong-kind",
        BLOCKER,
        "mmproj.gguf cannot be the target: it is a projector",
        {"models__target": "/m/mmproj.gguf"},
    ),
    Case(
        "slow-disk",
        "slow-disk",
        HINT,
        "target.gguf lies on a rotating disk (sda)",
        world=world(slow=frozenset({TARGET})),
    ),
    Case(
        "full-disk-of-a-model",
        "disk-full",
        HINT,
        "was its download finished?",
        world=world(full=frozenset({DRAFT})),
    ),
    Case(
        "context-beyond-training",
        "context-beyond-training",
        WARNING,
        "a context of 65536 tokens is more than the 40960",
        {"server__context": 65_536},
        {"a context of 40960": {"server.context": 40_960}},
    ),
]

SERVER_CASES = [
    Case(
        "port-in-use",
        "port-in-use",
        BLOCKER,
        "port 8080 is used by nginx (pid 7)",
        {"server__port": 8080},
        {"use a free port": {"server.port": None}},
        world(ports={8080: problem("port-in-use", "port 8080 is used by nginx (pid 7)")}),
    ),
    Case(
        "no-engine",
        "program-missing",
        BLOCKER,
        "it is not there",
        {},
        {
            "use the embedded engine": {"server.engine": "embedded"},
            "use llama-server in PATH": {"server.engine": "llama-server"},
        },
        world(engines={ENGINE: problem("program-missing", "it is not there")}),
    ),
    Case(
        "bad-workload",
        "workload-invalid",
        BLOCKER,
        "no prompt in it",
        {"workload__prompts": "/p.jsonl"},
        {"use the built-in prompts": {"workload.prompts": None, "workload.tasks": None}},
        world(workloads={"/p.jsonl": problem("workload-invalid", "no prompt in it")}),
    ),
    Case(
        "parallel",
        "parallel",
        WARNING,
        "4 requests may run at a time",
        {"server__parallel": 4},
        {"one slot": {"server.parallel": 1}},
    ),
    Case(
        "parallel-in-args",
        "parallel",
        WARNING,
        "3 requests may run at a time",
        {"server__parallel": None, "server__args": ["-t", "1", "-np", "3"]},
        {"one slot": {"server.args": ["-t", "1"], "server.parallel": 1}},
    ),
    Case(
        "mmproj",
        "mmproj",
        WARNING,
        "an image projector (mmproj) is loaded",
        {"server__args": ["--mmproj", "/m/mmproj.gguf"]},
        {"leave it out": {"server.args": None}},
    ),
    Case(
        "draft-on-cpu",
        "draft-on-cpu",
        WARNING,
        "the target runs on the GPU and the draft does not",
        {"draft__gpu_layers": 0},
        {"put the draft on the GPU too": {"draft.gpu_layers": "auto"}},
    ),
    Case(
        "draft-on-no-device",
        "draft-on-cpu",
        WARNING,
        "the target runs on the GPU and the draft does not",
        {"draft__device": "none", "server__args": ["-ngld", "0"]},
        {
            "put the draft on the GPU too": {
                "server.args": None,
                "draft.gpu_layers": "auto",
                "draft.device": None,
            }
        },
    ),
    Case(
        "gpu-unused",
        "gpu-unused",
        HINT,
        "no layer of the target goes to it",
        {"server__gpu_layers": 0},
        {"let llama-server use the GPU": {"server.gpu_layers": "auto"}},
    ),
    Case(
        "no-device",
        "gpu-unused",
        HINT,
        "no layer of the target goes to it",
        {"server__device": "none"},
        {"let llama-server use the GPU": {"server.device": None}},
    ),
    Case(
        "build-without-gpu",
        "engine-without-gpu",
        WARNING,
        "this llama-server sees no GPU, and the machine has RTX 3090",
        world=world(devices=()),
    ),
    Case(
        "hidden-gpu",
        "engine-without-gpu",
        WARNING,
        "CUDA_VISIBLE_DEVICES=-1 may hide it",
        world=world(devices=(), machine=replace(MACHINE, hidden="CUDA_VISIBLE_DEVICES=-1")),
    ),
]

ARGUMENT_CASES = [
    Case(
        "removed-with-another-name",
        "argument-removed",
        BLOCKER,
        "--no-mmap in server.args was removed",
        {"server__args": ["-t", "1", "--no-mmap"]},
        {
            "say --load-mode none": {"server.args": ["-t", "1", "--load-mode", "none"]},
            "take --no-mmap out": {"server.args": ["-t", "1"]},
        },
    ),
    Case(
        "removed-with-a-key",
        "argument-removed",
        BLOCKER,
        "set speculation.ngram_simple.size_m instead",
        {"server__args": ["--spec-ngram-size-m", "12"]},
        {
            "set speculation.ngram_simple.size_m to 12 instead": {
                "server.args": None,
                "speculation.ngram_simple.size_m": 12,
            },
            "take --spec-ngram-size-m out": {"server.args": None},
        },
    ),
    Case(
        "gone-for-good",
        "argument-removed",
        BLOCKER,
        "--ctx-size-draft in server.args was removed",
        {"server__args": ["--ctx-size-draft", "512", "-t", "1"]},
        {"take --ctx-size-draft out": {"server.args": ["-t", "1"]}},
    ),
    Case(
        "the-profile-s-own",
        "argument-owned",
        BLOCKER,
        "--draft-max is not for server.args: speculation.n_max sets it",
        {"server__args": ["-t", "1", "--draft-max", "8"]},
        {
            "set speculation.n_max to 8 instead": {
                "server.args": ["-t", "1"],
                "speculation.n_max": 8,
            },
            "take --draft-max out": {"server.args": ["-t", "1"]},
        },
    ),
    Case(
        "the-profile-s-type",
        "argument-owned",
        BLOCKER,
        "--spec-type is not for server.args",
        {"server__args": ["--spec-type", "ngram-mod"]},
        {
            "set speculation.type to ngram-mod instead": {
                "server.args": None,
                "speculation.type": "ngram-mod",
            },
            "take --spec-type out": {"server.args": None},
        },
    ),
    Case(
        "the-profile-s-port",
        "argument-owned",
        BLOCKER,
        "--port is not for server.args",
        {"server__args": ["--port", "8081"]},
        {
            "set server.port to 8081 instead": {"server.args": None, "server.port": 8081},
            "take --port out": {"server.args": None},
        },
    ),
    Case(
        "spectui-s-own",
        "argument-owned",
        BLOCKER,
        "--api-key is not for server.args: spectui sets it",
        {"server__args": ["--api-key", "x"]},
        {"take --api-key out": {"server.args": None}},
    ),
    Case(
        "a-model-in-args",
        "argument-owned",
        BLOCKER,
        "-m is not for server.args: models.target sets it",
        {"server__args": ["-m", "x.gguf"]},
        {"take -m out": {"server.args": None}},
    ),
    Case(
        "a-slip",
        "argument-unknown",
        BLOCKER,
        "this llama-server does not know --cahe-type-k",
        {"server__args": ["--cahe-type-k", "q8_0"]},
        {
            "say --cache-type-k": {"server.args": ["--cache-type-k", "q8_0"]},
            "take --cahe-type-k out": {"server.args": None},
        },
    ),
    Case(
        "a-flag-of-nobody",
        "argument-unknown",
        BLOCKER,
        "look it up in llama-server --help",
        {"server__args": ["--xyzzy", "--threads", "1"]},
        {"take --xyzzy out": {"server.args": ["--threads", "1"]}},
    ),
    Case(
        "flash-attention-without-its-value",
        "argument-invalid",
        BLOCKER,
        "-fa in server.args needs a value and takes --threads for it",
        {"server__args": ["-fa", "--threads", "1"]},
        {
            "say -fa on": {"server.args": ["-fa", "on", "--threads", "1"]},
            "take -fa out": {"server.args": ["--threads", "1"]},
        },
    ),
    Case(
        "a-flag-at-the-end",
        "argument-invalid",
        BLOCKER,
        "--threads in server.args needs a value",
        {"server__args": ["--threads"]},
        {"take --threads out": {"server.args": None}},
    ),
    Case(
        "said-twice",
        "set-twice",
        BLOCKER,
        "-c in server.args and server.context set the same thing",
        {"server__args": ["-c", "4096"]},
        {
            "keep server.context": {"server.args": None, "server.context": 16_384},
            "keep -c": {"server.context": None},
        },
    ),
    Case(
        "a-cache-type-of-nobody",
        "cache-type-invalid",
        BLOCKER,
        "q3_0 (server.kv_k) is no type of KV cache that llama-server has",
        {"server__kv_k": "q3_0"},
        {"use q8_0": {"server.kv_k": "q8_0"}},
    ),
    Case(
        "the-fork-s-cache-type",
        "cache-type-invalid",
        BLOCKER,
        "q8_KV (draft.kv_k)",
        {"draft__kv_k": "q8_KV"},
        {"use q8_0": {"draft.kv_k": "q8_0"}},
    ),
    Case(
        "a-small-v-without-flash-attention",
        "cache-type-invalid",
        BLOCKER,
        "a V cache of q8_0 needs flash attention, which is turned off",
        {"server__kv_v": "q8_0", "server__args": ["-fa", "off"]},
        {"leave flash attention on": {"server.args": None}},
    ),
    Case(
        "an-unknown-key",
        "profile-invalid",
        BLOCKER,
        "speculation.nmax: unknown key",
        {"speculation__nmax": 3},
        {"leave speculation.nmax out": {"speculation.nmax": None}},
    ),
    Case(
        "a-secret-in-env",
        "profile-invalid",
        BLOCKER,
        "server.env.HF_TOKEN: a secret does not belong into a profile",
        {"server__env": {"HF_TOKEN": "x"}},
        {"leave server.env.HF_TOKEN out": {"server.env.HF_TOKEN": None}},
    ),
]

AROUND_CASES = [
    Case(
        "config-file",
        "config-file",
        WARNING,
        "/etc/llama.cpp/config.ini sets ctx-size=512 for every llama-server",
        {"server__context": None},
        {"write it into the profile": {"server.context": 512}},
        world(config_files=(OUTSIDE,)),
    ),
    Case(
        "config-file-of-little-weight",
        "config-file",
        HINT,
        "sets log-colors for every llama-server",
        world=world(config_files=(ConfigFile("/c.ini", (Outside("/c.ini", "log-colors", "on"),)),)),
    ),
    Case(
        "broken-config-file",
        "config-file-invalid",
        BLOCKER,
        "/c.ini has a line that cannot be read (line 3), and llama-server stops at it",
        world=world(
            config_files=(ConfigFile("/c.ini", problem="has a line that cannot be read (line 3)"),)
        ),
    ),
    Case(
        "removed-in-a-config-file",
        "argument-removed",
        BLOCKER,
        "take it out there, and set speculation.n_max instead",
        world=world(config_files=(ConfigFile("/c.ini", (Outside("/c.ini", "draft-max", "8"),)),)),
    ),
    Case(
        "variable",
        "environment",
        WARNING,
        "LLAMA_ARG_CACHE_TYPE_K=q4_0 in the environment will change the server's flags",
        {},
        {"write it into the profile": {"server.kv_k": "q4_0"}},
        world(variables=(Outside("", "LLAMA_ARG_CACHE_TYPE_K", "q4_0"),)),
    ),
    Case(
        "variable-of-little-weight",
        "environment",
        HINT,
        "LLAMA_ARG_LOG_COLORS in the environment",
        world=world(variables=(Outside("", "LLAMA_ARG_LOG_COLORS", "on"),)),
    ),
    Case(
        "removed-variable",
        "environment-removed",
        HINT,
        "LLAMA_ARG_DRAFT_MAX is set: llama-server by itself refuses to start with it",
        world=world(variables=(Outside("", "LLAMA_ARG_DRAFT_MAX", "8", passed_on=False),)),
    ),
    Case(
        "variable-kept-from-the-server",
        "environment-ignored",
        HINT,
        "LLAMA_ARG_SPEC_TYPE in the environment is not passed on",
        world=world(variables=(Outside("", "LLAMA_ARG_SPEC_TYPE", "none", passed_on=False),)),
    ),
    Case(
        "variable-that-nobody-reads",
        "environment-unread",
        HINT,
        "today's llama-server reads no LLAMA_ARG_CTX_SIZE_DRAFT",
        world=world(variables=(Outside("", "LLAMA_ARG_CTX_SIZE_DRAFT", "512"),)),
    ),
    Case(
        "nowhere-to-write",
        "state-unwritable",
        WARNING,
        "records go to /elsewhere: /state is read-only",
        world=world(
            state=Place("/elsewhere", 500 * GIB, "records go to /elsewhere: /state is read-only")
        ),
    ),
    Case(
        "little-room",
        "disk-full",
        WARNING,
        "the disk of /state has 500 MiB left",
        world=world(state=Place("/state", 500 << 20)),
    ),
    Case(
        "no-room",
        "disk-full",
        BLOCKER,
        "the disk of /state has 3 MiB left",
        world=world(state=Place("/state", 3 << 20)),
    ),
    Case(
        "root",
        "sudo",
        HINT,
        "running as root for ann",
        world=world(machine=replace(MACHINE, sudo="ann")),
    ),
]

CASES = [
    *TYPE_CASES,
    *KNOB_CASES,
    *PAIR_CASES,
    *FILE_CASES,
    *SERVER_CASES,
    *ARGUMENT_CASES,
    *AROUND_CASES,
]


def look(data: dict[str, object] | None, around: World = WORLD) -> Preflight:
    return preflight(around.facts(data))


def of_code(found: Preflight, code: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.code == code]


def the(case: Case, found: Preflight) -> list[Finding]:
    """Return the case's finding, which the code alone need not tell."""
    return [one for one in of_code(found, case.code) if case.words in f"{one.what}; {one.advice}"]


def fixed(data: dict[str, object], fix: Fix) -> dict[str, object]:
    for path, value in fix.changes:
        data = with_value(data, path, value)
    return data


def test_nothing_is_wrong_with_a_good_profile():
    found = look(profile())
    assert found.findings == ()
    assert found.verdict == "nothing found that would fail"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_wrong_is_found_with_its_weight_and_its_ways_out(case):
    [finding] = the(case, look(case.profile, case.world))
    assert finding.severity is case.severity
    assert {fix.label: dict(fix.changes) for fix in finding.fixes} == case.fixes
    assert not finding.what.endswith(".")


@pytest.mark.parametrize(
    ("case", "label"),
    [(case, label) for case in CASES for label in case.fixes],
    ids=lambda value: value.name if isinstance(value, Case) else value.replace(" ", "-"),
)
def test_a_fix_mends_what_it_is_for_and_breaks_nothing(case, label):
    before = look(case.profile, case.world)
    [finding] = the(case, before)
    fix = next(fix for fix in finding.fixes if fix.label == label)
    mended = fixed(case.profile, fix)
    after = look(mended, case.world)
    assert not the(case, after)
    # another trouble may come to light that was there before, but none is made
    made = {one.code for one in after.blockers} - {one.code for one in before.blockers}
    allowed = {"draft-wrong-kind"} if case.name == "two-draft-models" else set()
    assert made <= allowed
    assert refusal_of(mended) is None


def test_every_case_has_a_way_out_or_says_what_to_do():
    for case in CASES:
        for finding in look(case.profile, case.world).findings:
            said = finding.fixes or finding.advice
            assert said or finding.code == "environment-ignored", finding


def test_every_finding_of_preflight_has_a_case():
    folder = Path(domain.__file__).parent
    named = {
        node.args[0].value
        for path in folder.glob("checks_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding"
        if isinstance(node.args[0], ast.Constant)
    }
    assert len(named) > 30
    assert named == {case.code for case in CASES if case.code in named}


# -- what is no trouble ----------------------------------------------------------------------------

LOOSE = Outside("", "LLAMA_ARG_CTX_SIZE", "512")
HERE = world(variables=(LOOSE,))
OLD = world(dialect=help_of(fake_help.OF_2024))
FORK = world(dialect=replace(WORLD.dialect, name="ik_llama.cpp"))


@pytest.mark.parametrize(
    ("code", "changes", "around"),
    [
        ("draft-unused", {"models__draft": None, "speculation__type": None}, WORLD),
        ("draft-missing", {"models__draft": None, "speculation__type": "ngram-mod"}, WORLD),
        ("draft-missing", {"models__draft": None, "speculation__type": "draft-mtp"}, WORLD),
        ("mtp-missing", {"models": {"target": "/m/heads.gguf"}}, WORLD),
        ("argument-invalid", {"speculation__n_max": 1}, WORLD),
        ("argument-invalid", {"speculation__n_min": 4}, WORLD),
        ("argument-invalid", {"speculation__p_min": 0}, WORLD),
        ("argument-invalid", {"server__args": ["-fa", "--threads", "1"]}, OLD),
        ("argument-invalid", {"server__args": ["-fa", "on", "--threads", "1"]}, WORLD),
        ("argument-invalid", {"server__args": ["--threads", "-1"]}, WORLD),
        ("p-min-too-high", {"speculation__p_min": 0.95}, WORLD),
        (
            "p-min-too-high",
            {"speculation": {"type": "ngram-mod", "p_min": 1.0}, "models__draft": None},
            WORLD,
        ),
        (
            "n-max-clamped",
            {
                "models__draft": "/m/dflash.gguf",
                "speculation": {"type": "draft-dflash", "n_max": 7},
            },
            WORLD,
        ),
        ("parallel", {"server__parallel": None}, WORLD),
        ("mmproj", {"speculation__type": "none", "server__args": ["-mm", "/m/mmproj.gguf"]}, WORLD),
        ("context-beyond-training", {"server__context": 40_960}, WORLD),
        ("context-beyond-training", {"server__context": 81_920, "server__parallel": 2}, WORLD),
        ("draft-on-cpu", {"draft__gpu_layers": 0, "server__gpu_layers": 0}, WORLD),
        ("draft-on-cpu", {"draft__gpu_layers": 0, "speculation__type": "none"}, WORLD),
        ("draft-on-cpu", {"draft__gpu_layers": 0}, world(devices=())),
        ("gpu-unused", {"server__gpu_layers": 1}, WORLD),
        ("engine-without-gpu", {}, world(devices=None)),
        ("engine-without-gpu", {"server__engine": "embedded"}, world(devices=())),
        ("argument-unknown", {"server__args": ["--predict", "--xyzzy"]}, WORLD),
        ("argument-unknown", {"server__args": ["--log_colors", "on"]}, WORLD),
        ("set-twice", {"server__context": None, "server__args": ["-c", "4096"]}, WORLD),
        ("cache-type-invalid", {"server__kv_k": "q8_KV"}, FORK),
        ("cache-type-invalid", {"server__kv_k": "q8_0", "server__args": ["-fa", "off"]}, WORLD),
        # the profile has the last word over what is set outside
        ("environment", {}, HERE),
        ("environment", {"server__context": None, "server__args": ["-c", "1024"]}, HERE),
        ("config-file", {}, world(config_files=(OUTSIDE,))),
        # and the embedded engine looks at nothing outside
        (
            "environment",
            {"server__engine": "embedded", "server__context": None},
            HERE,
        ),
        (
            "config-file",
            {"server__engine": "embedded", "server__context": None},
            world(config_files=(OUTSIDE,)),
        ),
        ("disk-full", {}, world(state=Place("/state", None))),
    ],
)
def test_what_is_in_order_is_not_found(code, changes, around):
    found = look(profile(**changes), around)
    assert not of_code(found, code)


def test_the_worst_comes_first_and_the_same_is_said_once():
    data = profile(server__parallel=4, speculation__n_max=0, server__port=80)
    around = world(
        slow=frozenset({TARGET, DRAFT}),
        full=frozenset({TARGET}),
        ports={80: problem("port-privileged", "port 80 is for privileged programs")},
    )
    found = look(data, around)
    levels = [finding.severity for finding in found.findings]
    assert levels == sorted(levels, key=list(Severity).index)
    assert [finding.code for finding in found.blockers] == ["port-privileged", "argument-invalid"]
    assert found.verdict == "2 things would fail, 1 to look at, 3 hints"


def test_two_files_that_say_the_same_are_one_finding():
    around = world(full=frozenset({TARGET}))
    assert len(of_code(look(profile(models__draft=TARGET), around), "disk-full")) == 1


def test_text_from_outside_is_harmless():
    evil = "x\x1b[2J\u202e\n[bold]y"
    around = world(
        models={TARGET: replace(MODELS[0], missing=(evil,))},
        broken={DRAFT: problem("model-invalid", evil)},
        config_files=(ConfigFile(evil, (Outside(evil, evil, evil),)),),
        variables=(Outside("", f"LLAMA_ARG_{evil}", evil),),
        machine=replace(MACHINE, sudo=evil, hidden=evil, devices=(replace(GPU, what=evil),)),
        devices=(),
    )
    data = profile(server__args=[f"--{evil}"], server__kv_k=evil, speculation__type=evil)
    found = look({**data, evil: 1}, around)
    assert len(found.findings) > 6
    for finding in found.findings:
        for text in (finding.what, finding.advice, *(fix.label for fix in finding.fixes)):
            assert text.isprintable(), text


# -- without a profile -----------------------------------------------------------------------------


def test_without_a_profile_only_the_machine_is_looked_at():
    found = look(None)
    assert (found.questions, found.findings, found.fit) == ((), (), None)
    around = world(variables=(LOOSE,), config_files=(OUTSIDE,))
    assert {one.code for one in look(None, around).findings} == {"environment", "config-file"}


def test_one_engine_is_enough_and_none_is_too_few():
    missing = problem("program-missing", "it is not there", "install it")
    assert not look(None, world(engines={"llama-server": missing})).findings
    neither = world(engines={"llama-server": missing, "embedded": missing})
    [finding] = look(None, neither).findings
    assert (finding.code, finding.severity) == ("program-missing", BLOCKER)
    assert finding.advice == "install it"


# -- the five questions ----------------------------------------------------------------------------


def answer(name: str, data: dict[str, object], around: World = WORLD) -> tuple[Reply, str]:
    found = look(data, around)
    assert [question.id for question in found.questions] == [
        "fits",
        "predictable",
        "single",
        "draft",
        "measured",
    ]
    one = next(question for question in found.questions if question.id == name)
    assert not one.why.endswith(".")
    return one.answer, one.why


@pytest.mark.parametrize(
    ("tasks", "reply", "words"),
    [
        (["code", "rewrite"], Reply.YES, "code and rewrite mostly repeat or follow a pattern"),
        (["creative"], Reply.NO, "creative can go on in many ways"),
        (["code", "creative"], Reply.UNKNOWN, "code is, creative is not"),
        (["science"], Reply.UNKNOWN, "science lies between"),
        (None, Reply.UNKNOWN, "look at each task by itself"),
        (["nonsense"], Reply.UNKNOWN, "look at each task by itself"),
    ],
)
def test_whether_the_task_is_predictable(tasks, reply, words):
    found, why = answer("predictable", profile(workload__tasks=tasks))
    assert found is reply
    assert words in why


def test_of_a_person_s_own_prompts_only_measuring_tells():
    found, why = answer("predictable", profile(workload__prompts="/p.jsonl"))
    assert found is Reply.UNKNOWN
    assert "measure" in why


@pytest.mark.parametrize(
    ("changes", "reply", "words"),
    [
        ({}, Reply.YES, "one slot"),
        ({"server__parallel": None}, Reply.YES, "llama-server's own slots share one cache"),
        ({"server__parallel": 4}, Reply.NO, "parallel is 4"),
        ({"server__parallel": None, "server__args": ["-np", "2"]}, Reply.NO, "parallel is 2"),
    ],
)
def test_whether_one_request_at_a_time_is_acceptable(changes, reply, words):
    found, why = answer("single", profile(**changes))
    assert found is reply
    assert words in why


@pytest.mark.parametrize(
    ("changes", "reply", "words"),
    [
        ({}, Reply.YES, "draft.gguf, 8.2 times smaller (in the usual good range)"),
        ({"models__draft": "/m/eagle3.gguf", "speculation__type": "draft-eagle3"}, Reply.YES, "ea"),
        (
            {"models__draft": "/other/draft.gguf"},
            Reply.NO,
            "draft.gguf cannot draft for this target: special tokens",
        ),
        ({"models__draft": "/other/draft.gguf"}, Reply.NO, "; dflash.gguf would fit"),
        ({"models__draft": "/m/nope.gguf"}, Reply.NO, "nope.gguf cannot be read"),
        (
            {"models__target": "/m/heads.gguf", "models__draft": None, "speculation__type": None},
            Reply.YES,
            "the target drafts by itself: it has 1 MTP layer",
        ),
        (
            {"models__draft": None, "speculation__type": "ngram-mod"},
            Reply.YES,
            "ngram-mod drafts from the text and needs none",
        ),
        ({"models__draft": None, "speculation__type": None}, Reply.YES, "dflash.gguf fits"),
        ({"models__target": "/m/nope.gguf"}, Reply.UNKNOWN, "header could not be read"),
    ],
)
def test_whether_there_is_a_fitting_draft(changes, reply, words):
    found, why = answer("draft", profile(**changes))
    assert found is reply
    assert words in why


def test_where_nothing_fits_it_says_where_it_looked():
    alone = world(models={TARGET: MODELS[0]})
    data = profile(models__draft=None, speculation__type=None)
    found, why = answer("draft", data, alone)
    assert found is Reply.NO
    assert "no model lies beside it" in why
    other = model("/m/other.gguf", 1e9, vocabulary=MODELS[6].vocabulary)
    unfit = world(models={TARGET: MODELS[0], other.path: other})
    assert "the 1 model beside it does not fit" in answer("draft", data, unfit)[1]


def test_whether_it_was_measured():
    assert answer("measured", profile())[0] is Reply.NO
    record = Measured("2026-11-30T12:00:00+00:00", "n_max 4 is 1.31× faster", "/s.jsonl")
    found, why = answer("measured", profile(), world(measured=record))
    assert found is Reply.YES
    assert why == "n_max 4 is 1.31× faster, on 2026-11-30"
    evidence = {"speedup": 1.25, "date": "2026-11-29", "hardware": "RTX 3090"}
    found, why = answer("measured", profile(evidence=evidence))
    assert found is Reply.YES
    assert "1.25 times the baseline's speed on 2026-11-29, RTX 3090" in why


def test_without_a_header_it_does_not_guess_what_fits():
    found, why = answer("fits", profile(models__target="/m/nope.gguf"))
    assert found is Reply.UNKNOWN
    assert "could not be read" in why
    assert look(profile(models__target="/m/nope.gguf")).fit is None
