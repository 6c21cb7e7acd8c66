"""The header reader against the gguf package, against damage, and against huge vocabularies."""

import contextlib
import os
import random
import re
import resource
import struct
import time
import tracemalloc
from pathlib import Path

import gguf
import gguf_writer
import numpy as np
import pytest
from gguf_writer import TENSORS, WORDS, Typed, header, model_keys, write, write_model, write_split

from spectui.adapters.gguf_file import first_difference, part_of, read_model
from spectui.adapters.gguf_header import MAX_STRINGS, open_header
from spectui.domain.errors import ModelFileError
from spectui.domain.models import ModelKind, TokenDifference

MEGABYTE = 1 << 20


def error_of(path):
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    line = str(caught.value)
    assert "\n" not in line
    assert path.name.split("-0000")[0] in line
    return caught.value


# -- the gguf package as oracle ---------------------------------------------------------------


def plain(writer):
    writer.add_block_count(3)
    writer.add_context_length(2048)
    writer.add_embedding_length(128)
    writer.add_head_count(8)
    writer.add_head_count_kv(4)
    writer.add_tensor("token_embd.weight", np.zeros((50, 128), np.float32))


def halves(writer):
    plain(writer)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((128, 128), np.float16))


def quantised(writer):
    plain(writer)
    for number, name in enumerate(("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")):
        kind = gguf.GGMLQuantizationType[name]
        raw = gguf.quants.quantize(np.zeros((128, 128), np.float32), kind)
        writer.add_tensor(f"blk.{number}.ffn_up.weight", raw, raw_dtype=kind)


def k_quants(writer):
    plain(writer)
    for number, (name, width) in enumerate((("Q4_K", 144), ("Q6_K", 210), ("IQ4_XS", 136))):
        kind = gguf.GGMLQuantizationType[name]
        raw = np.zeros((4, width * 2), np.uint8)
        writer.add_tensor(f"blk.{number}.ffn_up.weight", raw, raw_dtype=kind)


def vocabulary(writer):
    plain(writer)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([f"token {i} é" for i in range(500)] + ["", "\x1b[31m"])
    writer.add_token_types([1] * 502)
    writer.add_token_scores([0.5] * 502)
    writer.add_token_merges([f"a b{i}" for i in range(300)])
    writer.add_bos_token_id(7)
    writer.add_eos_token_id(8)
    writer.add_add_bos_token(value=True)
    writer.add_add_eos_token(value=False)


def every_type(writer):
    plain(writer)
    writer.add_uint8("test.u8", 200)
    writer.add_int8("test.i8", -7)
    writer.add_uint16("test.u16", 60_000)
    writer.add_int16("test.i16", -600)
    writer.add_uint32("test.u32", 4_000_000_000)
    writer.add_int32("test.i32", -70_000)
    writer.add_float32("test.f32", 0.25)
    writer.add_uint64("test.u64", 1 << 39)
    writer.add_int64("test.i64", -(1 << 40))
    writer.add_float64("test.f64", 0.1)
    writer.add_bool("test.yes", val=True)
    writer.add_bool("test.no", val=False)
    writer.add_string("test.text", "Größe")


def arrays(writer):
    plain(writer)
    for name, values in (
        ("ints", [1, 2, 3]),
        ("floats", [0.5, 1.5]),
        ("flags", [True, False, True]),
        ("texts", ["a", "bc", ""]),
    ):
        writer.add_array(f"test.{name}", values)


def aligned(writer):
    writer.add_custom_alignment(256)
    halves(writer)


def per_layer(writer):
    writer.add_block_count(4)
    writer.add_embedding_length(128)
    writer.add_head_count([8, 8, 8, 8])
    writer.add_head_count_kv([0, 4, 0, 4])
    writer.add_key_length(24)
    writer.add_value_length(12)
    writer.add_sliding_window(512)
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((128, 128), np.float16))


