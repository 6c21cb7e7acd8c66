"""Which model can draft for which, by llama.cpp's own rules, and which one to try first.

The rule for plain drafts is ``common_speculative_are_compatible`` in llama.cpp's
``common/speculative.cpp``: same kind of tokenizer, same begin and end tokens where they are added,
sizes at most 128 apart, and all common tokens from id 5 on equal. Drafts that are made for one
target (EAGLE-3, DFlash, DSpark, MTP) have no such check there: llama.cpp stops with an assertion,
or drafts nonsense, where the hidden size, the layers or the vocabulary are another target's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from types import MappingProxyType
from typing import Final

from spectui.domain.models import (
    BrokenModel,
    ModelFacts,
    ModelKind,
    SearchedFolder,
    TokenDifference,
)
from spectui.domain.text import clean
from spectui.domain.vocabularies import (
    families_part,
    sizes_part,
    tokens_part,
    vocabularies_part,
)

GOOD_RATIO: Final = (5.0, 10.0)
"""How many times larger a target usually is than a draft model that helps it."""
LEAST_RATIO: Final = 2.0
"""Below this a draft costs nearly what it saves, and is not suggested."""
SMALL_TARGET: Final = 2_000_000_000
"""Parameters up to which a target is so quick that drafting gains little."""
NGRAM: Final = "ngram-mod"
"""What to draft with where no model fits."""

TYPE_OF: Final[Mapping[ModelKind, str]] = MappingProxyType(
    {
        ModelKind.MODEL: "draft-simple",
        ModelKind.MTP: "draft-mtp",
        ModelKind.EAGLE3: "draft-eagle3",
        ModelKind.DFLASH: "draft-dflash",
        ModelKind.DSPARK: "draft-dspark",
    }
)
"""The type that a file drafts with when it is given as the draft model."""

KIND_NAMES: Final[Mapping[ModelKind, str]] = MappingProxyType(
    {
        ModelKind.MODEL: "model",
        ModelKind.MTP: "MTP sidecar",
        ModelKind.EAGLE3: "EAGLE-3 draft",
        ModelKind.DFLASH: "DFlash draft",
        ModelKind.DSPARK: "DSpark draft",
        ModelKind.PROJECTOR: "projector (mmproj)",
        ModelKind.OTHER: "file of another kind",
    }
)


READ_INSIDE: Final = frozenset(
    {
        "bailingmoe3",
        "deepseek4",
        "gemma4",
        "gpt-oss",
        "hunyuan-dense",
        "hunyuan_vl",
        "lfm2",
        "lfm2moe",
        "llama",
        "mimo2",
        "minimax-01",
        "minimax-m2",
        "muse-glimmer",
        "nanbeige",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen4exp",
    }
)
"""Architectures of which llama.cpp hands out inner hidden states (``t_layer_inp``), in b11434.

With every other target it stops at the first request of an EAGLE-3, DFlash or DSpark draft. The
list grows with each build, so a target that is not in it is doubted, not refused.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file held against a target.

    ``type`` is how it would draft ("draft-simple", …), ``why_not`` why it cannot ("" if it can),
    ``ratio`` how many times larger the target is, in parameters that one token goes through, and
    ``remark`` what to expect.
    """

    facts: ModelFacts
    type: str
    why_not: str = ""
    ratio: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to draft with first. ``draft`` is a file, or "" where none is needed.

    ``type`` is "" where the target cannot be one. ``why`` is one sentence without a full stop.
    """

    type: str
    draft: str
    why: str


@dataclass(frozen=True, slots=True)
class Survey:
    """A target and what was found: ``fitting`` best first, ``unfit`` with why not.

    ``broken`` are files that could not be read, ``searched`` the folders that were looked in.
    """

    target: ModelFacts
    fitting: tuple[Candidate, ...]
    unfit: tuple[Candidate, ...]
    suggestion: Suggestion
    broken: tuple[BrokenModel, ...] = ()
    searched: tuple[SearchedFolder, ...] = ()


def why_no_target(facts: ModelFacts) -> str:
    """Return why a file cannot be the target, "" if it can."""
    if facts.kind is not ModelKind.MODEL:
        return f"it is {_what(facts)}, no model that answers by itself"
    return f"{facts.missing[0]} is missing" if facts.missing else ""


