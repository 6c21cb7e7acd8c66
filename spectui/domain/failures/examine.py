"""Reads a log line by line, in bounded memory, and says what went wrong in its last start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spectui.domain.failures.command import CommandLine
from spectui.domain.failures.diagnosis import ECHOES, Diagnosis, around, worded
from spectui.domain.failures.kinds import FailureClass
from spectui.domain.failures.lines import Line, read_line
from spectui.domain.failures.running import REJECTED, UNKNOWN, UNUSED, ZERO_LENGTH
from spectui.domain.failures.starting import CRASH
from spectui.domain.failures.table import BY_NAME, CLASSES
from spectui.domain.text import clean

_ENOUGH_TOKENS = 64  # generated without one draft: nothing drafts
_ENOUGH_DRAFTED = 256  # drafted without one accepted: not chance
_TODAY = 9450  # the build since which a draft model alone turns nothing on

_HINT = re.compile(
    r"error|fail|not |n't|nvalid|nknown|ssert|bort|kill|llegal|emory|enied|issing|equires|magic"
    r"|version|mode|nauth|xce|fault|sig|SIG|exec|ibrary|nable|ermin|no |wrong|ddress|ost|tensor"
    r"|dll|draft|n_ctx|bad|annot|is a dir|must|ggml_|context|spec|Xid|hang|sage|nsupported"
    r"|ERROR|rror|CUDA|[Bb]us|loating|split|is version|NVRM|CLIP|/metrics|Kill|space|No such"
    r"|orrupt",
)
"""A line without any of these matches no pattern of the table."""

_TELLING_NUMBER = re.compile(r"/metrics|Errno")
_DIGITS = str.maketrans("123456789", "000000000")
_SHAPE = 400  # characters
_SHAPES = 2000

_TRAINED = re.compile(r"\b(eagle3|dflash|dspark) requires ctx_other")
_ECHO = re.compile(
    r"fit_params: encountered an error|failed to measure|failed to mlock|is normal during memory"
)
_ERROR = re.compile(r"\berror\b|\bfailed\b", re.IGNORECASE)
_GAVE_UP = re.compile(r"exiting due to|error loading model|(?:failed|unable) to load model")
_QUOTED = re.compile(
    r"(?:request|response|message|to_send|prompt|input)\w{0,20}: {0,3}(?:data: )?"
    r"(?!\{\"error\")[\"'{\[]"
)
"""What people or the model wrote, as a verbose server logs it: none of it is the server's word."""

_MISFIT = re.compile(r"ggml_can_|get_sub_batch")
"""In an assertion: a draft whose sizes or tokens are not the target's."""
_ON_INFO = tuple(
    known
    for known in CLASSES
    if known.name in {"router-mode", "metrics-disabled", "api-key-rejected"}
)
_INFO_HINTS = ("router mode", "/metrics", "model name is missing", "API Key")

_STARTS = tuple(
    (hint, re.compile(text).search)
    for hint, text in (
        ("initializing", r"llama_server: initializing"),
        ("verbosity", r"verbosity = \d{1,2} \(adjust"),
        ("build", r"(?:^|main: )build(?:_info)?(?::| =) \w"),
        ("system info", r"system info: n_threads"),
        ("system_info", r"system_info: n_threads"),
        ("Log start", r"Log start$"),
    )
)
"""What a server says once, as it starts; the word before each pattern is there for speed."""

_BUILD = re.compile(r"\bbuild(?:_info)?[:= (]{1,3}b?(\d{3,6})\b")
_READY = (
    "model loaded",
    "all slots are idle",
    "starting the main loop",
    "server is listening on h",
)
_DRAFT = re.compile(r"loading draft model '([^']{0,400})'")
_IMPLEMENTED = re.compile(r"adding speculative implementation '|auto-detected speculative type")
_GENERATED = re.compile(r"(?<!prompt )eval time = .{0,40}?/ +(\d{1,9}) (?:tokens|runs)")
_ACCEPTED = re.compile(
    r"draft acceptance(?: rate)? = .{0,40}?(\d{1,9}) accepted / +(\d{1,9}) generated"
)
_SIZES = (
    ("layers", "offloaded", re.compile(r"offloaded (\d{1,4})/\d{1,4} layers to GPU")),
    ("context", "n_ctx", re.compile(r"n_ctx(?:_seq|_slot)? +?= +(\d{1,12})")),
    ("context", "n_ctx", re.compile(r"n_ctx(?:_seq|_per_seq) \((\d{1,12})\)")),
    ("trained", "n_ctx", re.compile(r"n_ctx_train(?: \(| += )(\d{1,12})")),
)
"""A fact's name, a word for speed, and where its number stands."""

