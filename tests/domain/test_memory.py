"""The estimate against numbers worked out by hand, and seen of llama-server 11434."""

from dataclasses import replace

import pytest

from spectui.domain.memory import (
    GIB,
    KV_BLOCKS,
    Use,
    compute_buffer,
    estimate,
    gib,
    kv_cache,
    largest_context,
    mtp_cache,
)
from spectui.domain.models import ModelFacts, Vocabulary

MIB = 1 << 20

# SmolLM2-135M-Instruct's header
SMOL = ModelFacts(
    "/m/smol.gguf",
    size=98_000_000,
    architecture="llama",
    parameters=134_515_008,
    context=8192,
    layers=30,
    embedding=576,
    heads=9,
    kv_heads=(3,),
    key_length=64,
    value_length=64,
    vocabulary=Vocabulary("gpt2", "smollm", 49152),
)


@pytest.mark.parametrize(
    ("use", "mib"),
    [
        # "KV buffer size" of the real server with these options
        (Use(4096, slots=1, unified=False), 90.0),
        (Use(4096, slots=1, kv_k="q8_0", kv_v="q8_0"), 47.8125),
        (Use(2048, slots=1), 45.0),
        (Use(8192), 180.0),  # its own four slots share one cache
        (Use(8192, slots=3, unified=False), 185.625),  # 8448 cells: each slot is padded
    ],
)
def test_the_cache_is_what_llama_server_allocates(use, mib):
    found = kv_cache(SMOL, use)
    assert found.size == mib * MIB
    assert len(found.layers) == 30
    assert not found.note


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("f32", 32), ("bf16", 16), ("q8_0", 8.5), ("q5_1", 6), ("q5_0", 5.5), ("q4_1", 5)],
)
def test_a_cache_type_has_its_bits_per_value(kind, bits):
    elements, size = KV_BLOCKS[kind]
    assert size * 8 / elements == bits
    found = kv_cache(SMOL, Use(256, kv_k=kind, kv_v="f16"))
    assert found.size == 30 * 256 * 3 * 64 * (bits + 16) / 8


def test_an_odd_context_is_padded_to_256_cells():
    assert kv_cache(SMOL, Use(1000)).size == kv_cache(SMOL, Use(1024)).size


def test_windowed_layers_keep_only_a_window():
    gemma = replace(SMOL, architecture="gemma3", layers=12, window=1024, context=32768)
    found = kv_cache(gemma, Use(32768, slots=1))
    row = 2 * 3 * 64 * 2
    dense, windowed = row * 32768, row * 1536  # 1024 + a batch of 512
    assert found.layers == ((windowed,) * 5 + (dense,)) * 2
    # four slots in one cache need four windows
    assert kv_cache(gemma, Use(32768)).layers[0] == row * (4 * 1024 + 512)
    assert kv_cache(gemma, Use(32768, full_window=True)).layers[0] == dense
    # and no window is larger than the context
    assert kv_cache(gemma, Use(1024)).layers[0] == row * 1024


def test_the_first_of_four_layers_may_be_the_dense_one():
    model = replace(SMOL, architecture="smallthinker", layers=4, window=1024)
    sizes = kv_cache(model, Use(32768)).layers
    assert sizes[0] > sizes[1] == sizes[2] == sizes[3]


def test_a_window_that_llama_cpp_ignores_is_ignored():
    assert kv_cache(replace(SMOL, window=4096), Use(32768)) == kv_cache(SMOL, Use(32768))


def test_a_pattern_that_only_the_file_knows_gives_an_upper_bound():
    found = kv_cache(replace(SMOL, architecture="gemma4", window=512), Use(32768))
    assert "at most" in found.note
    assert found.size == kv_cache(SMOL, Use(32768)).size


def test_layers_without_attention_have_no_cache():
    hybrid = replace(SMOL, architecture="jamba", layers=4, kv_heads=(0, 8, 0, 8))
    found = kv_cache(hybrid, Use(256))
    assert found.layers == (0, 2 * 8 * 64 * 2 * 256, 0, 2 * 8 * 64 * 2 * 256)
    assert "state" in found.note
    every_fourth = kv_cache(replace(SMOL, architecture="qwen35", layers=8), Use(256)).layers
    assert [size > 0 for size in every_fourth] == [False, False, False, True] * 2
    assert kv_cache(replace(SMOL, architecture="mamba", kv_heads=(0,)), Use(256)).size == 0


