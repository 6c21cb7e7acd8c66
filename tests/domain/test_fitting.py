"""Does it fit: the estimate held against what is free, and what would make it fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from preflight_world import GIB, GPU, MACHINE, MODELS, TARGET, World, profile

from spectui.domain.facts import Device
from spectui.domain.findings import Finding, Severity
from spectui.domain.fitting import Fit, look_at_memory
from spectui.domain.memory import HEADROOM, gib
from spectui.domain.plan import Outside
from spectui.domain.preflight import Reply, preflight
from spectui.domain.profile import with_value

WORLD = World()


def world(**changes: Any) -> World:
    return replace(WORLD, **changes)


def gpu(free: float, name: str = "CUDA0") -> Device:
    return replace(GPU, name=name, free=int(free * GIB))


def with_gpu(free: float) -> World:
    return world(devices=(gpu(free),))


def with_ram(free: float) -> World:
    return world(devices=(), machine=replace(MACHINE, devices=(), memory_free=int(free * GIB)))


def fit_of(data: dict[str, object], around: World = WORLD) -> Fit:
    found = look_at_memory(around.facts(data))
    assert found is not None
    return found


def parts(fit: Fit) -> dict[str, tuple[int, int]]:
    return {part.name: (part.gpu, part.host) for part in fit.estimate.parts}


def the_finding(fit: Fit) -> Finding:
    [finding] = fit.findings
    return finding


def mended(data: dict[str, object], finding: Finding) -> dict[str, dict[str, object]]:
    found = {}
    for fix in finding.fixes:
        after: Any = data
        for path, value in fix.changes:
            after = with_value(after, path, value)
        found[fix.label] = after
    return found


# -- on the GPU ------------------------------------------------------------------------------------


def test_what_fits_is_told_with_both_sums():
    fit = fit_of(profile())
    assert (fit.on_gpu, fit.fits, fit.findings) == (True, True, ())
    assert fit.why == f"about {gib(fit.estimate.gpu)} of 23.0 GiB free"
    assert fit.room == 22 * GIB
    assert fit.estimate.host == 0
    assert set(parts(fit)) == {
        *("target weights", "target KV cache", "target compute"),
        *("draft weights", "draft KV cache", "draft compute"),
    }


def test_head_room_is_kept():
    wanted = fit_of(profile()).estimate.gpu
    data = profile(server__gpu_layers="all")
    just = world(devices=(replace(GPU, free=wanted + HEADROOM),))
    assert fit_of(data, just).fits
    short = world(devices=(replace(GPU, free=wanted + HEADROOM - 1),))
    assert fit_of(data, short).fits is False


@pytest.mark.parametrize(
    ("changes", "severity", "words"),
    [
        ({}, Severity.WARNING, "llama-server will keep some layers in RAM"),
        ({"server__gpu_layers": "auto"}, Severity.WARNING, "keep some layers in RAM"),
        ({"server__gpu_layers": "all"}, Severity.BLOCKER, "the launch may fail"),
        ({"server__gpu_layers": 99}, Severity.BLOCKER, "the launch may fail"),
        ({"server__args": ["--fit", "off"]}, Severity.BLOCKER, "the launch may fail"),
    ],
)
def test_what_is_too_large_is_a_finding_as_grave_as_what_the_server_does(changes, severity, words):
    fit = fit_of(profile(**changes), with_gpu(8))
    finding = the_finding(fit)
    assert fit.fits is False
    assert (finding.code, finding.severity) == ("out-of-memory-gpu", severity)
    assert words in finding.what
    assert "by an estimate" in finding.what
    assert f"about {gib(fit.estimate.gpu)} of 8.00 GiB free" in finding.what
    assert words in fit.why


@pytest.mark.parametrize(
    ("free", "labels"),
    [
        (10, ["a context of 15104", "a KV cache of q8_0", "35 layers on the GPU"]),
        (8, ["a context of 6912", "24 layers on the GPU"]),
        (5, ["8 layers on the GPU"]),
        (2, []),
    ],
)
def test_every_way_to_make_it_fit_makes_it_fit(free, labels):
    data = profile(server__gpu_layers="all")
    finding = the_finding(fit_of(data, with_gpu(free)))
    assert [fix.label for fix in finding.fixes] == labels
    assert finding.advice
    for after in mended(data, finding).values():
        assert not fit_of(after, with_gpu(free)).findings


def test_a_way_out_takes_the_place_of_what_args_say():
    data = profile(server__context=None, server__args=["-ngl", "99", "-c", "16384", "-t", "1"])
    finding = the_finding(fit_of(data, with_gpu(10)))
    changes = {fix.label.split(" of ")[0]: dict(fix.changes) for fix in finding.fixes}
    assert changes["a context"]["server.args"] == ["-ngl", "99", "-t", "1"]
    assert changes["35 layers on the GPU"]["server.args"] == ["-c", "16384", "-t", "1"]


def test_a_context_that_nobody_set_is_made_smaller_by_the_server_itself():
    fit = fit_of(profile(server__context=None), with_gpu(10))
    assert fit.estimate.context == 40_960
    assert (fit.fits, fit.findings) == (True, ())
    assert "at its full context of 40960: llama-server will take about" in fit.why
    # not where no context worth having would be left
    assert fit_of(profile(server__context=None), with_gpu(6)).findings


def test_layers_in_ram_are_no_error_and_no_yes_either():
    fit = fit_of(profile(server__gpu_layers=20))
    assert (fit.fits, fit.findings) == (False, ())
    assert "some layers stay in RAM, where they are slow" in fit.why
    assert fit.estimate.host > 0
    assert fit_of(profile(server__gpu_layers=37)).fits
    assert fit_of(profile(draft__gpu_layers=0)).fits is False


def test_what_cannot_be_counted_leaves_the_question_open():
    odd = replace(MODELS[0], architecture="deepseek4")
    fit = fit_of(profile(), world(models={**WORLD.models, TARGET: odd}))
    assert fit.fits is None
    assert fit.why.endswith("not counting the KV cache of the target")
    moved = fit_of(profile(server__args=["--cpu-moe"]))
    assert moved.fits is None
    assert moved.why.endswith("not counting which weights are kept in RAM")


def test_a_driver_that_does_not_tell_leaves_the_question_open():
    fit = fit_of(profile(), world(devices=(Device("Vulkan0", "a GPU"),)))
    assert (fit.on_gpu, fit.free, fit.fits) == (True, None, None)
    assert "the driver does not tell what is free" in fit.why


def test_several_gpus_count_together_each_with_its_head_room():
    both = world(devices=(gpu(6), gpu(5, "CUDA1")))
    fit = fit_of(profile(), both)
    assert fit.fits is False
    assert "of 11.0 GiB free on 2 GPUs" in fit.why
    assert fit.room == 9 * GIB
    assert fit_of(profile(server__device="CUDA1"), both).free == 5 * GIB
    assert fit_of(profile(server__args=["-dev", "CUDA0,CUDA1"]), both).free == 11 * GIB


def test_without_the_engine_s_word_the_driver_s_counts():
    assert fit_of(profile(), world(devices=None)).free == 23 * GIB
    hidden = replace(MACHINE, hidden="CUDA_VISIBLE_DEVICES=")
    assert not fit_of(profile(), world(devices=None, machine=hidden)).on_gpu
    some = replace(MACHINE, hidden="CUDA_VISIBLE_DEVICES=0")
    assert fit_of(profile(), world(devices=None, machine=some)).on_gpu


# -- what counts -----------------------------------------------------------------------------------


def test_a_draft_that_nothing_uses_takes_no_memory():
    assert "draft weights" not in parts(fit_of(profile(speculation__type="none")))


def test_mtp_layers_of_the_target_have_their_own_cache():
    data = profile(models={"target": "/m/heads.gguf"}, speculation__type="draft-mtp")
    found = parts(fit_of(data))
    assert found["MTP KV cache"][0] > 0
    assert found["MTP compute"][0] > 0


def test_a_projector_counts_and_where_a_draft_runs():
    data = profile(server__args=["--mmproj", "/m/mmproj.gguf"], draft__device="none")
    found = parts(fit_of(data))
    assert found["projector"][0] == WORLD.models["/m/mmproj.gguf"].size
    assert found["draft weights"][0] == 0
    assert found["draft KV cache"][1] > 0


def test_cache_types_and_the_draft_s_own_count():
    plain = parts(fit_of(profile()))
    small = parts(fit_of(profile(server__kv_k="q8_0", server__kv_v="q8_0")))
    assert small["target KV cache"][0] == plain["target KV cache"][0] * 34 // 64
    assert small["draft KV cache"] == plain["draft KV cache"]
    both = parts(fit_of(profile(draft__kv_k="q8_0", draft__kv_v="q8_0")))
    assert both["draft KV cache"][0] == plain["draft KV cache"][0] * 34 // 64


def test_what_is_set_outside_the_profile_counts():
    around = world(variables=(Outside("", "LLAMA_ARG_CTX_SIZE", "2048"),))
    assert fit_of(profile(server__context=None), around).estimate.context == 2048
    assert fit_of(profile(), around).estimate.context == 16_384
    kept = world(variables=(Outside("", "LLAMA_ARG_CTX_SIZE", "2048", passed_on=False),))
    assert fit_of(profile(server__context=None), kept).estimate.context == 40_960


def test_a_cache_in_ram_leaves_the_gpu_alone():
    found = parts(fit_of(profile(server__args=["--no-kv-offload"])))
    assert found["target KV cache"][0] == 0
    assert found["target KV cache"][1] > 0


# -- without a GPU ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "around", "words"),
    [
        ({}, with_ram(20), "there is no GPU it could use"),
        ({"server__engine": "embedded"}, WORLD, "there is no GPU it could use"),
        ({"server__gpu_layers": 0, "draft__gpu_layers": 0}, WORLD, "no layer goes to the GPU"),
        ({"server__device": "none"}, WORLD, "no layer goes to the GPU"),
    ],
)
def test_without_a_gpu_ram_is_what_counts(changes, around, words):
    fit = fit_of(profile(**changes), around)
    assert (fit.on_gpu, fit.fits, fit.findings) == (False, True, ())
    assert fit.estimate.gpu == 0
    assert words in fit.why
    assert f"about {gib(fit.estimate.host)} of" in fit.why


def test_weights_that_do_not_fit_in_ram_are_slow_and_a_cache_that_does_not_is_fatal():
    slow = the_finding(fit_of(profile(), with_ram(8)))
    assert (slow.code, slow.severity) == ("out-of-memory-host", Severity.WARNING)
    assert "read from disk again and again" in slow.what
    fatal = the_finding(fit_of(profile(), with_ram(3)))
    assert (fatal.code, fatal.severity) == ("out-of-memory-host", Severity.BLOCKER)
    assert "killed by the system" in fatal.what
    [after] = mended(profile(), slow).values()
    assert not fit_of(after, with_ram(8)).findings


def test_memory_that_is_not_known_leaves_the_question_open():
    fit = fit_of(profile(), with_ram(0))
    assert (fit.fits, fit.free, fit.findings) == (None, None, ())
    assert "what is free is not known" in fit.why


# -- as the first question -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("around", "question", "reply"),
    [
        (WORLD, "Does it all fit on the GPU?", Reply.YES),
        (with_gpu(4), "Does it all fit on the GPU?", Reply.NO),
        (world(devices=(Device("V0", "a GPU"),)), "Does it all fit on the GPU?", Reply.UNKNOWN),
        (with_ram(30), "Does it all fit in memory?", Reply.YES),
        (with_ram(3), "Does it all fit in memory?", Reply.NO),
    ],
)
def test_the_first_question_is_answered_by_it(around, question, reply):
    found = preflight(around.facts(profile()))
    assert found.questions[0].question == question
    assert found.questions[0].answer is reply
    assert found.fit is not None
    assert found.questions[0].why == found.fit.why
    assert set(found.fit.findings) <= set(found.findings)
