"""llama.cpp's rule for pairs of models, drafts made for one target, ranks and suggestions."""

from dataclasses import replace

import pytest

from spectui.domain.models import ModelFacts, ModelKind, TokenDifference, Vocabulary
from spectui.domain.pairing import (
    candidates,
    judge,
    needs_tokens,
    suggest,
    why_no_target,
    why_not,
)

QWEN = Vocabulary("gpt2", "qwen2", 151_936, bos=151_643, eos=151_645, add_bos=False)
LLAMA = Vocabulary("llama", "default", 32_000, bos=1, eos=2, add_bos=True, add_eos=False)


def facts(path="target.gguf", *, parameters=8e9, vocabulary=QWEN, **more):
    more = {"architecture": "qwen3", "embedding": 4096, "layers": 36, "size": 1000, **more}
    return ModelFacts(path, parameters=int(parameters), vocabulary=vocabulary, **more)


TARGET = facts()
DRAFT = facts("draft.gguf", parameters=1e9, embedding=1024, layers=28)
EAGLE = facts(
    "eagle.gguf",
    kind=ModelKind.EAGLE3,
    architecture="eagle3",
    parameters=4e8,
    target_embedding=4096,
    target_layers=(2, 18, 33),
)
FLASH = facts(
    "flash.gguf",
    kind=ModelKind.DFLASH,
    architecture="dflash",
    parameters=5e8,
    target_layers=(1, 9, 17),
    block_size=16,
)
SIDECAR = facts("mtp.gguf", kind=ModelKind.MTP, parameters=3e8, mtp_layers=1)


def vocabulary_of(**changes):
    return replace(DRAFT, vocabulary=replace(QWEN, **changes))


def test_the_same_vocabulary_fits():
    assert not why_not(TARGET, DRAFT)


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (replace(DRAFT, vocabulary=LLAMA), ["another family", "llama (SPM)", "gpt2 (BPE)"]),
        (vocabulary_of(model="t5"), ["another family", "t5 (UGM)"]),
        (vocabulary_of(model="brand\x1b[31mnew"), ["another family", "brandnew"]),
        (vocabulary_of(model=""), ["no vocabulary"]),
        (vocabulary_of(model="none"), ["no vocabulary"]),
        (vocabulary_of(add_bos=True), ["special tokens", "it adds one that begins a text"]),
        (vocabulary_of(add_eos=True), ["special tokens", "it adds one that ends a text"]),
        (vocabulary_of(size=151_936 - 129), ["151,807 tokens", "151,936", "128"]),
        (vocabulary_of(size=152_065), ["152,065 tokens"]),
        (replace(DRAFT, kind=ModelKind.PROJECTOR), ["a projector (mmproj), no draft"]),
        (replace(DRAFT, kind=ModelKind.OTHER, detail="an adapter (LoRA)"), ["an adapter (LoRA)"]),
        (replace(DRAFT, missing=("draft-00002-of-00003.gguf",)), ["00002-of-00003", "missing"]),
    ],
)
def test_why_a_model_cannot_draft(draft, words):
    reason = why_not(TARGET, draft)
    assert all(word in reason for word in words), reason
    assert "\x1b" not in reason


@pytest.mark.parametrize("size", [151_936 - 128, 151_936 + 128])
def test_vocabularies_may_differ_by_128_tokens(size):
    assert not why_not(TARGET, vocabulary_of(size=size))


def test_the_begin_token_matters_only_where_it_is_added():
    assert not why_not(TARGET, vocabulary_of(bos=7, eos=9))
    adding = facts(vocabulary=LLAMA)
    other = facts("d.gguf", vocabulary=replace(LLAMA, bos=7))
    assert why_not(adding, other) == (
        "special tokens: it begins a text with token 7, the target with 1"
    )


@pytest.mark.parametrize(
    ("says_nothing", "says_it"),
    [
        (Vocabulary("llama", "", 32_000), LLAMA),
        (Vocabulary("gpt2", "llama-bpe", 999), Vocabulary("gpt2", "x", 999, 11, 11, add_bos=True)),
        (Vocabulary("gpt2", "smollm", 999), Vocabulary("gpt2", "x", 999, 5, 6, add_bos=False)),
        (Vocabulary("gpt2", "tekken", 5), Vocabulary("gpt2", "x", 5, None, None, add_bos=True)),
        (Vocabulary("gpt2", "glm4", 999), Vocabulary("gpt2", "x", 999, 3, None, add_bos=False)),
        (
            Vocabulary("gemma4", "", 999, 2, 1, add_bos=False),
            Vocabulary("gpt2", "x", 999, 2, 1, add_bos=True),
        ),
        (
            Vocabulary("gpt2", "gemma4", 999, 2, 1, add_bos=False),
            Vocabulary("gpt2", "x", 999, 2, 1, add_bos=True),
        ),
        (
            Vocabulary("bert", "", 999),
            Vocabulary("bert", "", 999, 101, None, add_bos=True, add_eos=False),
        ),
        (
            Vocabulary("t5", "", 999),
            Vocabulary("t5", "", 999, None, 1, add_bos=False, add_eos=True),
        ),
        (
            Vocabulary("plamo2", "", 999),
            Vocabulary("plamo2", "", 999, 9, 9, add_bos=False, add_eos=False),
        ),
        (
            Vocabulary("rwkv", "", 999),
            Vocabulary("rwkv", "", 999, 4, 4, add_bos=False, add_eos=False),
        ),
        (Vocabulary("llama", "", 32_000, bos=99_999), LLAMA),
    ],
)
def test_what_a_file_leaves_out_is_llama_cpps_default(says_nothing, says_it):
    one, other = facts(vocabulary=says_nothing), facts("d.gguf", vocabulary=says_it)
    assert not why_not(one, other)
    assert not why_not(other, one)