def experts(writer):
    plain(writer)
    writer.add_expert_count(4)
    writer.add_tensor("blk.0.ffn_up_exps.weight", np.zeros((4, 64, 128), np.float16))


def multi_token(writer):
    plain(writer)
    writer.add_uint32("llama.nextn_predict_layers", 1)
    writer.add_tensor("blk.0.attn_norm.weight", np.zeros(128, np.float32))
    writer.add_tensor("blk.2.nextn.eh_proj.weight", np.zeros((128, 256), np.float16))


def only_tensors(writer):
    writer.add_tensor("one", np.zeros(1, np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((1, 1, 2, 3), np.int32))


RECIPES = (
    plain,
    halves,
    quantised,
    k_quants,
    vocabulary,
    every_type,
    arrays,
    aligned,
    per_layer,
    experts,
    multi_token,
    only_tensors,
)


def written(path, recipe, **more):
    writer = gguf.GGUFWriter(path, "llama", **more)
    writer.add_name("Written by gguf")
    recipe(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_the_reader_agrees_with_the_gguf_package(tmp_path, recipe, version):
    path = written(tmp_path / "written.gguf", recipe)
    with path.open("r+b") as file:  # version 2 is laid out like 3, and is written no more
        file.seek(4)
        file.write(struct.pack("<I", version))
    oracle = gguf.GGUFReader(path)
    with open_header(path) as ours:
        assert ours.version == version
        own = {name: field for name, field in oracle.fields.items() if not name.startswith("GGUF.")}
        assert {key.decode() for key in ours.values} == set(own)
        for name, field in own.items():
            agrees(ours, name, field)
        assert ours.tensor_names == {tensor.name.encode() for tensor in oracle.tensors}
        assert ours.parameters == sum(int(tensor.n_elements) for tensor in oracle.tensors)
        sizes = dict.fromkeys((t.tensor_type.value for t in oracle.tensors if len(t.shape) > 1), 0)
        for tensor in oracle.tensors:
            if len(tensor.shape) > 1:
                sizes[tensor.tensor_type.value] += int(tensor.n_bytes)
        assert dict(ours.bytes_by_type) == sizes
    facts = read_model(path)
    assert facts.name == "Written by gguf"
    assert facts.size == path.stat().st_size
    assert facts.tensors == len(oracle.tensors)
    tokens = oracle.fields.get("tokenizer.ggml.tokens")
    assert facts.vocabulary.size == (len(tokens.data) if tokens else 0)


def test_a_split_model_is_what_the_gguf_package_finds_in_its_parts(tmp_path):
    written(tmp_path / "big.gguf", quantised, split_max_tensors=2)
    paths = sorted(tmp_path.glob("*.gguf"))
    parts = [gguf.GGUFReader(path) for path in paths]
    facts = read_model(paths[-1])
    assert facts.files == tuple(map(str, paths))
    assert facts.tensors == sum(len(part.tensors) for part in parts) == 6
    assert facts.parameters == sum(int(t.n_elements) for part in parts for t in part.tensors)
    assert facts.name == "Written by gguf"


def agrees(ours, name, field):
    value, types = field.contents(), field.types
    is_array = types[0] == gguf.GGUFValueType.ARRAY
    where = ours.values[name.encode()]
    assert where.kind == types[-1].value
    assert where.length == (len(field.data) if is_array else None)
    if types[-1] == gguf.GGUFValueType.STRING:
        if is_array:
            assert ours.strings(name) == where
            assert words_of(ours, where) == value
        else:
            assert ours.text(name) == value
    elif types[-1] == gguf.GGUFValueType.BOOL:
        if not is_array:
            assert ours.flag(name) is value
    elif types[-1] in {gguf.GGUFValueType.FLOAT32, gguf.GGUFValueType.FLOAT64}:
        assert ours.numbers(name) == ()
    else:
        values = value if is_array else [value]
        assert ours.numbers(name) == (tuple(values) if min(values) >= 0 else ())


def words_of(ours, where):
    at, words = where.start, []
    for _ in range(where.length):
        length = struct.unpack_from("<Q", ours.data, at)[0]
        words.append(ours.data[at + 8 : at + 8 + length].decode())
        at += 8 + length
    assert at == where.end
    return words


@pytest.mark.embedded
def test_the_demo_models_facts():
    from spectui.embedded.demo_model import find_demo_model

    facts = read_model(find_demo_model())
    assert facts.architecture == "llama"
    assert facts.kind is ModelKind.MODEL
    assert facts.parameters == 134_515_008
    assert facts.quantisation == "Q4_1"
    assert (facts.context, facts.layers, facts.embedding) == (8192, 30, 576)
    assert (facts.heads, facts.kv_heads, facts.key_length) == (9, (3,), 64)
    assert (facts.vocabulary.size, facts.vocabulary.pre) == (49_152, "smollm")


# -- what the header says ---------------------------------------------------------------------


def test_version_2_reads_like_version_3(tmp_path):
    keys = model_keys()
    two = read_model(write(tmp_path / "two.gguf", keys, TENSORS, version=2))
    three = read_model(write(tmp_path / "three.gguf", keys, TENSORS, version=3))
    assert (two.parameters, two.vocabulary, two.layers) == (
        three.parameters,
        three.vocabulary,
        three.layers,
    )


def test_head_sizes_follow_from_the_width_where_no_key_says_them(tmp_path):
    facts = read_model(write_model(tmp_path / "m.gguf", attention__head_count_kv=None))
    assert (facts.heads, facts.kv_heads) == (4, (4,))
    assert (facts.key_length, facts.value_length) == (16, 16)


def test_only_every_fourth_layer_of_a_hybrid_keeps_a_kv_cache(tmp_path):
    facts = read_model(
        write_model(tmp_path / "m.gguf", "qwen35", block_count=8, full_attention_interval=4)
    )
    assert facts.kv_heads == (0, 0, 0, 2, 0, 0, 0, 2)


@pytest.mark.parametrize(
    ("said", "quantisation"),
    [(15, "Q4_K_M"), (1024 + 2, "F16"), (999, "F16"), (None, "F16")],
)
def test_the_quantisation_is_what_the_file_says_or_else_that_of_most_bytes(
    tmp_path, said, quantisation
):
    general = {} if said is None else {"file_type": said}
    facts = read_model(write_model(tmp_path / "m.gguf", general=general))
    assert facts.quantisation == quantisation


def test_a_tensor_type_of_a_fork_is_counted_and_its_size_taken_on_trust(tmp_path, monkeypatch):
    monkeypatch.setitem(gguf_writer.BLOCKS, "IQ4_K", (139, 256, 144))
    facts = read_model(
        write_model(tmp_path / "m.gguf", tensors=[("blk.0.a", (256, 4), "IQ4_K"), *TENSORS])
    )
    assert facts.parameters == 1024 + 64 * 40 * 2 + 64 + 2 * 64 * 64


def test_a_tensor_type_that_nobody_has_is_damage(tmp_path, monkeypatch):
    monkeypatch.setitem(gguf_writer.BLOCKS, "none", (7680, 1, 4))
    path = write_model(tmp_path / "m.gguf", tensors=[("blk.0.a", (64, 4), "none")])
    assert "no tensor type 7680" in str(error_of(path))


def test_of_a_mixture_of_experts_only_the_used_ones_are_active(tmp_path):
    experts = ("blk.0.ffn_up_exps.weight", (64, 32, 8), "F16")
    path = tmp_path / "m.gguf"
    more = {"expert_count": 8, "expert_used_count": 2}
    facts = read_model(write_model(path, tensors=[*TENSORS, experts], **more))
    assert facts.parameters - facts.active == 64 * 32 * 6
    dense = read_model(write_model(path))
    assert dense.active == dense.parameters


NEXTN = ("blk.1.nextn.eh_proj.weight", (128, 64), "F16")


@pytest.mark.parametrize(
    ("kind", "architecture", "tensors", "more"),
    [
        (ModelKind.MODEL, "llama", TENSORS, {}),
        (ModelKind.MODEL, "qwen35", (*TENSORS, NEXTN), {"nextn_predict_layers": 1}),
        (ModelKind.MTP, "qwen35", (TENSORS[0], NEXTN), {"nextn_predict_layers": 1}),
        (
            ModelKind.MTP,
            "gemma4-assistant",
            (*TENSORS, ("nextn.post_projection.weight", (64, 64), "F16")),
            {"nextn_predict_layers": 2},
        ),
        (ModelKind.EAGLE3, "eagle3", TENSORS, {"target_layers": [1, 2, 3]}),
        (ModelKind.DFLASH, "dflash", TENSORS, {"block_size": 16}),
        (ModelKind.DSPARK, "dflash", (*TENSORS, ("markov_w1.weight", (8, 40), "F16")), {}),
        (ModelKind.PROJECTOR, "clip", TENSORS, {}),
        (ModelKind.PROJECTOR, "llama", TENSORS, {"general": {"type": "mmproj"}}),
        (ModelKind.OTHER, "llama", TENSORS, {"general": {"type": "adapter"}}),
        (ModelKind.OTHER, "llama", (), {}),
        (ModelKind.OTHER, "nomic-bert", TENSORS, {}),
        (ModelKind.OTHER, "qwen3", TENSORS, {"pooling_type": 3}),
    ],
)
def test_what_a_file_can_be_used_for(tmp_path, kind, architecture, tensors, more):
    facts = read_model(write_model(tmp_path / "m.gguf", architecture, tensors=tensors, **more))
    assert facts.kind is kind
    assert bool(facts.detail) is (kind is ModelKind.OTHER)


def test_mtp_layers_are_counted_apart_and_only_if_they_are_there(tmp_path):
    there = read_model(
        write_model(tmp_path / "a.gguf", "q", tensors=(*TENSORS, NEXTN), nextn_predict_layers=1)
    )
    gone = read_model(write_model(tmp_path / "b.gguf", "q", nextn_predict_layers=1))
    assert (there.layers, there.mtp_layers) == (1, 1)
    assert (gone.layers, gone.mtp_layers) == (2, 0)


def test_what_a_draft_for_one_target_was_made_for(tmp_path):
    eagle = read_model(
        write_model(
            tmp_path / "e.gguf",
            "eagle3",
            tensors=TENSORS[1:3],
            target_layers=[2, 16, 29],
            target_hidden_size=4096,
        )
    )
    assert (eagle.target_layers, eagle.target_embedding) == ((2, 16, 29), 4096)
    assert eagle.borrows
    assert eagle.longest_draft is None
    flash = read_model(
        write_model(tmp_path / "f.gguf", "dflash", target_layers=[1, 2], block_size=16)
    )
    assert (flash.block_size, flash.longest_draft, flash.borrows) == (16, 15, False)
    markov = (*TENSORS, ("markov_w1.weight", (8, 40), "F16"))
    spark = read_model(
        write_model(
            tmp_path / "s.gguf",
            "dflash",
            tensors=markov,
            block_size=8,
            has_confidence_head=False,
        )
    )
    assert (spark.longest_draft, spark.confidence) == (8, False)


def test_names_are_made_harmless(tmp_path):
    facts = read_model(write_model(tmp_path / "m.gguf", general={"name": "a\x1b[31m\nb\u202e"}))
    assert facts.name == "a b"


# -- split files ------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [0, 1, 2])
def test_all_parts_are_one_model_whichever_is_named(tmp_path, named):
    paths = write_split(tmp_path, "big", 3)
    facts = read_model(paths[named])
    assert facts.path == str(paths[0])
    assert facts.files == tuple(map(str, paths))
    assert facts.size == sum(path.stat().st_size for path in paths)
    assert (facts.tensors, facts.parameters) == (3, 3 * 64 * 64)
    assert facts.missing == ()


def test_missing_parts_are_named(tmp_path):
    paths = write_split(tmp_path, "big", 4)
    paths[1].unlink()
    paths[3].unlink()
    facts = read_model(paths[0])
    assert facts.missing == (paths[1].name, paths[3].name)
    assert facts.kind is ModelKind.MODEL


def test_without_its_first_part_a_model_is_missing(tmp_path):
    paths = write_split(tmp_path, "big", 2)
    paths[0].unlink()
    assert error_of(paths[1]).code == "model-missing"


def test_a_broken_part_is_named(tmp_path):
    paths = write_split(tmp_path, "big", 2)
    paths[1].write_bytes(paths[1].read_bytes()[:-100])
    error = error_of(paths[0])
    assert error.code == "model-truncated"
    assert paths[1].name in str(error)


def test_a_part_with_a_name_of_its_own_misses_the_others(tmp_path):
    paths = write_split(tmp_path, "big", 3)
    renamed = paths[0].rename(tmp_path / "renamed.gguf")
    assert "2 more parts" in read_model(renamed).missing[0]


def test_a_later_part_under_another_name_is_refused(tmp_path):
    paths = write_split(tmp_path, "big", 3)
    assert error_of(paths[1].rename(tmp_path / "renamed.gguf")).code == "model-invalid"


def test_a_name_like_a_parts_does_not_make_a_part(tmp_path):
    path = write_model(tmp_path / "alone-00002-of-00002.gguf")
    assert read_model(path).files == (str(path),)
    assert part_of(Path("alone-00003-of-00002.gguf")) is None
    assert part_of(Path("alone.gguf")) is None


# -- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "model-invalid", "empty"),
        (b"GG", "model-invalid", "does not begin with GGUF"),
        (b"GGUF", "model-truncated", "cut off"),
        (b"<!DOCTYPE html><html>", "model-invalid", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "model-invalid", "git lfs pull"),
        (b'\x40\0\0\0\0\0\0\0{"a":{}}' + b" " * 30, "model-invalid", "safetensors"),
        (b"PK\x03\x04" + b"\0" * 30, "model-invalid", "PyTorch"),
        (b"tjgg" + b"\0" * 30, "model-invalid", "before GGUF"),
        (b"\0" * 64, "model-invalid", "zeroes"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "model-invalid", "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 0, 0, 0), "model-invalid", "version 0"),
        (b"GGUF" + struct.pack("<IQQ", 77, 0, 0), "model-invalid", "version 77"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "model-invalid", "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "model-invalid", "too many"),
        (b"GGUF" + struct.pack("<IQQ", 3, (1 << 64) - 1, 0), "model-invalid", "too many"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 63), "model-invalid", "key"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 0), "model-invalid", "key"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 9) + b"abc", "model-truncated", "cut off"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a\x63\0\0\0", "model-invalid", "type 99"),
        (  # a list of lists, which llama.cpp does not read either
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 9, 1),
            "model-invalid",
            "no list of type 9",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path, content, code, words):
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    error = error_of(path)
    assert error.code == code
    assert words in str(error)


def test_what_is_no_file_is_said_so_at_once(tmp_path):
    assert error_of(tmp_path / "none.gguf").code == "model-missing"
    folder = tmp_path / "folder.gguf"
    folder.mkdir()
    assert "is a folder" in str(error_of(folder))
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_model(tmp_path / "zero\0byte.gguf")
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)  # opening it must not wait for a writer
    assert error_of(pipe).code == "model-invalid"


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = write_model(tmp_path / "m.gguf")
    monkeypatch.setattr("spectui.adapters.gguf_header.os.open", refuse)
    assert error_of(path).code == "permission-denied"