_EXITS = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"^exit(?:ed)?(?: status| code)?[:=] *(-?\d{1,10})\b",
        r"^exit: still running; after SIGTERM (-?\d{1,3})",
        r"exited with (?:code|status) (-?\d{1,10})",
        r"(?:exit (?:status|code)[ =:]{1,3}|no longer running: )(-?\d{1,10}|0xc[\da-f]{7})\b",
        r"process exited, code=exited, status=(\d{1,3})",
        r"^Exited \((\d{1,3})\)",
    )
)
_SIGNALLED = re.compile(r"code=(?:killed|dumped), (?:status|signal)=(?:(\d{1,2})/)?([A-Z]{3,5})")
_SIGNALS = {"KILL": 9, "SEGV": 11, "ILL": 4, "ABRT": 6, "BUS": 7, "FPE": 8, "TERM": 15, "INT": 2}
_CLEAN = frozenset({0, -2, -15, 130, 143})
_Found = dict[str, tuple[FailureClass, str, dict[str, str]]]
"""A class's name → the class, the line that told, what the pattern took from it."""

_SAID = {"vocab-mismatch", "draft-wrong-kind", "draft-missing", "draft-load-failed"}


@dataclass(slots=True)
class _Start:
    """What one start of the server has said so far."""

    found: _Found = field(default_factory=dict)
    markers: set[int] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    exit: int | None = None
    build: int | None = None
    stamp: float | None = None
    ready: bool = False
    gave_up: bool = False
    drafting: bool = False
    generated: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_line: str = ""
    last_drafted: str = ""
    first_error: str = ""
    last: str = ""


