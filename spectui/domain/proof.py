"""Is it really speculating? What a started server says of itself, and what its answers show.

A server that is ready may still not draft: a draft model without a type, a vocabulary that does
not fit, a type without its model are silent or one line of log. The proof is ``speculative`` in
/slots and, after a request, a draft counter that moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from spectui.domain.acceptance import Acceptance
from spectui.domain.findings import Finding, Fix, Severity
from spectui.domain.runs import Run, Summary, summarise
from spectui.domain.speculation import OFF, Speculation

NOT_SPECULATING = "not-speculating"
OTHER_TYPES = "other-types"
STILL_DRAFTING = "baseline-drafting"
NEVER_DRAFTED = "never-drafted"
NEVER_ACCEPTED = "never-accepted"
SHORT_DRAFTS = "short-drafts"
FEWER_POSITIONS = "fewer-positions"

_ENOUGH_ANSWERS = 2  # before "nothing was drafted" means anything
_ENOUGH_DRAFTED = 100  # tokens: by chance alone a fitting pair is not wrong that often in a row
_ENOUGH_DRAFTS = 20  # before their length means anything


def at_start(
    speculation: Speculation,
    *,
    speculating: bool | None,
    types: Sequence[str] = (),
    cause: Finding | None = None,
) -> tuple[Finding, ...]:
    """Return what a server that has just become ready gives away.

    ``speculating`` is /slots' word for it and ``types`` are the ones that /props names; None and
    empty where the build does not tell. ``cause`` is what its log says of a draft that is not used.
    """
    named = {name for name in types if name != OFF}
    if speculation.is_off:
        if speculating or named:
            return (_still_drafting(named),)
        return ()
    if speculating is False:
        return (_not_speculating(speculation, cause),)
    wanted = set(speculation.type.split(","))
    if named and named != wanted:
        return (
            Finding(
                OTHER_TYPES,
                Severity.WARNING,
                f"the server drafts with {', '.join(sorted(named))}, not {speculation.type}",
                "look in server.args and llama.cpp's config file for what changes it",
            ),
        )
    return ()


def _still_drafting(named: set[str]) -> Finding:
    by = f" ({', '.join(sorted(named))})" if named else ""
    return Finding(
        STILL_DRAFTING,
        Severity.BLOCKER,
        f"the baseline speculates{by}: nothing can be compared with it",
        "look in server.args and llama.cpp's config file for what turns it on",
    )


def _not_speculating(speculation: Speculation, cause: Finding | None) -> Finding:
    if cause is not None:
        return Finding(
            cause.code,
            Severity.BLOCKER,
            f"ready, but not speculating: {cause.what}",
            cause.advice,
            cause.fixes,
        )
    return Finding(
        NOT_SPECULATING,
        Severity.BLOCKER,
        f"ready, but not speculating, although {speculation.type} was asked for",
        "its log gives no reason; `spectui doctor` looks at the models",
    )


def of_run(run: Run, summary: Summary | None = None) -> tuple[Finding, ...]:
    """Return what the answers of a run show about its drafting so far.

    ``summary`` is the run's, where it is known already.
    """
    speculation = run.arm.speculation
    if speculation.is_off:
        return (_still_drafting(set()),) if run.unverified else ()
    summary = summary or summarise(run)
    acceptance = summary.acceptance
    if not run.drafted:
        return (_never_drafted(speculation),) if summary.requests >= _ENOUGH_ANSWERS else ()
    if not acceptance.accepted and acceptance.drafted >= _ENOUGH_DRAFTED:
        return (_never_accepted(speculation, acceptance),)
    length = speculation.draft_length
    trained = len(acceptance.accepted_at)
    if length is not None and 0 < trained < length:
        return (_fewer_positions(speculation, length, trained),)
    if acceptance.drafts >= _ENOUGH_DRAFTS and acceptance.cut_short(length, summary.requests):
        return (_short_drafts(speculation, acceptance),)
    return ()


def _never_drafted(speculation: Speculation) -> Finding:
    lookups = [kind for kind in speculation.kinds if not kind.drafts_with_model]
    if lookups and len(lookups) == len(speculation.kinds):
        advice = (
            "it only drafts what the text repeats: try a shorter lookup, or prompts that rewrite"
            " their own text"
        )
    else:
        advice = "lower p_min and n_min, or look in the log for why the draft is not used"
    what = f"{speculation.name} has not drafted a single token: it cannot make anything faster"
    return Finding(NEVER_DRAFTED, Severity.BLOCKER, what, advice)


def _never_accepted(speculation: Speculation, acceptance: Acceptance) -> Finding:
    what = f"no draft was ever accepted ({acceptance.drafted:,} tokens drafted): the pairing is"
    what += " broken"
    advice = "take a drafter of the same family; `spectui models --target` lists the fitting ones"
    if not any(kind.drafts_with_model for kind in speculation.kinds):
        what = f"none of {acceptance.drafted:,} drafted tokens was accepted"
        advice = "the prompts do not repeat themselves: a longer lookup drafts less, and better"
    return Finding(NEVER_ACCEPTED, Severity.BLOCKER, what, advice)


def _fewer_positions(speculation: Speculation, length: int, trained: int) -> Finding:
    knobs = [knob for knob in speculation.knobs if knob.is_length]
    fixes = tuple(
        Fix(f"set {knob.label} to {trained}", ((f"speculation.{knob.key}", trained),))
        for knob in knobs[:1]
    )
    what = (
        f"the server drafts at most {trained} tokens, whatever the {length} asked for:"
        " the drafter was trained for no more"
    )
    return Finding(FEWER_POSITIONS, Severity.WARNING, what, "a longer draft changes nothing", fixes)


def _short_drafts(speculation: Speculation, acceptance: Acceptance) -> Finding:
    length = speculation.draft_length or 0
    mean = acceptance.mean_drafted or 0.0
    cutoff = next((k for k in speculation.knobs if k.label == "p_min"), None)
    confident = cutoff is not None and speculation.value(cutoff) > 0
    binds = "p_min ends them" if confident else "the drafter ends them by itself"
    names = " and ".join(k.label for k in speculation.knobs if k.is_length) or "its length"
    what = f"drafts are {mean:.1f} tokens long on average, {length} are allowed: {binds}"
    advice = f"turning {names} up changes nothing" + ("; turn p_min" if confident else "")
    return Finding(SHORT_DRAFTS, Severity.HINT, what, advice)