def why_not(
    target: ModelFacts, draft: ModelFacts, difference: TokenDifference | None = None
) -> str:
    """Return why ``draft`` cannot draft for ``target``, "" if it can.

    ``difference`` is the first of the common tokens that differs, None if none does; it matters
    only where ``needs_tokens`` says so. A model may draft for itself, and gains nothing by it.
    """
    if unusable := why_no_target(target):
        return f"the target cannot be one: {unusable}"
    if draft.kind in {ModelKind.PROJECTOR, ModelKind.OTHER}:
        return f"it is {_what(draft)}, no draft"
    if draft.missing:
        return f"{clean(draft.missing[0], limit=120)} is missing"
    if draft.kind is ModelKind.MODEL:
        reason = vocabularies_part(target.vocabulary, draft.vocabulary)
        return reason or tokens_part(difference)
    return _made_for_another(target, draft)


def needs_tokens(target: ModelFacts, draft: ModelFacts) -> bool:
    """Return whether the tokens themselves decide: all else fits, and it is a plain model."""
    return (
        draft.kind is ModelKind.MODEL and draft.path != target.path and not why_not(target, draft)
    )


def judge(
    target: ModelFacts, draft: ModelFacts, difference: TokenDifference | None = None
) -> Candidate:
    """Hold one file against a target."""
    ratio = _cost(target) / _cost(draft) if _cost(draft) else None
    reason = why_not(target, draft, difference)
    return Candidate(
        draft,
        TYPE_OF.get(draft.kind, ""),
        reason,
        ratio,
        "" if reason else _remark(target, draft, ratio),
    )


def candidates(
    target: ModelFacts,
    others: Iterable[ModelFacts],
    differences: Mapping[str, TokenDifference] = MappingProxyType({}),
) -> tuple[Candidate, ...]:
    """Hold all ``others`` against a target, those that fit first and the best of them on top.

    ``differences`` holds the first differing token by the draft's path. The target itself is left
    out. Made for this target comes before any plain model; of those the one whose size is nearest
    to the good range, then the smaller file; last what llama.cpp may not serve with this target.
    """
    judged = (
        judge(target, other, differences.get(other.path))
        for other in others
        if other.path != target.path
    )
    return tuple(sorted(judged, key=lambda one: _rank(target, one)))


def suggest(target: ModelFacts, found: Sequence[Candidate]) -> Suggestion:
    """Suggest what to draft with: own MTP layers, a draft made for it, a draft model, or n-grams.

    ``found`` is what ``candidates`` returned.
    """
    if unusable := why_no_target(target):
        return Suggestion("", "", f"this file cannot be a target: {unusable}")
    small = ""
    if _cost(target) <= SMALL_TARGET:
        active = " active" if _cost(target) < target.parameters else ""
        small = f"; a target of 2 B{active} parameters or fewer gains little, so measure it"
    if target.mtp_layers:
        layers = "layer" if target.mtp_layers == 1 else "layers"
        why = f"the model has {target.mtp_layers} MTP {layers} and drafts without a second model"
        return Suggestion("draft-mtp", "", why + small)
    fitting = [one for one in found if not one.why_not]
    for one in fitting:
        if _doubted(target, one.facts):
            continue
        name = clean(file_name(one.facts.path), limit=80)
        if one.facts.kind is not ModelKind.MODEL:
            why = f"{name} is an {KIND_NAMES[one.facts.kind]} made for such a target"
            return Suggestion(one.type, one.facts.path, why.replace(" an D", " a D") + small)
        if one.ratio is not None and one.ratio >= LEAST_RATIO:
            why = f"{name} has the same vocabulary and is {one.ratio:.1f} times smaller"
            return Suggestion(one.type, one.facts.path, why + small)
    none = "nothing that fits promises to gain anything" if fitting else "no draft fits"
    why = f"{none}; n-grams need no model and help where an answer repeats its prompt, as in code"
    return Suggestion(NGRAM, "", why)


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.replace("\\", "/").rpartition("/")[2]


def _what(facts: ModelFacts) -> str:
    if facts.kind is ModelKind.OTHER and facts.detail:
        return facts.detail
    name = KIND_NAMES[facts.kind]
    return f"{'an' if name[0] in 'EM' else 'a'} {name}"