def test_a_differing_token_is_shown_harmless_and_short():
    difference = TokenDifference(1234, "abc", "\x1b[2J" + "x" * 100)
    reason = why_not(TARGET, DRAFT, difference)
    assert reason.startswith("token 1234 is “xxx")
    assert reason.endswith("“abc” in the target's")
    assert len(reason) < 120
    assert "\x1b" not in reason


def test_the_order_of_checks_is_llama_cpps():
    difference = TokenDifference(9, "a", "b")
    draft = vocabulary_of(model="llama", add_bos=True, size=5)
    assert "family" in why_not(TARGET, draft, difference)
    draft = vocabulary_of(add_bos=True, size=5)
    assert "special" in why_not(TARGET, draft, difference)
    draft = vocabulary_of(size=5)
    assert "its vocabulary has 5 tokens" in why_not(TARGET, draft, difference)


def test_a_model_may_draft_for_itself_and_gains_nothing():
    assert not why_not(TARGET, TARGET)
    assert "gains nothing" in judge(TARGET, TARGET).remark


def test_only_plain_models_that_fit_so_far_have_their_tokens_compared():
    assert needs_tokens(TARGET, DRAFT)
    assert not needs_tokens(TARGET, TARGET)
    assert not needs_tokens(TARGET, EAGLE)
    assert not needs_tokens(TARGET, vocabulary_of(size=5))


@pytest.mark.parametrize("draft", [EAGLE, FLASH, SIDECAR], ids=lambda draft: draft.kind)
def test_a_draft_made_for_the_target_fits(draft):
    assert not why_not(TARGET, draft)
    assert judge(TARGET, draft).type == f"draft-{draft.kind}"


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (replace(EAGLE, target_embedding=5120), "hidden size of 5120, this one's is 4096"),
        (replace(EAGLE, target_layers=(2, 18)), "2 layers, and llama.cpp wants three"),
        (replace(EAGLE, target_layers=(2, 18, 61)), "layer 61, and this one has 36"),
        (replace(EAGLE, borrows=True, embedding=2048), "borrows the target's embedding of 2048"),
        (replace(EAGLE, vocabulary=LLAMA), "its vocabulary is llama (SPM)"),
        (replace(EAGLE, vocabulary=replace(QWEN, size=9)), "its vocabulary has 9 tokens"),
        (replace(FLASH, embedding=2048), "hidden size of 2048, this one's is 4096"),
        (replace(FLASH, target_layers=()), "does not say which layers"),
        (replace(SIDECAR, architecture="qwen35"), "architecture is qwen35, this one's qwen3"),
        (replace(SIDECAR, embedding=2048), "hidden size of 2048, this one's is 4096"),
    ],
)
def test_a_draft_made_for_another_target_is_caught(draft, words):
    reason = why_not(TARGET, draft)
    assert reason.startswith("made for another target: ")
    assert words in reason


def test_a_borrowed_embedding_of_the_same_width_is_fine():
    assert not why_not(TARGET, replace(EAGLE, borrows=True))


def test_the_last_layers_output_may_be_read():
    assert not why_not(TARGET, replace(EAGLE, target_layers=(2, 18, 36)))


def test_gemmas_assistant_drafts_for_gemma():
    gemma = facts(architecture="gemma4", embedding=2816)
    assistant = replace(
        SIDECAR, architecture="gemma4-assistant", embedding=1024, embedding_out=2816
    )
    assert not why_not(gemma, assistant)
    assert why_not(TARGET, assistant)


@pytest.mark.parametrize("kind", [kind for kind in ModelKind if kind is not ModelKind.MODEL])
def test_what_is_no_model_is_no_target(kind):
    assert why_no_target(facts(kind=kind))
    assert "target cannot be one" in why_not(facts(kind=kind), DRAFT)
    assert not suggest(facts(kind=kind), ()).type


