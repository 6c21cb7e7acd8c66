"""What the dashboard says where somebody else runs the server: nothing there can be changed."""

from __future__ import annotations

from typing import Final

from spectui.domain.acceptance import Acceptance
from spectui.domain.attached import WHY_NOT, Attachment
from spectui.domain.phases import UP, Phase
from spectui.domain.samples import Snapshot
from spectui.domain.text import clean, duration
from spectui.tui.line import Line, wrap
from spectui.tui.look import Look
from spectui.tui.plans import Plan

_BARRED: Final = frozenset(
    {
        *("apply", "baseline", "server", "export", "choose_type", "revert"),
        *("move(-1)", "move(1)", "step(-1)", "step(1)"),
        *("checkup", "drafters", "fix(0)", "fix(1)", "fix(2)"),
    }
)

PHASES: Final = {Phase.STARTING: "connecting", Phase.FAILED: "not reached"}
"""Words for phases that mean something else where nothing was started."""


def barred(snapshot: Snapshot) -> frozenset[str]:
    """Return the actions that have no meaning here: not in the footer, the palette, the help."""
    return _BARRED if snapshot.attached is not None else frozenset()


def phase_word(snapshot: Snapshot) -> str:
    """Return the phase as it is called here."""
    known = PHASES.get(snapshot.phase) if snapshot.attached else None
    return known or str(snapshot.phase)


def measuring(snapshot: Snapshot) -> Plan:
    """Return the question before prompts are sent to somebody else's server."""
    attached = snapshot.attached
    assert attached is not None  # noqa: S101 - asked on a watched server only
    return Plan(
        "measure",
        f"This sends every prompt of the workload to {clean(snapshot.url, limit=100)}, one after"
        " the other. Whoever else uses that server waits for it meanwhile, and what they send"
        " is counted too. It is measured as it runs; there is no baseline to compare with.",
        "send them",
    )


def said(attached: Attachment) -> str:
    """Return what the server says of its speculation."""
    types = clean(", ".join(attached.types), limit=120)
    if attached.speculating is False:
        return "it does not speculate"
    if attached.speculating or types:
        return f"it speculates{': ' if types else ''}{types}"
    return "it does not say whether it speculates"


def since_start(totals: Acceptance) -> str:
    """Return what came of drafts since the server started, empty where nothing did."""
    if totals.mean_length is None:
        return ""
    share = f"{totals.rate:.0%} of {totals.drafted} accepted, " if totals.rate is not None else ""
    return f"since it started: {share}{totals.mean_length:.1f} tokens a step"


def knobs(snapshot: Snapshot, look: Look, width: int, height: int) -> list[Line]:
    """Return the panel's lines in place of the knobs: what runs, and why it is not to be turned."""
    attached = snapshot.attached
    assert attached is not None  # noqa: S101 - drawn on a watched server only
    lines = [Line(text, "text") for text in wrap(said(attached), width, 2)]
    lines += [Line(text, "muted") for text in wrap(since_start(attached.totals), width, 3)]
    for text in attached.missing:
        lines += [Line(row, "warn") for row in wrap(f"{look.glyphs.warn} {clean(text)}", width, 2)]
    lines += [Line(text, "muted") for text in wrap(WHY_NOT, width, 2)]
    if attached.why_not_measure:
        press = Line(f"no prompts: {clean(attached.why_not_measure)}", "muted").fit(width)
    else:
        press = Line(" m measure it as it runs ", "accent reverse", "screen.measure")
    room = max(height - 1, 0)
    return [*lines[:room], *[Line()] * (room - len(lines)), press]


def away(snapshot: Snapshot, look: Look, width: int) -> list[Line]:
    """Return why there is no chart yet, or no more."""
    if snapshot.phase in {Phase.FAILED, Phase.GONE}:
        reason = clean(snapshot.reason, limit=200) or "it does not answer"
        text = f"{look.glyphs.bad} {reason}"
        again = Line("spectui keeps trying, and goes on when it is back", "muted")
        return [Line(), *(Line(row, "bad") for row in wrap(text, width, 4)), again]
    if snapshot.phase in UP:
        measure = Line("m", "accent bold", "screen.measure").add(" sends prompts of ours", "muted")
        return [Line(), Line("nothing has been decoded since spectui came", "muted"), measure]
    since = duration(snapshot.at - snapshot.phase_since)
    return [Line(), Line(f"{phase_word(snapshot)}, for {since}", "muted")]