def test_a_download_that_stopped_says_how_much_is_there(tmp_path):
    path = write_model(tmp_path / "m.gguf")
    whole = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(whole - 4000)
    error = error_of(path)
    assert error.code == "model-truncated"
    assert f"{whole - 4000:,} of at least" in str(error)


def test_cut_anywhere_in_the_header_it_is_truncated(tmp_path):
    raw, _ = header(model_keys(), TENSORS)
    path = tmp_path / "cut.gguf"
    for length in range(4, len(raw), 7):
        path.write_bytes(raw[:length])
        assert error_of(path).code == "model-truncated", length


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([("a", (64,), "F32"), ("a", (64,), "F32")], "twice"),
        ([("a" * 64, (64,), "F32")], "name is too long"),
        ([("a", (1, 1, 1, 1, 1), "F32")], "5 dimensions"),
        ([("a", (1 << 40, 1 << 40), "F32")], "absurd size"),
        ([("a", (33,), "Q8_0")], "whole number of blocks"),
    ],
)
def test_tensors_that_llama_cpp_refuses_are_refused(tmp_path, tensors, words):
    raw, _ = header(model_keys(), tensors)
    path = tmp_path / "t.gguf"
    path.write_bytes(raw + b"\0" * 4096)
    error = error_of(path)
    assert error.code == "model-invalid"
    assert words in str(error)