def test_a_target_with_a_missing_part_is_no_target():
    assert why_no_target(facts(missing=("x-00002-of-00002.gguf",))) == (
        "x-00002-of-00002.gguf is missing"
    )


def order(*others, target=TARGET, differences=None):
    return [one.facts.path for one in candidates(target, others, differences or {})]


def sized(path, parameters, size=1000):
    return replace(DRAFT, path=path, parameters=int(parameters), size=size)


def test_candidates_are_ranked_by_what_usually_gains_most():
    same = sized("same", 8e9)
    large = sized("large", 3e9)
    good = sized("good", 1e9, size=700)
    smaller_file = sized("good-q4", 1e9, size=600)
    tiny = sized("tiny", 1e7)
    wrong = vocabulary_of(size=7)
    assert order(same, wrong, large, TARGET, tiny, good, FLASH, smaller_file, EAGLE, SIDECAR) == [
        "mtp.gguf",
        "eagle.gguf",
        "flash.gguf",
        "good-q4",
        "good",
        "large",
        "tiny",
        "same",
        "draft.gguf",
    ]


def test_a_differing_token_rules_a_candidate_out():
    found = candidates(TARGET, [DRAFT], {"draft.gguf": TokenDifference(9, "a", "b")})
    assert "token 9" in found[0].why_not


@pytest.mark.parametrize(
    ("parameters", "remark"),
    [
        (1e9, "in the usual good range"),
        (1.6e9, "in the usual good range"),
        (8e8, "in the usual good range"),
        (3e9, "rather large"),
        (1e8, "rather small"),
        (7e9, "gains nothing"),
        (9e9, "larger than the target: it gains nothing"),
    ],
)
def test_the_ratio_says_what_to_expect(parameters, remark):
    found = judge(TARGET, sized("d", parameters))
    assert remark in found.remark
    assert found.ratio == pytest.approx(8e9 / parameters)


def test_a_block_drafter_says_how_far_it_drafts():
    assert "up to 15 tokens" in judge(TARGET, FLASH).remark
    spark = replace(FLASH, kind=ModelKind.DSPARK)
    assert "up to 16 tokens" in judge(TARGET, spark).remark
    assert "p_min must be 0" in judge(TARGET, replace(spark, confidence=False)).remark


def suggestion(*others, target=TARGET):
    return suggest(target, candidates(target, others))


def test_mtp_layers_of_the_target_itself_come_first():
    found = suggestion(EAGLE, DRAFT, target=facts(mtp_layers=1))
    assert (found.type, found.draft) == ("draft-mtp", "")
    assert "1 MTP layer and" in found.why


@pytest.mark.parametrize(
    ("others", "type_", "draft", "words"),
    [
        ((DRAFT, EAGLE), "draft-eagle3", "eagle.gguf", "an EAGLE-3 draft"),
        ((DRAFT, FLASH), "draft-dflash", "flash.gguf", "is a DFlash draft"),
        ((DRAFT, SIDECAR), "draft-mtp", "mtp.gguf", "an MTP sidecar"),
        ((DRAFT,), "draft-simple", "draft.gguf", "8.0 times smaller"),
        ((sized("same", 8e9),), "ngram-mod", "", "nothing that fits promises"),
        ((vocabulary_of(size=7),), "ngram-mod", "", "no draft fits"),
        ((), "ngram-mod", "", "n-grams need no model"),
    ],
)
def test_what_is_suggested_and_why(others, type_, draft, words):
    found = suggestion(*others)
    assert (found.type, found.draft) == (type_, draft)
    assert words in found.why


def test_a_draft_that_not_every_build_can_serve_is_doubted_and_comes_last():
    target = facts(architecture="smollm3")
    draft = replace(DRAFT, path="z-draft.gguf")
    eagle = judge(target, EAGLE)
    assert not eagle.why_not
    assert "may stop" in eagle.remark
    assert "smollm3" in eagle.remark
    assert order(EAGLE, draft, vocabulary_of(size=7), target=target) == [
        "z-draft.gguf",
        "eagle.gguf",
        "draft.gguf",
    ]
    assert suggestion(EAGLE, draft, target=target).draft == "z-draft.gguf"
    assert suggestion(EAGLE, FLASH, target=target).type == "ngram-mod"
    assert "may stop" not in judge(TARGET, EAGLE).remark


def test_a_small_target_is_said_to_gain_little():
    small = facts(parameters=2e9)
    assert "gains little" in suggestion(sized("d", 3e8), target=small).why
    assert "gains little" not in suggestion(DRAFT).why
    assert "gains little" not in suggestion(target=small).why


def test_a_mixture_of_experts_counts_as_what_one_token_goes_through():
    mixture = facts(parameters=30e9, active=3_000_000_000)
    assert judge(mixture, sized("d", 6e8)).ratio == pytest.approx(5)
    small = facts(parameters=16e9, active=1_000_000_000)
    assert "2 B active parameters" in suggestion(sized("d", 1e8), target=small).why