def _made_for_another(target: ModelFacts, draft: ModelFacts) -> str:
    """Return why a draft that is made for one target is not made for this one."""
    if draft.kind is ModelKind.MTP:
        reason = _heads_of_another(target, draft)
    else:
        reason = _reads_another(target, draft)
    if reason:
        return f"made for another target: {reason}"
    if not draft.vocabulary.model or not target.vocabulary.model:
        return ""
    if families := families_part(target.vocabulary, draft.vocabulary):
        return f"made for another target: its vocabulary is {families}"
    if sizes := sizes_part(target.vocabulary, draft.vocabulary):
        return f"made for another target: {sizes}"
    return ""


def _reads_another(target: ModelFacts, draft: ModelFacts) -> str:
    """Return what of the target's hidden states an EAGLE-3, DFlash or DSpark draft would miss."""
    if draft.kind is ModelKind.EAGLE3 and len(draft.target_layers) != 3:
        return f"it reads {len(draft.target_layers)} layers, and llama.cpp wants three"
    if not draft.target_layers:
        return "it does not say which layers it reads"
    made_for = draft.target_embedding or draft.embedding
    if made_for != target.embedding:
        return f"it reads a hidden size of {made_for}, this one's is {target.embedding}"
    deepest = max(draft.target_layers)
    if target.layers is not None and deepest > target.layers:
        return f"it reads layer {deepest}, and this one has {target.layers}"
    if draft.borrows and draft.embedding != target.embedding:
        return (
            f"it borrows the target's embedding of {draft.embedding}, "
            f"and this one's is {target.embedding}"
        )
    return ""


def _doubted(target: ModelFacts, draft: ModelFacts) -> bool:
    """Return whether llama.cpp is not known to hand a draft what it reads of this target."""
    reads = draft.kind in {ModelKind.EAGLE3, ModelKind.DFLASH, ModelKind.DSPARK}
    return reads and target.architecture not in READ_INSIDE


def _heads_of_another(target: ModelFacts, draft: ModelFacts) -> str:
    assistant = draft.architecture == f"{target.architecture}-assistant"
    if draft.architecture != target.architecture and not assistant:
        return (
            f"its architecture is {clean(draft.architecture, limit=40)}, "
            f"this one's {clean(target.architecture, limit=40)}"
        )
    its, ours = (one.embedding_out or one.embedding for one in (draft, target))
    return "" if its == ours else f"it reads a hidden size of {its}, this one's is {ours}"


def _cost(facts: ModelFacts) -> int:
    """Return the parameters that a token costs: few in a mixture of experts."""
    return facts.active or facts.parameters


def _remark(target: ModelFacts, draft: ModelFacts, ratio: float | None) -> str:
    """Return what to expect of a draft that fits."""
    if draft.path == target.path:
        return "the target itself: it gains nothing"
    if _doubted(target, draft):
        architecture = clean(target.architecture, limit=40) or "nameless"
        return f"llama-server may stop: not every build shows a draft the inside of {architecture}"
    if draft.kind is not ModelKind.MODEL:
        if draft.kind is ModelKind.DSPARK and not draft.confidence:
            return "made for such a target; p_min must be 0"
        longest = draft.longest_draft
        limit = "" if longest is None else f"; drafts up to {longest} tokens"
        return f"made for such a target{limit}"
    low, high = GOOD_RATIO
    if ratio is None:
        return ""
    if ratio < 1:
        return "larger than the target: it gains nothing"
    if ratio < LEAST_RATIO:
        return "about as large as the target: it gains nothing"
    if ratio < low:
        return "rather large: it may cost more than it gains"
    if ratio > high:
        return "rather small: quick, but fewer drafts may be accepted"
    return "in the usual good range"


def _rank(target: ModelFacts, one: Candidate) -> tuple[int, float, int, str]:
    if one.why_not:
        return 4, 0.0, 0, one.facts.path
    if _doubted(target, one.facts):
        return 3, 0.0, one.facts.size, one.facts.path
    if one.facts.kind is not ModelKind.MODEL:
        return (0 if one.facts.kind is ModelKind.MTP else 1), 0.0, one.facts.size, one.facts.path
    low, high = GOOD_RATIO
    ratio = one.ratio or 0.01
    off = log(low / ratio) if ratio < low else max(0.0, log(ratio / high))
    if ratio < LEAST_RATIO:
        off += 100  # behind even the tiniest
    return 2, round(off, 6), one.facts.size, one.facts.path