def test_a_tensor_elsewhere_than_it_should_be_is_refused(tmp_path):
    raw, _ = header({}, [("a", (64,), "F32"), ("b", (64,), "F32")])
    at = raw.rindex(struct.pack("<Q", 256))
    path = tmp_path / "t.gguf"
    path.write_bytes(raw[:at] + struct.pack("<Q", 128) + raw[at + 8 :] + b"\0" * 4096)
    assert "not where it should be" in str(error_of(path))


@pytest.mark.parametrize("alignment", [0, 24, Typed("u64", 32)])
def test_an_absurd_alignment_is_refused(tmp_path, alignment):
    raw, _ = header({}, TENSORS)
    key = gguf_writer.text("general.alignment") + gguf_writer.encode(alignment)
    path = tmp_path / "t.gguf"
    start = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), 1)
    path.write_bytes(start + key + raw[24:] + b"\0" * 100_000)
    assert "power of two" in str(error_of(path))


# -- hostile headers --------------------------------------------------------------------------


def sparse(path, start, size):
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def strings(count):
    key = gguf_writer.text("tokenizer.ggml.tokens")
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + struct.pack("<IIQ", 9, 8, count)


@pytest.mark.parametrize(
    "start",
    [
        b"GGUF" + struct.pack("<IQQ", 3, 0, 16_000),
        b"GGUF" + struct.pack("<IQQ", 3, 60_000, 0),
        strings(1 << 60),
        strings(60_000_000),
        strings(MAX_STRINGS),
    ],
    ids=["zero keys", "zero tensors", "endless list", "very long list", "longest list"],
)
def test_an_endless_header_ends_soon_and_takes_no_memory(tmp_path, start):
    path = sparse(tmp_path / "endless.gguf", start, 1 << 33)
    begun = time.perf_counter()
    assert growth_of(lambda: refusal(path)) < 50 * MEGABYTE
    assert time.perf_counter() - begun < 20  # a hang, not a slow machine


