"""The tiny models as files; what llama.cpp makes of them is tested where there is one."""

from __future__ import annotations

from dataclasses import asdict

import pytest

gguf = pytest.importorskip("gguf")

from tiny_models import CYCLE, VOCABULARY, write_family  # noqa: E402  (it needs gguf)


def test_the_same_bytes_are_written_every_time(tmp_path):
    first, second = (asdict(write_family(tmp_path / name)) for name in ("a", "b"))
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name
    assert sum(path.stat().st_size for path in first.values()) < 3_000_000


def test_each_file_is_of_its_kind(tmp_path):
    found = {
        name: gguf.GGUFReader(path).fields["general.architecture"].contents()
        for name, path in asdict(write_family(tmp_path)).items()
    }
    assert found == {
        "target": "llama",
        "draft": "llama",
        "eagle3": "eagle3",
        "dflash": "dflash",
        "dspark": "dflash",
        "mtp_target": "mimo2",
        "mtp_sidecar": "mimo2",
        "mtp_three_heads": "mimo2",
    }


def test_a_token_of_the_cycle_points_to_the_next(tmp_path):
    tensors = {
        tensor.name: tensor.data
        for tensor in gguf.GGUFReader(write_family(tmp_path).target).tensors
    }
    scores = tensors["token_embd.weight"] @ tensors["output.weight"].T
    follows = scores.argmax(axis=1)
    assert bytes(follows[[*CYCLE]].tolist()) == CYCLE[1:] + CYCLE[:1]
    assert len(VOCABULARY) == len(follows) == 261
