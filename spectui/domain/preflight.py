"""Preflight: the five questions before a launch, answered from facts, and what would go wrong.

1. Does it all fit on the GPU? 2. Is the task predictable? 3. Is one request at a time acceptable?
4. Is there a fitting draft? 5. Has it been measured?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spectui.domain.checks_machine import machine_checks
from spectui.domain.checks_models import model_checks, named
from spectui.domain.checks_settings import settings_checks
from spectui.domain.facts import Facts
from spectui.domain.findings import Finding, Severity
from spectui.domain.fitting import Fit, look_at_memory
from spectui.domain.memory import Estimate
from spectui.domain.models import ModelFacts
from spectui.domain.pairing import Candidate, file_name, suggest
from spectui.domain.plan import Plan
from spectui.domain.profile import BUILTIN, TASKS
from spectui.domain.text import clean

PREDICTABLE = frozenset({"code", "rewrite", "math", "translation"})
"""Tasks whose answers mostly repeat or follow: drafts are accepted."""
OPEN = frozenset({"creative"})


class Reply(StrEnum):
    """An answer to one of the five questions."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Question:
    """One of the five questions. ``id`` is a stable name, ``why`` a sentence without full stop."""

    id: str
    question: str
    answer: Reply
    why: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found: the questions in their order (none without a profile), blockers first.

    ``memory`` is None where there is no profile, or its target cannot be read.
    """

    questions: tuple[Question, ...]
    findings: tuple[Finding, ...]
    memory: Estimate | None = None
    fit: Fit | None = None

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What would make the launch fail, or not do what it is meant to."""
        return tuple(f for f in self.findings if f.severity is Severity.BLOCKER)

    @property
    def verdict(self) -> str:
        """All of it in one line: "2 things would fail, 1 to look at"."""
        count = {level: sum(f.severity is level for f in self.findings) for level in Severity}
        fails, warns, hints = (
            count[level] for level in (Severity.BLOCKER, Severity.WARNING, Severity.HINT)
        )
        things = "thing" if fails == 1 else "things"
        parts = [f"{fails} {things} would fail" if fails else "nothing found that would fail"]
        if warns:
            parts.append(f"{warns} to look at")
        if hints:
            parts.append(f"{hints} {'hint' if hints == 1 else 'hints'}")
        return ", ".join(parts)


_ORDER = (Severity.BLOCKER, Severity.WARNING, Severity.HINT, Severity.GOOD)


def preflight(facts: Facts) -> Preflight:
    """Return what is to be said of ``facts``; nothing is launched or looked up."""
    findings = [*machine_checks(facts), *settings_checks(facts), *model_checks(facts)]
    plan = facts.plan
    if plan is None:
        return Preflight((), _sorted(findings))
    fit = look_at_memory(facts)
    if fit is not None:
        findings += fit.findings
    ordered = _sorted(findings)
    questions = (
        _fits(fit),
        _predictable(plan),
        _single(plan),
        _draft(facts, plan, ordered),
        _measured(facts, plan),
    )
    return Preflight(questions, ordered, fit.estimate if fit else None, fit)


def _sorted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    # two files on one disk say the same; a fix may hold a list, which no set takes
    unique = [found for i, found in enumerate(findings) if found not in findings[:i]]
    return tuple(sorted(unique, key=lambda finding: _ORDER.index(finding.severity)))


def _fits(fit: Fit | None) -> Question:
    if fit is None:
        why = "the target's header could not be read"
        return Question("fits", "Does it all fit on the GPU?", Reply.UNKNOWN, why)
    question = "Does it all fit on the GPU?" if fit.on_gpu else "Does it all fit in memory?"
    answer = Reply.UNKNOWN if fit.fits is None else Reply.YES if fit.fits else Reply.NO
    return Question("fits", question, answer, fit.why)


