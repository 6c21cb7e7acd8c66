"""Whether two vocabularies match, by llama.cpp's rule, and what of them does not.

The rule is ``common_speculative_are_compatible`` in llama.cpp's ``common/speculative.cpp``; what a
file leaves out is filled in as ``llama-vocab.cpp`` does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spectui.domain.models import TokenDifference, Vocabulary
from spectui.domain.text import clean

MAX_SIZE_DIFFERENCE: Final = 128
"""Tokens by which two vocabularies may differ in size."""

_FAMILIES: Final = {
    "llama": "SPM",
    "bert": "WPM",
    "gpt2": "BPE",
    "hybriddna": "BPE",
    "whitespace": "BPE",
    "gemma4": "BPE",
    "t5": "UGM",
    "rwkv": "RWKV",
    "plamo2": "PLaMo2",
    "test": "TEST",
}
_BEGINS: Final = frozenset(
    {
        "llama3",
        "llama-v3",
        "llama-bpe",
        "falcon3",
        "falcon-h1",
        "pixtral",
        "midm-2.0",
        "lfm2",
        "jina-v5-nano",
        "tekken",
        "chameleon",
    }
)
"""BPE splitting rules whose models begin a text with a token although no key says so."""
_ALWAYS_BEGINS: Final = frozenset({"gemma4", "granite-embed-multi-311m"})
"""Splitting rules whose models begin a text with a token even where a key says they do not."""
_NO_BEGIN: Final = frozenset({"chatglm-bpe", "glm4", "glm5"})


def _family(vocabulary: Vocabulary) -> str:
    return _FAMILIES.get(vocabulary.model, "")


def _named(vocabulary: Vocabulary) -> str:
    kind = clean(vocabulary.model, limit=40)
    return f"{kind} ({family})" if (family := _family(vocabulary)) else kind


@dataclass(frozen=True, slots=True)
class _Specials:
    """What llama.cpp makes of a vocabulary's begin and end tokens."""

    add_bos: bool
    bos: int | None
    add_eos: bool
    eos: int | None


def _specials(vocabulary: Vocabulary) -> _Specials:
    """Return the begin and end tokens with llama.cpp's defaults filled in.

    An id beyond the vocabulary counts as none, or where the file names it, is passed over.
    """
    bos: int | None
    eos: int | None
    add_bos, add_eos = False, False
    match _family(vocabulary):
        case "SPM":
            bos, eos, add_bos = 1, 2, True
        case "WPM":
            bos, eos, add_bos = 101, None, True
        case "BPE" if vocabulary.model == "gemma4":
            bos, eos = None, None
        case "BPE":
            bos, eos, add_bos = 11, 11, vocabulary.pre in _BEGINS
            bos = None if vocabulary.pre in _NO_BEGIN else bos
        case "UGM":
            bos, eos, add_eos = None, 1, True
        case "PLaMo2":
            bos, eos = 1, 2
        case _:
            bos, eos = None, None
    add_bos = add_bos if vocabulary.add_bos is None else vocabulary.add_bos
    # the gemma4 tokenizer brings a rule of its own along
    splits = vocabulary.model if vocabulary.model == "gemma4" else vocabulary.pre
    return _Specials(
        add_bos or (_family(vocabulary) == "BPE" and splits in _ALWAYS_BEGINS),
        _id(vocabulary.bos, bos, vocabulary.size),
        add_eos if vocabulary.add_eos is None else vocabulary.add_eos,
        _id(vocabulary.eos, eos, vocabulary.size),
    )


def _id(named: int | None, default: int | None, size: int) -> int | None:
    if named is not None and named < size:
        return named
    return default if default is not None and default < size else None


def vocabularies_part(target: Vocabulary, draft: Vocabulary) -> str:
    """Return why two vocabularies do not match, as far as their headers tell."""
    if not draft.model or draft.model in {"none", "no_vocab"}:
        return "it has no vocabulary of its own"
    if families := families_part(target, draft):
        return f"its vocabulary is of another family: {families}"
    ours, its = _specials(target), _specials(draft)
    for name, (added, token), (its_added, its_token) in (
        ("begin", (ours.add_bos, ours.bos), (its.add_bos, its.bos)),
        ("end", (ours.add_eos, ours.eos), (its.add_eos, its.eos)),
    ):
        if added != its_added:
            does, not_ = ("it", "the target") if its_added else ("the target", "it")
            return f"special tokens: {does} adds one that {name}s a text, {not_} does not"
        if added and token != its_token:
            return (
                f"special tokens: it {name}s a text with token {_shown(its_token)}, "
                f"the target with {_shown(token)}"
            )
    return sizes_part(target, draft)


def families_part(target: Vocabulary, draft: Vocabulary) -> str:
    """Return of which kinds two tokenizers are, "" if they are of one."""
    if (_family(target) or target.model) == (_family(draft) or draft.model):
        return ""
    return f"{_named(draft)}, the target's {_named(target)}"


def sizes_part(target: Vocabulary, draft: Vocabulary) -> str:
    """Return how many tokens two vocabularies have, "" if they are near enough."""
    if abs(target.size - draft.size) <= MAX_SIZE_DIFFERENCE:
        return ""
    return (
        f"its vocabulary has {draft.size:,} tokens, the target's {target.size:,} "
        f"(at most {MAX_SIZE_DIFFERENCE} may be between them)"
    )


def _shown(token: int | None) -> str:
    return "none" if token is None else str(token)


def tokens_part(difference: TokenDifference | None) -> str:
    """Return which token differs, "" if none does."""
    if difference is None:
        return ""
    its, ours = (clean(text, limit=24) for text in (difference.draft, difference.target))
    return f"token {difference.id} is “{its}” in its vocabulary and “{ours}” in the target's"
