"""Preflight: what the profile's own settings would do, before any file is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spectui.domain.checks_arguments import argument_checks, change
from spectui.domain.facts import Facts
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.pairing import NGRAM, TYPE_OF, Candidate, file_name
from spectui.domain.plan import Plan
from spectui.domain.speculation import (
    KNOBS,
    OFF,
    TYPES,
    Draft,
    Knob,
    SpecType,
)
from spectui.domain.text import clean, nearest

NO_DRAFT = Fix("leave the draft model out", (("models.draft", None),))
TURN_OFF = Fix("turn speculation off", (("speculation.type", OFF),))


def from_text(plan: Plan) -> Fix:
    """Return the fix that drafts without a model."""
    drop = (("models.draft", None),) if plan.draft else ()
    return Fix("draft from repeats of the text", (("speculation.type", NGRAM), *drop))


def use_type(kind: str) -> Fix:
    """Return the fix that sets the type."""
    return Fix(f"set the type to {kind}", (("speculation.type", kind),))


def settings_checks(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with types, knobs and arguments."""
    plan = facts.plan
    if plan is None:
        return
    found = [
        *_types(plan),
        *_knobs(plan),
        *_draft_given(facts, plan),
        *_parallel(plan),
        *_projector(plan),
        *argument_checks(facts, plan),
    ]
    yield from found
    if facts.refusal:
        yield from _refused(facts.refusal, found)


_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def _refused(refusal: tuple[str, str, str], found: list[Finding]) -> Iterator[Finding]:
    """Yield the profile's own error, unless a finding that says more has a fix for that key."""
    key, what, fix = refusal
    blockers = (finding for finding in found if finding.severity is Severity.BLOCKER)
    if any(key == path for one in blockers for way in one.fixes for path, _ in way.changes):
        return
    place = f"{key}: " if key else ""
    yield Finding(
        "profile-invalid",
        Severity.BLOCKER,
        clean(f"{place}{what}", limit=300),
        clean(fix, limit=300),
        (Fix(f"leave {key} out", ((key, None),)),) if _PATH.fullmatch(key) else (),
    )


def _types(plan: Plan) -> Iterator[Finding]:
    for name in plan.types:
        if name not in TYPES:
            close = nearest(name, [kind for kind in TYPES if kind != OFF])
            meant = ",".join(close if other == name else other for other in plan.types)
            yield Finding(
                "argument-invalid",
                Severity.BLOCKER,
                f"{clean(repr(name), limit=60)} is no type of speculation",
                f"the types are {', '.join(TYPES)}",
                (use_type(meant), TURN_OFF) if close else (TURN_OFF,),
            )
    if OFF in plan.types and len(plan.types) > 1:
        others = ",".join(name for name in plan.types if name != OFF)
        yield Finding(
            "argument-invalid",
            Severity.BLOCKER,
            "type none turns every other type off that is named with it",
            fixes=(use_type(others), TURN_OFF) if others else (TURN_OFF,),
        )
    models = [kind for kind in plan.kinds if kind.drafts_with_model]
    if len(models) > 1:
        yield Finding(
            "argument-invalid",
            Severity.BLOCKER,
            f"{' and '.join(kind.id for kind in models)} cannot share the one draft model",
            fixes=tuple(use_type(kind.id) for kind in models),
        )


def _knobs(plan: Plan) -> Iterator[Finding]:
    acting = dict.fromkeys(knob for kind in plan.kinds for knob in kind.knobs)
    # a profile is refused for any value that is wrong, also of a knob that does not act
    written = (KNOBS[key] for key in plan.settings if key in KNOBS)
    for knob in dict.fromkeys((*acting, *written)):
        yield from _knob(knob, plan.setting(knob.key))
    for kind in plan.kinds:
        yield from _never_drafts(plan, kind)
    strict = plan.setting("p_min")
    if KNOBS["p_min"] in acting and isinstance(strict, int | float) and 0.99 <= strict <= 1:
        yield Finding(
            "p-min-too-high",
            Severity.WARNING,
            f"p_min {strict:g} stops every draft at a token that the draft model is not certain of,"
            " which is nearly every one",
            fixes=(Fix("let p_min be 0", (("speculation.p_min", 0.0),)),),
        )
    if plan.speculates:
        yield from _without_effect(plan, acting)


