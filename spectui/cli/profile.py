"""Profiles and arms as the command line changes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from spectui.adapters.toml_store import toml_value
from spectui.domain.errors import UsageError
from spectui.domain.profile import Profile, parse_profile, to_mapping, with_setting
from spectui.domain.runs import Arm
from spectui.domain.text import clean


def profile_with(profile: Profile, settings: Iterable[str]) -> Profile:
    """Return ``profile`` with ``table.key=value`` settings applied. Raises UsageError."""
    data = to_mapping(profile)
    for setting in settings:
        data = with_setting(data, setting, toml_value)
    return parse_profile(data, file="--set")


def arms_of(profile: Profile, wanted: Sequence[str]) -> list[Arm]:
    """Return the arms of ``--arms KEY=V1,V2``; all combinations where it was given twice.

    Without any, the profile's own setting is the one arm. Raises UsageError.
    """
    choices = [_values(text) for text in wanted]
    arms: list[Arm] = []
    for combination in product(*choices):
        data = to_mapping(profile)
        for setting in combination:
            data = with_setting(data, setting, toml_value)
        arm = Arm(parse_profile(data, file="--arms").speculation)
        _need_effect(arm, combination)
        if not arm.is_baseline and not any(
            arm.speculation.same_as(other.speculation) for other in arms
        ):
            arms.append(arm)
    return arms


def _need_effect(arm: Arm, settings: Iterable[str]) -> None:
    """Refuse a knob that does not move the arm's type: all its values would be one arm."""
    speculation = arm.speculation
    for setting in settings:
        key = setting.partition("=")[0].removeprefix("speculation.")
        if key != "type" and not arm.is_baseline and key not in {k.key for k in speculation.knobs}:
            lengths = [f"speculation.{knob.key}" for knob in speculation.knobs if knob.is_length]
            fix = f"use {' or '.join(lengths)}" if lengths else "it has no knobs"
            raise UsageError(f"--arms: {key} does not move {speculation.type}", fix)


def _values(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    if not key.startswith("speculation."):
        raise UsageError(
            f"--arms {clean(text, limit=80)}: arms differ in [speculation] only",
            "write for example --arms speculation.n_max=1,4,8",
        )
    found = [f"{key}={value.strip()}" for value in values.split(",") if value.strip()]
    if not equals or not found:
        raise UsageError(f"--arms {clean(text, limit=80)}: no values", "write KEY=V1,V2")
    return found