def test_long_texts_in_endless_lists_stop_at_a_limit_of_bytes(tmp_path):
    raw = strings(1_000_000)
    text = struct.pack("<Q", 120) + b"x" * 120
    path = tmp_path / "fat.gguf"
    path.write_bytes(raw + text * 400_000)
    assert "far too many bytes" in str(error_of(path))


def test_many_keys_of_the_longest_length_stay_below_the_limit_of_memory(tmp_path):
    pairs = b"".join(
        gguf_writer.text(f"{i:06}" + "k" * 1018) + gguf_writer.encode(i) for i in range(16_384)
    )
    path = tmp_path / "keys.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 16_384) + pairs)
    assert growth_of(lambda: read_model(path)) < 50 * MEGABYTE


def growth_of(work):
    """Return by how many bytes the resident memory grew at most, pages of mapped files included."""
    with contextlib.suppress(OSError):  # Linux: forget the peak of before
        Path("/proc/self/clear_refs").write_text("5")
    before = most_memory()
    work()
    return most_memory() - before


def most_memory():
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS gives bytes


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


EXTREMES = [0, 1, 2, 3, 8, 9, 255, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 62, 1 << 63, (1 << 64) - 1]


def mutated(chance, raw):
    """Return ``raw`` with a few random faults."""
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data))
        match chance.randrange(7):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.randrange(256)
            case 2:
                data[at : at + 8] = struct.pack("<Q", chance.choice(EXTREMES))
            case 3:
                data[at : at + 4] = struct.pack("<I", chance.choice(EXTREMES) & 0xFFFFFFFF)
            case 4:
                del data[at : at + chance.randrange(1, 32)]
            case 5:
                data[at:at] = data[chance.randrange(len(data)) :][: chance.randrange(1, 64)]
            case _:
                del data[max(at, 8) :]
        if not data:
            return b""
    return bytes(data)