def test_a_latent_cache_keeps_k_only():
    # DeepSeek-V2-Lite: kv_lora_rank 512 and 64 rotated, one head for all
    model = replace(
        SMOL, architecture="deepseek2", layers=27, kv_heads=(1,), key_length=576, value_length=512
    )
    assert kv_cache(model, Use(4096)).size == 27 * 576 * 2 * 4096
    # a file converted before that keeps every head
    old = replace(model, kv_heads=(16,), key_length=192, value_length=128)
    assert kv_cache(old, Use(4096)).size == 27 * 16 * (192 + 128) * 2 * 4096


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "glm-dsa"},
        {"layers": None},
        {"kv_heads": ()},
        {"key_length": None},
    ],
)
def test_what_the_header_does_not_tell_is_not_made_up(changes):
    model = replace(SMOL, **changes)
    assert kv_cache(model, Use(4096)) is None
    found = estimate(model, Use(4096))
    assert found.unknown == ("the KV cache of the target",)


def test_an_unknown_cache_type_is_not_made_up():
    assert kv_cache(SMOL, Use(4096, kv_k="q8_KV")) is None


@pytest.mark.parametrize(
    ("use", "mib"),
    [
        (Use(2048, slots=1), 16.64),
        (Use(4096, slots=1), 18.64),
        (Use(8192, slots=1), 22.64),
        (Use(8192, slots=1, batch=256), 11.32),
    ],
)
def test_the_compute_buffer_is_near_what_was_seen(use, mib):
    assert compute_buffer(SMOL, use) / MIB == pytest.approx(mib, rel=0.05)


def test_everything_goes_to_the_gpu_unless_layers_are_counted():
    found = estimate(SMOL, Use(4096, slots=1))
    assert found.host == 0
    assert found.whole
    assert found.gpu == sum(part.gpu for part in found.parts)
    assert [part.name for part in found.parts] == [
        "target weights",
        "target KV cache",
        "target compute",
    ]


def test_without_layers_on_the_gpu_everything_is_in_ram():
    found = estimate(SMOL, Use(4096, layers=0))
    assert found.gpu == 0
    assert found.host == estimate(SMOL, Use(4096)).gpu
    assert not found.whole


def test_some_layers_take_their_share():
    # the last ten of 30, and the output after them
    found = {part.name: part for part in estimate(SMOL, Use(4096, slots=1, layers=11)).parts}
    assert found["target KV cache"].gpu == 30 * MIB
    assert found["target KV cache"].host == 60 * MIB
    assert found["target weights"].gpu == SMOL.size * 11 // 31
    assert not estimate(SMOL, Use(4096, layers=30)).whole
    assert estimate(SMOL, Use(4096, layers=31)).whole
    assert estimate(SMOL, Use(4096, layers=99)).parts == estimate(SMOL, Use(4096)).parts


def test_the_cache_may_be_kept_in_ram():
    found = {part.name: part for part in estimate(SMOL, Use(4096, kv_host=True)).parts}
    assert found["target KV cache"].gpu == 0
    assert found["target KV cache"].host == 90 * MIB


def test_the_draft_has_the_targets_context_and_its_own_types():
    draft = replace(SMOL, layers=1, size=5_000_000, kv_heads=(1,))
    target_use = Use(4096, slots=1, kv_k="q8_0", kv_v="q8_0")
    use = Use(1, kv_k="f32", kv_v="f32", layers=0)
    found = {part.name: part for part in estimate(SMOL, target_use, draft, use).parts}
    assert found["draft KV cache"].host == 1 * 4096 * 2 * 64 * 4
    assert found["draft weights"].host == 5_000_000
    assert found["target KV cache"].gpu == 47.8125 * MIB
    # by default a draft's cache is f16, whatever the target's is
    plain = {part.name: part for part in estimate(SMOL, target_use, draft).parts}
    assert plain["draft KV cache"].gpu == 1 * 4096 * 2 * 64 * 2


def test_mtp_layers_have_a_cache_of_their_own():
    model = replace(SMOL, mtp_layers=2)
    assert mtp_cache(model, Use(4096)) == 2 * 4096 * 2 * 3 * 64 * 2
    found = {part.name: part for part in estimate(model, Use(4096), mtp=True).parts}
    assert found["MTP KV cache"].gpu == mtp_cache(model, Use(4096))
    assert kv_cache(model, Use(4096)).size == kv_cache(SMOL, Use(4096)).size


def test_a_projector_counts():
    parts = estimate(SMOL, Use(4096), projector=7).parts
    assert parts[-1].gpu == 7


def test_the_largest_context_that_fits_is_found():
    assert largest_context(lambda context: context <= 10_000, 131_072) == 9984
    assert largest_context(lambda context: True, 4096) == 4096
    assert largest_context(lambda context: False, 4096) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (24 * GIB, "24.0 GiB"),
        (GIB * 3 // 2, "1.50 GiB"),
        (380 * MIB, "380 MiB"),
        (MIB * 5 // 2, "2.5 MiB"),
        (0, "0.0 MiB"),
    ],
)
def test_sizes_are_written_with_the_digits_that_matter(size, text):
    assert gib(size) == text
