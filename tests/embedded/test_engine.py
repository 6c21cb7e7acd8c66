"""What the command line does to xllamacpp's own CommonParams. Loads no model."""

from __future__ import annotations

from typing import Any

import pytest

from spectui.domain.errors import EngineError
from spectui.embedded.engine import _threads, load_engine, parameters
from spectui.embedded.flags import FLAGS, Assignment, Flag
from spectui.embedded.parser import ArgumentError, parse

pytestmark = pytest.mark.embedded

SAMPLES = ("1", "on", "f16", "auto", "0.5", "greedy", "none", "ngram-mod", '{"a": 1}', __file__)


@pytest.fixture(scope="module")
def engine() -> Any:
    return load_engine()


def params(engine: Any, *argv: str) -> Any:
    return parameters(engine, parse(argv).assignments)


def accepted(flag: Flag) -> list[list[str]]:
    found = [[name] for name in (flag.names[0], *flag.off[:1])]
    if flag.metavar.startswith("PATTERN="):
        found = [[flag.names[0], "exps=CPU"]]
    elif flag.metavar == "DEVICES":
        found = [[flag.names[0], "none"]]  # any other must be there
    elif flag.metavar:
        found = [[flag.names[0], value] for value in SAMPLES]
    return [argv for argv in found if not refused(argv)]


def refused(argv: list[str]) -> bool:
    try:
        parse(argv)
    except ArgumentError:
        return True
    return False


def test_the_engine_has_every_attribute_that_an_option_sets(engine: Any) -> None:
    tried = 0
    for flag in FLAGS:
        for argv in accepted(flag):
            params(engine, *argv)
            tried += 1
    assert tried > len(FLAGS)


def test_types_add_up_without_the_engines_own_none(engine: Any) -> None:
    found = params(engine, "--spec-type", "ngram-simple", "--spec-type", "ngram-mod,draft-simple")
    names = [kind.name.removeprefix("COMMON_SPECULATIVE_TYPE_") for kind in found.speculative.types]
    assert names == ["NGRAM_SIMPLE", "NGRAM_MOD", "DRAFT_SIMPLE"]


def test_type_none_leaves_speculation_off(engine: Any) -> None:
    kinds = params(engine, "--spec-type", "none").speculative.types
    assert [int(kind) for kind in kinds] == [0, 0]


def test_a_device_that_is_not_there_is_refused_by_the_engine(engine: Any) -> None:
    with pytest.raises(EngineError, match="refuses 'NONE9' for"):
        params(engine, "-devd", "NONE9")


def test_a_sampling_default_is_marked_as_chosen(engine: Any) -> None:
    found = params(engine, "--temp", "0", "--top-k", "1")
    assert found.sampling.temp == 0
    config = engine.common_params_sampling_config
    wanted = config.COMMON_PARAMS_SAMPLING_CONFIG_TEMP | config.COMMON_PARAMS_SAMPLING_CONFIG_TOP_K
    assert found.sampling.user_sampling_config == wanted


def test_an_attribute_that_this_engine_lacks_is_one_readable_error(engine: Any) -> None:
    with pytest.raises(
        EngineError, match=r"xllamacpp .* has no speculative\.newest: pip install -U"
    ):
        parameters(engine, [Assignment("speculative.newest", 1)])


def test_a_value_that_this_engine_refuses_is_one_readable_error(engine: Any) -> None:
    with pytest.raises(EngineError, match=r"xllamacpp .* refuses 'exps' for tensor_buft_overrides"):
        params(engine, "-ot", "exps")


@pytest.mark.parametrize(("cores", "threads"), [(1, [1]), (2, [1]), (4, [3]), (8, []), (64, [])])
def test_a_small_machine_keeps_a_core_free(cores: int, threads: list[int]) -> None:
    assert [item.value for item in _threads(cores)] == threads