def _knob(knob: Knob, value: object) -> Iterator[Finding]:
    why = knob.check(value)
    if not why:
        return
    key = f"speculation.{knob.key}"
    default = Fix(f"set {knob.label} to {knob.default:g}", ((key, knob.default),))
    if knob.is_length and value == 0:
        yield Finding(
            "argument-invalid",
            Severity.BLOCKER,
            f"{key} is 0, which is not off: the server crashes at the first request, or still"
            " drafts a token",
            "for the baseline set the type to none",
            (default, Fix(TURN_OFF.label, (*TURN_OFF.changes, (key, None)))),
        )
        return
    nearby = default
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124 - not NaN
        least = knob.clamp(value)
        nearby = Fix(f"set {knob.label} to {least:g}", ((key, least),))
    yield Finding(
        "argument-invalid", Severity.BLOCKER, clean(f"{key}: {why}", limit=200), fixes=(nearby,)
    )


def _never_drafts(plan: Plan, kind: SpecType) -> Iterator[Finding]:
    least = next((knob for knob in kind.knobs if knob.label == "n_min"), None)
    most = kind.length_knob
    if least is None or most is None:
        return
    low, high = plan.setting(least.key), plan.setting(most.key)
    if least.check(low) or most.check(high):
        return
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield Finding(
            "argument-invalid",
            Severity.BLOCKER,
            f"n_min {low} is above n_max {high}: every draft of {kind.id} would be thrown away",
            fixes=(
                Fix("set n_min to 0", ((f"speculation.{least.key}", 0),)),
                Fix(f"set n_max to {low}", ((f"speculation.{most.key}", low),)),
            ),
        )


def _without_effect(plan: Plan, acting: dict[Knob, None]) -> Iterator[Finding]:
    idle = [key for key in plan.settings if key in KNOBS and KNOBS[key] not in acting]
    if not idle:
        return
    length = next((kind.length_knob for kind in plan.kinds if kind.length_knob), None)
    yield Finding(
        "no-effect",
        Severity.HINT,
        f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect on {plan.types_text}",
        f"its draft length is speculation.{length.key}" if length else "",
        (Fix("take them out", tuple((f"speculation.{key}", None) for key in idle)),),
    )


def _draft_given(facts: Facts, plan: Plan) -> Iterator[Finding]:
    """Compare what the types want with what is given: a draft that nothing uses, or none."""
    model = facts.draft.model if facts.draft else None
    kind = TYPE_OF.get(model.kind) if model else None
    if plan.draft and not plan.drafts_with_model:
        told = f"type is {plan.types_text}" if plan.type_given else "no type is set"
        fits = facts.pair is None or not facts.pair.why_not
        better = (use_type(kind or "draft-simple"),) if fits and (kind or model is None) else ()
        chosen = plan.type_given  # none may be meant as the beginning of a comparison
        yield Finding(
            "draft-unused",
            Severity.WARNING if chosen else Severity.BLOCKER,
            f"a draft model is given and nothing will use it: {told}",
            "set a type: a draft model alone does not turn speculation on",
            (*better, NO_DRAFT),
        )
    needs = [row.id for row in plan.kinds if row.draft is Draft.NEEDED]
    if needs and not plan.draft:
        fixes = draft_fixes(facts)
        yield Finding(
            "draft-missing",
            Severity.BLOCKER,
            f"{needs[0]} needs a draft model and none is given; the server would start and never"
            " draft",
            "name one as models.draft",
            (*fixes, from_text(plan), TURN_OFF),
        )


def draft_fixes(facts: Facts) -> tuple[Fix, ...]:
    """Return fixes that take a draft which fits, best first; at most two."""
    fitting = [one for one in facts.beside if not one.why_not and one.facts.path != _draft(facts)]
    return tuple(_take(one) for one in fitting[:2])


def _draft(facts: Facts) -> str:
    return facts.draft.path if facts.draft else ""


def _take(one: Candidate) -> Fix:
    name = clean(file_name(one.facts.path), limit=60)
    return Fix(
        f"draft with {name}",
        (("models.draft", one.facts.path), ("speculation.type", one.type)),
    )


def _projector(plan: Plan) -> Iterator[Finding]:
    for name in ("mmproj", "mmproj_url"):
        if plan.text(name) and plan.speculates:
            mine = plan.values[name].source == "server.args"
            yield Finding(
                "mmproj",
                Severity.WARNING,
                "an image projector (mmproj) is loaded: llama-server before April 2026 does not"
                " speculate with one, and it takes memory from draft and cache",
                "leave it out unless images are sent",
                (Fix("leave it out", change(plan, name, None)),) if mine else (),
            )


def _parallel(plan: Plan) -> Iterator[Finding]:
    slots = plan.number("parallel")
    if slots is not None and slots > 1:
        yield Finding(
            "parallel",
            Severity.WARNING,
            f"{slots} requests may run at a time: a busy GPU has no time left to check drafts, and"
            f" each slot gets 1/{slots} of the context",
            "speculation pays for one request at a time",
            (Fix("one slot", change(plan, "parallel", 1)),),
        )