class Examiner:
    """Takes a log line by line; ``diagnosis()`` may be asked at any time.

    Memory does not grow with the log: one line of each class is kept. Where the log holds several
    starts, the last one counts.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        """Start with an empty log, of a server that was started with ``arguments`` if known."""
        self._now = _Start()
        self._command = CommandLine.of(arguments) if arguments else None
        self._in_header = bool(arguments)
        self._header_exit: int | None = None
        self._harmless: set[str] = set()
        self._in_debug = False

    def feed(self, raw: str) -> None:
        """Take the next line, with or without its line break."""
        line = read_line(raw)
        text = line.text
        if not text:
            return
        if line.level in {"", "I"} and (command := CommandLine.find(text)) is not None:
            self._now, self._command = _Start(), command
            self._in_header, self._header_exit = True, None
            return
        if self._is_quoted(line):
            return
        self._notice_start(line)
        self._notice_exit(text)
        self._notice_facts(line)
        self._match(line)
        self._now.last = text

    def _is_quoted(self, line: Line) -> bool:
        """Whether the line is what people or the model wrote, in a log that shows it.

        A text of several lines goes on without stamps; there only a crash is taken for one.
        """
        if line.stamp is not None:
            self._in_debug = line.level == "D"
        elif self._in_debug and not line.level:
            self._match_any(line.text, CRASH)
            return True
        return line.level in {"", "D"} and _QUOTED.search(line.text) is not None

    def _notice_start(self, line: Line) -> None:
        now = self._now
        again = (
            line.stamp is not None
            and now.stamp is not None
            and not line.child
            and line.stamp + 1 < now.stamp
        )
        marker = None
        if not line.child and line.level not in {"E", "W"}:
            marker = next(
                (i for i, (hint, p) in enumerate(_STARTS) if hint in line.text and p(line.text)),
                None,
            )
        if again or (marker is not None and (marker in now.markers or not now.markers)):
            self._restart()
        if marker is not None:
            self._now.markers.add(marker)
        if line.stamp is not None and not line.child:
            self._now.stamp = line.stamp

    def _restart(self) -> None:
        if self._in_header:  # a head with arguments and exit status belongs to what follows it
            self._in_header = False
            return
        if self._now.markers:
            self._command, self._header_exit = None, None
        kept = {k: v for k, v in self._now.found.items() if k == "gpu-missing"}
        self._now = _Start(found={} if self._now.markers else kept)

    def _notice_exit(self, text: str) -> None:
        if "xit" not in text and "code=" not in text and "no longer" not in text:
            return
        signalled = _SIGNALLED.search(text)
        if signalled:
            name = signalled.group(2)
            number = _SIGNALS.get(name) or int(signalled.group(1) or 0)
            self._now.exit = -number if number else None
            return
        found = next((m for p in _EXITS if (m := p.search(text))), None)
        if found is None:
            return
        code = int(found.group(1), 0)
        if self._in_header and not self._now.markers:
            self._header_exit = code
        else:
            self._now.exit = code

    def _notice_facts(self, line: Line) -> None:
        now, text = self._now, line.text
        if not line.child and any(words in text for words in _READY):
            now.ready, now.gave_up = True, False
            now.first_error = ""
            for name in [name for name, hit in now.found.items() if hit[0].loading]:
                del now.found[name]
        if "draft" in text or "spec" in text or "ctx_other" in text:
            self._notice_drafting(text)
        if "eval time" in text and (generated := _GENERATED.search(text)):
            now.generated += int(generated.group(1))
        if "build" in text and (build := _BUILD.search(text)):
            now.build = int(build.group(1))
        for name, hint, pattern in _SIZES:
            if hint in text and (size := pattern.search(text)):
                now.facts[name] = size.group(1)

    def _notice_drafting(self, text: str) -> None:
        now = self._now
        if loading := _DRAFT.search(text):
            now.facts["draft"] = loading.group(1)
            now.draft_line = text
        if _IMPLEMENTED.search(text):
            now.drafting = True
        if trained := _TRAINED.search(text):
            now.facts["draft_kind"] = trained.group(1)
        if accepted := _ACCEPTED.search(text):
            now.accepted += int(accepted.group(1))
            now.drafted += int(accepted.group(2))
            now.last_drafted = text

    def _match(self, line: Line) -> None:
        text = line.text
        if line.level in {"I", "D"}:
            if any(hint in text for hint in _INFO_HINTS):
                self._match_any(text, _ON_INFO)
            return
        if line.level != "E" and not _HINT.search(text):
            return
        if _ECHO.search(text) and "ctx_other" not in text:
            return
        if _GAVE_UP.search(text):
            self._now.gave_up = True
        if not self._now.first_error and (line.level == "E" or _ERROR.search(text)):
            self._now.first_error = text
        shape = "" if _TELLING_NUMBER.search(text) else text.translate(_DIGITS)
        if shape not in self._harmless and not self._match_any(text, CLASSES):
            self._remember_harmless(shape)

    def _match_any(self, text: str, classes: Sequence[FailureClass]) -> bool:
        """Record the first of ``classes`` that ``text`` tells of; return whether there is one."""
        lowered = text.lower()
        for known in classes:
            hit = next((m for p in known.patterns if (m := p.search(lowered))), None)
            if hit is not None:
                self._record(known, text, hit)
                return True
        return False

    def _remember_harmless(self, shape: str) -> None:
        """Look once at what a long log says a million times with other numbers."""
        if 0 < len(shape) <= _SHAPE and len(self._harmless) < _SHAPES:
            self._harmless.add(shape)

    def _record(self, known: FailureClass, text: str, hit: re.Match[str]) -> None:
        if known.first and self._now.markers and not self._in_header:
            self._restart()  # it is said before anything else: what came before is another start
        same = text if len(hit.string) == len(text) else hit.string  # "İ" is longer in lower case
        taken = {name: same[slice(*hit.span(name))] for name, v in hit.groupdict().items() if v}
        facts = {name: clean(value, limit=200).strip() for name, value in taken.items()}
        said = facts.pop("said", "")
        shown = said if said and "{" in text else around(text, hit)  # out of an HTTP answer
        earlier = self._now.found.get(known.name)
        if earlier is None or (facts and not earlier[2]):
            shown = earlier[1] if earlier is not None else shown
            self._now.found[known.name] = (known, shown, facts)

    @property
    def exit(self) -> int | None:
        """The exit status that the log tells, None where it tells none."""
        return self._header_exit if self._now.exit is None else self._now.exit

    def diagnosis(self, exit_code: int | None = None) -> Diagnosis | None:
        """Return what went wrong so far; None where nothing did.

        ``exit_code`` is the server's exit status (negative: a signal; 128 + signal as a shell has
        it), where it is known otherwise than from the log.
        """
        now = self._now
        code = self.exit if exit_code is None else exit_code
        found = dict(now.found)
        self._from_exit(found, code)
        self._from_behaviour(found)
        failed = now.gave_up if code is None else code not in _CLEAN
        if not found and failed:
            found[UNKNOWN.name] = (UNKNOWN, now.first_error or now.last, {})
        order = [known.name for known in CLASSES]
        ranked = sorted(found, key=order.index)
        if not ranked:
            return None
        known, line, facts = found[ranked[0]]
        echoes = ("model-wrong-kind", *ECHOES.get(known.name, ()))
        also = tuple(name for name in ranked[1:] if name not in echoes)
        return worded(known, line, code, also, now.facts | facts)

    def _from_exit(self, found: _Found, code: int | None) -> None:
        if code is None or code in _CLEAN:
            return
        known = next((known for known in CLASSES if code in known.exits), None)
        if known is None or known.name in found:
            return
        if known.first and found:  # a shell's 126 and 127 say nothing beside a log that does
            return
        found[known.name] = (known, self._now.first_error or self._now.last, {})

    def _from_behaviour(self, found: _Found) -> None:
        """Add what no single line says: a draft that nothing uses, or that never hits."""
        now, command = self._now, self._command
        if command and command.zero_length and command.drafts_with_model:
            found.setdefault(ZERO_LENGTH.name, (ZERO_LENGTH, command.shown, {}))
            return
        trained = now.facts.get("draft_kind") or (command.trained if command else "")
        # what a draft does that was made for another target, or for another type
        broken = found.get("assertion") or found.get("drafting-failed")
        if broken and broken[0].name == "assertion" and not _MISFIT.search(broken[1]):
            broken = None
        if trained and broken and not (command and command.joins_drafts):
            wrong = BY_NAME["draft-wrong-kind"]
            facts = {"kind": trained, "draft_kind": trained}
            found.setdefault(wrong.name, (wrong, broken[1], facts))
        if now.drafted >= _ENOUGH_DRAFTED and not now.accepted:
            found[REJECTED.name] = (REJECTED, now.last_drafted, {})
        if not now.ready or _SAID & found.keys() or now.drafting or now.drafted:
            return
        # stamps came with the builds that want a type beside the draft model
        if (now.stamp is None and now.build is None) or (now.build or _TODAY) < _TODAY:
            return
        draft = now.facts.get("draft") or (command.draft if command else "")
        idle = not command.uses_draft if command else now.generated >= _ENOUGH_TOKENS
        if draft and idle and "mtp" not in draft.lower():  # an MTP sidecar is used unasked
            line = now.draft_line or (command.shown if command else "")
            found[UNUSED.name] = (UNUSED, line, {"file": draft})
        elif command and command.needs_draft and not draft:
            missing = BY_NAME["draft-missing"]
            found[missing.name] = (missing, command.shown, {"type": command.needs_draft})


def diagnose(
    lines: Iterable[str], exit_code: int | None = None, *, arguments: Sequence[str] = ()
) -> Diagnosis | None:
    """Return what went wrong with the server that wrote ``lines``; None where nothing did.

    ``exit_code`` as in ``Examiner.diagnosis``; ``arguments`` are those that the server was started
    with, for whoever started it: some failures show only there.
    """
    examiner = Examiner(arguments)
    for line in lines:
        examiner.feed(line)
    return examiner.diagnosis(exit_code)
