"""Whether two vocabularies match: what their files say, and what llama-server says of them.

Only draft-simple compares them. What it refuses, ``why_not`` must explain, and what it takes,
``why_not`` must not refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from server import serving

pytestmark = pytest.mark.real
pytest.importorskip("gguf")

from binary import find_binary  # noqa: E402
from tiny_models import VOCABULARY, write_draft  # noqa: E402  (it needs gguf)

from spectui.adapters.gguf_file import first_difference, read_model  # noqa: E402
from spectui.domain.pairing import needs_tokens, why_not  # noqa: E402

REFUSED = "the target and draft vocabs are not compatible"
END = len(VOCABULARY) - 4


def changed(*tokens):
    """Return the vocabulary with (id, text) replaced."""
    words = [*VOCABULARY]
    for number, word in tokens:
        words[number] = word
    return words


def longer(more):
    return [*VOCABULARY, *(f"more{number}" for number in range(more))]


SENTENCE_PIECE = {
    "model": "llama",
    "pre": "default",
    "tokens": ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "b"],
    "token_type": [2, 3, 3, *[6] * 256, 1, 1],
    "scores": [0.0] * len(VOCABULARY),
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two vocabularies; ``reason`` is a part of why they do not match, empty where they do."""

    name: str
    reason: str = ""
    target: Mapping[str, object] = field(default_factory=dict)
    draft: Mapping[str, object] = field(default_factory=dict)


def begins(token):
    return {"add_bos_token": True, "bos_token_id": token}


def ends(token):
    return {"add_eos_token": True, "eos_token_id": token}


NO_BOS = {"add_bos_token": None, "bos_token_id": None}
PAIRS = [
    Pair("alike"),
    Pair("token 4 differs", draft={"tokens": changed((4, "four"))}),
    Pair("token 5 differs", "token 5 ", draft={"tokens": changed((5, "five"))}),
    Pair("the last differs", "token 260", draft={"tokens": changed((260, "last"))}),
    Pair("only what is not common differs", draft={"tokens": longer(7)}),
    Pair("128 more", draft={"tokens": longer(128)}),
    Pair("129 more", "has 390 tokens", draft={"tokens": longer(129)}),
    Pair("128 fewer", target={"tokens": longer(128)}),
    Pair("129 fewer", "has 261 tokens", target={"tokens": longer(129)}),
    Pair(
        "an empty token is called by its number",
        target={"tokens": changed((100, ""))},
        draft={"tokens": changed((100, "[EMPTY_100]"))},
    ),
    Pair("an empty token", "token 100", draft={"tokens": changed((100, ""))}),
    Pair("a zero byte ends a token", draft={"tokens": changed((100, "d\0rest"))}),
    Pair("a zero byte first", "token 100", draft={"tokens": changed((100, "\0d"))}),
    Pair("only the draft begins", "it adds one that begins", draft=begins(END)),
    Pair("only the target begins", "the target adds one that begins", target=begins(END)),
    Pair("both begin alike", target=begins(END), draft=begins(END)),
    Pair("both begin otherwise", "begins a text with token 7", target=begins(END), draft=begins(7)),
    Pair("begin tokens that nobody adds", draft={"bos_token_id": 7}),
    Pair("only the draft ends", "it adds one that ends", draft=ends(END)),
    Pair("both end alike", target=ends(END), draft=ends(END)),
    Pair("both end otherwise", "ends a text with token 7", target=ends(END), draft=ends(7)),
    Pair("end tokens that nobody adds", draft={"eos_token_id": 7}),
    Pair("a begin token past the end is the default", target=begins(11), draft=begins(99_999)),
    Pair(
        "a begin token past the end is not the target's",
        "begins a text with token 11",
        target=begins(END),
        draft=begins(99_999),
    ),
    Pair("no key and an ordinary rule", draft=NO_BOS),
    Pair(
        "no key and a rule that begins",
        "it adds one that begins",
        draft={**NO_BOS, "pre": "llama-bpe"},
    ),
    Pair(
        "a rule that begins with the default",
        target=begins(11),
        draft={**NO_BOS, "pre": "tekken"},
    ),
    Pair("a key against the rule", draft={"pre": "llama-bpe"}),
    Pair("a rule without a begin token", draft={**NO_BOS, "pre": "glm4"}),
    Pair("gemma4 begins whatever its key says", "it adds one", draft={"pre": "gemma4"}),
    Pair("another family", "another family: llama (SPM)", draft=SENTENCE_PIECE),
    Pair("the same other family", target=SENTENCE_PIECE, draft=SENTENCE_PIECE),
    Pair(
        "the other family's begin token is added by default",
        target=SENTENCE_PIECE,
        draft={**SENTENCE_PIECE, "add_bos_token": None},
        reason="it adds one that begins",
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_files_say_what_the_server_says(pair, tmp_path):
    paths = [
        write_draft(
            tmp_path / f"{name}.gguf",
            vocabulary=keys.get("tokens", VOCABULARY),
            tokenizer={key: value for key, value in keys.items() if key != "tokens"},
        )
        for name, keys in (("target", pair.target), ("draft", pair.draft))
    ]
    target, draft = map(read_model, paths)
    difference = first_difference(*paths) if needs_tokens(target, draft) else None
    reason = why_not(target, draft, difference)
    assert pair.reason in reason
    assert bool(pair.reason) == bool(reason)
    binary = find_binary()
    assert binary is not None, "no llama-server: make real builds one"
    log = tmp_path / "server.log"
    words = ["-m", str(paths[0]), "-md", str(paths[1]), "--spec-type", "draft-simple"]
    with serving(binary, *words, log=log) as server:
        speculative = json.loads(server.get("/slots"))[0]["speculative"]
    assert speculative == (not reason)
    assert (REFUSED in log.read_text(encoding="utf-8", errors="replace")) == bool(reason)