def _predictable(plan: Plan) -> Question:
    name, text = "predictable", "Is the task predictable?"
    if plan.prompts != BUILTIN:
        why = "these are prompts of your own: measure, acceptance tells"
        return Question(name, text, Reply.UNKNOWN, why)
    tasks = [task for task in plan.tasks if task in TASKS] or list(TASKS)
    likely = [task for task in tasks if task in PREDICTABLE]
    unlikely = [task for task in tasks if task in OPEN]
    if len(likely) == len(tasks):
        why = f"{_and(likely)} mostly repeat or follow a pattern"
        return Question(name, text, Reply.YES, why)
    if len(unlikely) == len(tasks):
        why = f"{_and(unlikely)} can go on in many ways, so fewer drafts are accepted"
        return Question(name, text, Reply.NO, why)
    parts = [f"{_and(likely)} {'is' if len(likely) == 1 else 'are'}"] if likely else []
    parts += [f"{_and(unlikely)} is not"] if unlikely else []
    rest = [task for task in tasks if task not in {*likely, *unlikely}]
    parts += [f"{_and(rest)} lies between"] if rest else []
    return Question(name, text, Reply.UNKNOWN, f"{', '.join(parts)}: look at each task by itself")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _single(plan: Plan) -> Question:
    name, text = "single", "Is one request at a time acceptable?"
    slots = plan.number("parallel")
    if slots is not None and slots > 1:
        why = f"parallel is {slots}: with several at work there is little idle time to draft in"
        return Question(name, text, Reply.NO, why)
    how = "one slot" if slots == 1 else "llama-server's own slots share one cache"
    why = f"spectui sends one at a time ({how}); for many users at once measure with them"
    return Question(name, text, Reply.YES, why)


_DRAFT_TROUBLE = frozenset({"draft-missing", "draft-wrong-kind", "vocab-mismatch", "mtp-missing"})


def _draft(facts: Facts, plan: Plan, findings: Sequence[Finding]) -> Question:
    name, text = "draft", "Is there a fitting draft?"
    target = facts.target.model if facts.target else None
    if target is None:
        return Question(name, text, Reply.UNKNOWN, "the target's header could not be read")
    problem = facts.draft.problem if facts.draft else None
    if problem is not None and facts.draft is not None:
        why = f"{named(facts.draft.path)} cannot be read"
        return Question(name, text, Reply.NO, why)
    trouble = next((f for f in findings if f.code in _DRAFT_TROUBLE), None)
    if trouble is not None:
        advice = _suggestion(facts, target)
        return Question(name, text, Reply.NO, f"{trouble.what}{advice}")
    if facts.pair is not None and plan.drafts_with_model:
        ratio = facts.pair.ratio
        size = f", {ratio:.1f} times smaller" if ratio and ratio >= 1 else ""
        remark = f" ({facts.pair.remark})" if facts.pair.remark else ""
        return Question(name, text, Reply.YES, f"{named(facts.pair.facts.path)}{size}{remark}")
    if target.mtp_layers:
        layers = "layer" if target.mtp_layers == 1 else "layers"
        why = f"the target drafts by itself: it has {target.mtp_layers} MTP {layers}"
        return Question(name, text, Reply.YES, why)
    if plan.speculates and plan.kinds and not plan.drafts_with_model:
        why = f"{plan.types_text} drafts from the text and needs none"
        return Question(name, text, Reply.YES, f"{why}{_suggestion(facts, target)}")
    return _found(name, text, facts)


def _found(name: str, text: str, facts: Facts) -> Question:
    fitting = [one for one in facts.beside if not one.why_not]
    if facts.pair is not None and not facts.pair.why_not:
        fitting.insert(0, facts.pair)
    if fitting:
        why = f"{named(fitting[0].facts.path)} fits ({fitting[0].remark or fitting[0].type})"
        return Question(name, text, Reply.YES, why)
    count = len(facts.beside)
    where = "no model lies beside it"
    if count:
        none = "the 1 model beside it does not fit"
        where = none if count == 1 else f"none of the {count} models beside it fits"
    why = f"{where}; n-gram types need none, `spectui models` looks further"
    return Question(name, text, Reply.NO, why)


def _suggestion(facts: Facts, target: ModelFacts) -> str:
    """Return which other file to try, as the end of a sentence."""
    mine = facts.draft.path if facts.draft else ""
    others: list[Candidate] = [one for one in facts.beside if one.facts.path != mine]
    best = suggest(target, others)
    return f"; {clean(file_name(best.draft), limit=60)} would fit" if best.draft else ""


def _measured(facts: Facts, plan: Plan) -> Question:
    name, text = "measured", "Has it been measured?"
    speedup, date = plan.evidence.get("speedup"), plan.evidence.get("date")
    if isinstance(speedup, int | float):
        when = f" on {clean(str(date))[:10]}" if date else ""
        hardware = plan.evidence.get("hardware")
        where = f", {clean(str(hardware), limit=80)}" if hardware else ""
        why = f"{speedup:.2f} times the baseline's speed{when}{where} (the profile's [evidence])"
        return Question(name, text, Reply.YES, why)
    if facts.measured is not None:
        found = facts.measured
        why = f"{clean(found.result, limit=160)}, on {found.date[:10]}"
        return Question(name, text, Reply.YES, why)
    why = "there is no record of it: run `spectui measure PROFILE`"
    return Question(name, text, Reply.NO, why)