@pytest.mark.parametrize("seed", range(5))
def test_mutated_headers_give_facts_or_one_clear_error(tmp_path, seed):
    chance = random.Random(seed)
    markov = ("markov_w1.weight", (8, 40), "F16")
    seeds = [
        header(model_keys(general={"name": "x", "file_type": 7}), TENSORS),
        header(model_keys("eagle3", target_layers=[1, 2, 3], target_hidden_size=64), TENSORS),
        header(model_keys("dflash", block_size=8), (*TENSORS, markov), version=2),
        header({**model_keys("qwen35", nextn_predict_layers=1)}, (*TENSORS, NEXTN)),
        header({**model_keys(), "split.count": Typed("u16", 2), "split.no": Typed("u16", 0)}),
    ]
    whole = write_model(tmp_path / "whole.gguf")
    path = tmp_path / "mutant.gguf"
    outcomes = {"read": 0, "refused": 0}
    slowest = 0.0

    def all_of_them():
        nonlocal slowest
        for _ in range(1000):
            raw, data = chance.choice(seeds)
            path.write_bytes(mutated(chance, raw + b"\0" * data))
            begun = time.perf_counter()
            error = refusal(path, whole)
            slowest = max(slowest, time.perf_counter() - begun)
            outcomes["refused" if error else "read"] += 1
            assert error is None or "\n" not in str(error)

    taken = growth_of if seed else peak_of  # that one traces, which is slow
    assert taken(all_of_them) < 50 * MEGABYTE
    assert slowest < 5  # a hang, not a slow machine
    assert outcomes["read"] > 50
    assert outcomes["refused"] > 300


