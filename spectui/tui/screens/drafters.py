"""What can draft for the target: the models on disk, best first, and why the others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from spectui.domain.findings import Fix
from spectui.domain.models import ModelFacts, ModelKind
from spectui.domain.pairing import Candidate, Survey, file_name
from spectui.domain.speculation import KNOBS, Speculation
from spectui.domain.text import clean
from spectui.tui.glyphs import Glyphs
from spectui.tui.line import Line, shorten, wrap
from spectui.tui.look import Look
from spectui.tui.render.document import Document
from spectui.tui.screens.looking import Adopt, Looking
from spectui.tui.words import count, plural, size

_MARGIN: Final = 4
"""Cells before a row: the cursor's and the key's."""
_TYPE, _SIZE, _RATIO = 12, 7, 6
"""Cells of the columns behind the name."""
_REMARK: Final = 40
"""Cells for what to expect of a drafter, beside the columns."""
_BESIDE: Final = 100
"""From this width on that stands beside them, else on a line of its own."""
_FOLDER: Final = 40


class Drafters(Looking[Survey]):
    """A drafter is taken by its digit, with enter on the cursor, or with a click."""

    title_text = "drafters"
    doing = "reading the headers of the models on this machine"
    keys_text = "enter takes a drafter · / filters · r looks again · escape goes back"
    again_key = "r"
    _eager = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "again", "look again", id="drafters.again"),
        Binding("slash", "filter", "filter", id="drafters.filter"),
        Binding("down", "to_list", "to the list", show=False, id="drafters.list"),
    ]

    def __init__(
        self,
        ask: Callable[[], Future[Survey]],
        adopt: Adopt,
        known: Survey | None,
        keep: Callable[[Survey], None],
    ) -> None:
        """Show ``known`` at once where there is one; ``keep`` gets what is found anew."""
        super().__init__(ask, adopt)
        self._found = known
        self._keep = keep
        self._words: tuple[str, ...] = ()
        self._fixes: list[Fix] = []

    def compose(self) -> ComposeResult:
        """Yield the list, and under it the filter."""
        yield from super().compose()
        yield Input(placeholder="part of a name, a type or a reason", id="filter", compact=True)

    def keep(self, found: Survey) -> None:
        """Remember what was found."""
        self._keep(found)

    # the filter

    def action_filter(self) -> None:
        """Type what to look for."""
        self.add_class("-filter")
        self.query_one(Input).focus()

    def action_to_list(self) -> None:
        """Go from the filter to the list."""
        self._page.focus()

    def action_back(self) -> None:
        """Give up the filter first, then leave."""
        if not self.has_class("-filter"):
            super().action_back()
            return
        self.remove_class("-filter")
        self.query_one(Input).value = ""
        self._page.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show only what has these words in it."""
        event.stop()
        self._words = tuple(event.value.casefold().split())
        self._page.show(self._whole)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on in the list with the keyboard."""
        event.stop()
        self._page.focus()

    # what is chosen

    def chosen(self, number: int) -> None:
        """Take a drafter; the dashboard shows how its start goes."""
        if number < len(self._fixes):
            self._adopt(self._fixes[number], self._leave, lambda _error: None)

    def _leave(self) -> None:
        if self.is_current:
            self._asked += 1
            self.app.pop_screen()

    # what is shown

    def document(self, found: Survey, width: int, look: Look) -> Document:
        """Return the suggestion, the possible drafts, and the others with why not."""
        document, self._fixes = Document(), []
        document.add(_target(found.target))
        if not self._words:
            self._suggested(document, found, width)
        if not (found.fitting or found.unfit or found.broken):
            document.add(*_nothing(found, width, look.glyphs))
            return document
        fitting = [one for one in found.fitting if self._matches(_told(one))]
        unfit = [
            (one.facts.path, reason)
            for one in found.unfit
            if self._matches(_told(one)) and (reason := clean(one.why_not, limit=300))
        ]
        unfit += [
            (one.path, clean(one.reason, limit=300))
            for one in found.broken
            if self._matches((one.path, one.reason))
        ]
        paths = [one.facts.path for one in found.fitting]
        names = _names([*paths, *(path for path, _ in unfit)])
        if fitting:
            self._possible(document, fitting, names, width)
        elif not self._words:
            document.add(Line(), Line("no model on this machine can draft for it", "warn"))
        if unfit:
            document.add(*_others(unfit, names, width))
        if self._words and not fitting and not unfit:
            sought = clean(" ".join(self._words), limit=60)
            document.add(Line(), Line(f"  no model has {sought!r} in it", "muted"))
        return document

    def _matches(self, texts: Iterable[str]) -> bool:
        told = " ".join(texts).casefold()
        return all(word in told for word in self._words)

    def _suggested(self, document: Document, found: Survey, width: int) -> None:
        suggestion = found.suggestion
        document.add(Line(), Line("suggested", "muted bold"))
        why = wrap(clean(suggestion.why), width - _MARGIN - 1, 3)
        if suggestion.type:
            facts = next(
                (one.facts for one in found.fitting if one.facts.path == suggestion.draft), None
            )
            name = clean(file_name(suggestion.draft), limit=80)
            row = Line("  ").add(f"{document.next_key} ", "accent bold")
            row.add(suggestion.type, "good bold")
            row.add(f" with {name}" if name else "", "text bold")
            self._choice(document, row, suggestion.type, facts)
        document.add(*(Line(" " * _MARGIN).add(text, "muted") for text in why))

    def _possible(
        self, document: Document, fitting: Sequence[Candidate], names: dict[str, str], width: int
    ) -> None:
        columns = _MARGIN + _TYPE + _SIZE + _RATIO + 4 * 2
        longest = max(cell_len(names[one.facts.path]) for one in fitting)
        beside = width >= _BESIDE
        room = max(min(longest, width - columns - (_REMARK if beside else 1)), 16)
        head = Line(f"possible drafts ({len(fitting)})", "muted bold").pad(_MARGIN + room + 2)
        head.add(f"{'type':{_TYPE}}  {'size':>{_SIZE}}  {'ratio':>{_RATIO}}", "muted")
        document.add(Line(), head.add("  best first" if beside else "", "muted"))
        in_use = self.app.snapshot.draft  # type: ignore[attr-defined]  # the app is SpectuiApp
        for one in fitting:
            facts = one.facts
            ratio = f"1:{one.ratio:.1f}" if one.ratio else ""
            mine = file_name(facts.path) == in_use
            row = Line("  ").add(f"{document.next_key} ", "accent bold")
            row.add(shorten(names[facts.path], room), "text bold" if mine else "text")
            row.pad(_MARGIN + room + 2)
            row.add(f"{one.type:{_TYPE}}  {size(facts.size):>{_SIZE}}  {ratio:>{_RATIO}}  ", "text")
            remark = Line("in use", "good").add(", " if one.remark else "", "muted")
            remark = (remark if mine else Line()).outside(one.remark, "muted", 120)
            self._choice(document, row.extend(remark) if beside else row, one.type, facts)
            if remark and not beside:
                document.add(Line(" " * (_MARGIN + 2)).extend(remark))

    def _choice(self, document: Document, row: Line, kind: str, facts: ModelFacts | None) -> None:
        document.choice(row)
        speculation = self.app.snapshot.speculation  # type: ignore[attr-defined]  # likewise
        self._fixes.append(taking(kind, facts, speculation))


def taking(kind: str, draft: ModelFacts | None, now: Speculation) -> Fix:
    """Return the change that drafts with ``kind`` and this file; None: without a file.

    Knobs that the drafter cannot follow are set to what it can.
    """
    changes: list[tuple[str, object]] = [
        ("speculation.type", kind),
        ("models.draft", draft.path if draft else None),
    ]
    if draft is not None:
        longest = draft.longest_draft
        if longest and now.value(KNOBS["n_max"]) > longest:
            changes.append(("speculation.n_max", longest))
            if now.value(KNOBS["n_min"]) > longest:
                changes.append(("speculation.n_min", 0))
        if draft.kind is ModelKind.DSPARK and not draft.confidence:
            changes.append(("speculation.p_min", 0.0))
    name = f" with {clean(file_name(draft.path), limit=60)}" if draft else ""
    return Fix(f"{kind}{name}", tuple(changes))


def _told(one: Candidate) -> tuple[str, ...]:
    return one.facts.path, one.type, one.remark, one.why_not


def _target(facts: ModelFacts) -> Line:
    line = Line("for ", "muted").outside(file_name(facts.path), "text bold", 80)
    vocabulary = facts.vocabulary
    parts = (
        clean(facts.architecture, limit=30),
        f"{count(facts.parameters)} parameters" if facts.parameters else "",
        clean(facts.quantisation, limit=20),
        f"{vocabulary.size:,} tokens" if vocabulary.size else "",
        plural(facts.mtp_layers, "MTP layer") if facts.mtp_layers else "",
    )
    return line.add("".join(f" · {part}" for part in parts if part), "muted")


def _names(paths: Iterable[str]) -> dict[str, str]:
    """Return what to call each file: its name, with its folder where two have the same."""
    found = {path: clean(file_name(path), limit=120) for path in paths}
    alike = Counter(found.values())
    for path, name in found.items():
        if alike[name] > 1:
            folder = path.replace("\\", "/").rpartition("/")[0]
            found[path] = f"{name} in {clean(file_name(folder), limit=_FOLDER)}"
    return found


def _others(unfit: Sequence[tuple[str, str]], names: dict[str, str], width: int) -> list[Line]:
    """Return the files that cannot draft, each with its reason beside it."""
    longest = max(cell_len(names[path]) for path, _ in unfit)
    room = max(min(longest, width * 2 // 5), 12)
    lines = [Line(), Line(f"cannot draft for it ({len(unfit)})", "muted bold")]
    for path, reason in unfit:
        name = Line(" " * _MARGIN).add(shorten(names[path], room), "text").pad(_MARGIN + room + 2)
        for i, text in enumerate(wrap(reason, width - _MARGIN - room - 3, 3)):
            row = name if i == 0 else Line(" " * (_MARGIN + room + 2))
            lines.append(row.add(text, "muted"))
    return lines


def _nothing(found: Survey, width: int, glyphs: Glyphs) -> list[Line]:
    """Return where was looked in vain, and what to do."""
    lines = [Line(), Line(f"{glyphs.warn} no other model (*.gguf) was found", "warn bold")]
    if found.searched:
        lines.append(Line("  looked in", "muted"))
    for folder in found.searched:
        line = Line(" " * _MARGIN).outside(folder.path, "text", 200)
        note = f", {clean(folder.note, limit=80)}" if folder.note else ""
        lines.append(line.add(f"  {clean(folder.what, limit=60)}{note}", "muted"))
    todo = (
        "put a smaller model of the same family beside the target, then press r;"
        " `spectui models FOLDER` looks elsewhere"
    )
    return [*lines, Line(), *(Line("  ").add(text, "text") for text in wrap(todo, width - 3, 3))]