def refusal(path, whole=None):
    """Return the one kind of error that a header may give, None if it was read."""
    try:
        read_model(path)
        if whole is not None:
            first_difference(whole, path)
    except ModelFileError as error:
        return error
    return None


# -- huge vocabularies ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def huge(tmp_path_factory):
    """A model with the vocabulary of a Qwen: 152,064 tokens, as many types and merges."""
    folder = tmp_path_factory.mktemp("huge")
    words = [f"Ġword{i}" for i in range(152_064)]
    more = {"token_type": [1] * 152_064, "merges": [f"Ġa b{i}" for i in range(151_000)]}
    write_model(folder / "a.gguf", tokens=words, tokenizer=more)
    words[150_000] = "other"
    write_model(folder / "b.gguf", tokens=words, tokenizer=more)
    return folder


def test_a_huge_vocabulary_is_walked_over_and_never_built(huge):
    facts = []
    path = huge / "a.gguf"
    growth = growth_of(lambda: facts.append(read_model(path)))
    assert facts[0].vocabulary.size == 152_064
    # the mapped file itself, and next to nothing: a list of its tokens would take over 10 MB
    assert growth < path.stat().st_size + 3 * MEGABYTE


def test_a_huge_vocabulary_is_read_in_under_a_tenth_of_a_second(huge):
    # processor time, and the best of several: of the reader, not of what else the machine does
    assert min(seconds(lambda: read_model(huge / "a.gguf")) for _ in range(7)) < 0.1


def test_two_huge_vocabularies_are_compared_in_place(huge):
    found = []
    paths = huge / "a.gguf", huge / "b.gguf"
    growth = growth_of(lambda: found.append(first_difference(*paths)))
    assert found == [TokenDifference(150_000, "Ġword150000", "other")]
    assert growth < sum(path.stat().st_size for path in paths) + 3 * MEGABYTE


def test_reading_is_many_times_faster_than_the_gguf_package(tmp_path):
    words = [f"Ġword{i}" for i in range(8000)]
    path = write_model(tmp_path / "m.gguf", tokens=words)
    ours = min(seconds(lambda: read_model(path)) for _ in range(5))
    theirs = seconds(lambda: gguf.GGUFReader(path))
    assert theirs > 20 * ours


def seconds(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun


# -- comparing vocabularies -------------------------------------------------------------------


def differ(tmp_path, ours, its):
    return first_difference(
        write_model(tmp_path / "a.gguf", tokens=ours), write_model(tmp_path / "b.gguf", tokens=its)
    )


def changed(**by_id):
    words = list(WORDS)
    for name, word in by_id.items():
        words[int(name[1:])] = word
    return words


@pytest.mark.parametrize(
    ("its", "found"),
    [
        (WORDS, None),
        (changed(t0="x", t4="yyyyy"), None),
        (changed(t5="x"), TokenDifference(5, "tok5", "x")),
        (changed(t39="x"), TokenDifference(39, "tok39", "x")),
        (changed(t7="tok7é"), TokenDifference(7, "tok7", "tok7é")),
        (changed(t7="tok7é", t6="first"), TokenDifference(6, "tok6", "first")),
        (WORDS[:20], None),
        ([*WORDS, "more", "still more"], None),
        (changed(t9=b"tok9\0rest"), None),
        (changed(t9=b"tok9\0rest", t30="x"), TokenDifference(30, "tok30", "x")),
        (changed(t9=""), TokenDifference(9, "tok9", "[EMPTY_9]")),
        (changed(t9=b"\xff"), TokenDifference(9, "tok9", "\ufffd")),
        (WORDS[:3], None),
    ],
)
def test_the_first_token_that_differs_as_llama_cpp_sees_it(tmp_path, its, found):
    assert differ(tmp_path, WORDS, its) == found


def test_an_empty_token_is_called_by_its_number(tmp_path):
    assert differ(tmp_path, changed(t9=""), changed(t9="[EMPTY_9]")) is None


def test_the_fast_comparison_agrees_with_the_obvious_one(tmp_path):
    chance = random.Random(7)
    for _ in range(150):
        ours = [chance.choice(("a", "bb", "", "a\0b")) for _ in range(chance.randrange(1, 60))]
        its = list(ours)
        for _ in range(chance.randrange(3)):
            its[chance.randrange(len(its))] = chance.choice(("a", "bb", "c", ""))
        its = its[: chance.randrange(1, len(its) + 1)]
        found = differ(tmp_path, ours, its)
        assert (found and found.id) == obvious(ours, its)


def obvious(ours, its):
    for number, pair in enumerate(zip(ours, its, strict=False)):
        one, other = (word.partition("\0")[0] or f"[EMPTY_{number}]" for word in pair)
        if number >= 5 and one != other:
            return number
    return None


def test_a_file_without_a_vocabulary_has_nothing_to_compare(tmp_path):
    bare = write(tmp_path / "bare.gguf", {"general.architecture": "llama"}, TENSORS)
    assert first_difference(bare, write_model(tmp_path / "m.gguf")) is None
