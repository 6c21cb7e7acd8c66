"""Which way to draft, or which several."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from spectui.domain.models import ModelKind
from spectui.domain.pairing import KIND_NAMES, TYPE_OF, Candidate, Survey, file_name
from spectui.domain.speculation import OFF, TYPES, Draft, Speculation, canonical_type
from spectui.domain.text import clean
from spectui.tui.bridge import Ended
from spectui.tui.line import Line, wrap
from spectui.tui.look import Look
from spectui.tui.pending import together
from spectui.tui.render.document import Document
from spectui.tui.screens.dialogue import Dialogue
from spectui.tui.widgets.page import Page

Check = Callable[[Speculation], tuple[tuple[str, str], ...]]

_NAME = 21
"""Cells before what a type is: the cursor, its box and the longest name."""


class Types(Dialogue[str]):
    """Lists every type with what it is, or why it cannot be used.

    Enter takes the one under the cursor; once space has marked some, enter takes these. The result
    is the type as a profile writes it, several with commas in the order in which they are asked.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark_here", "mark", id="types.mark"),
    ]

    def __init__(
        self, speculation: Speculation, check: Check, look: Look, draft: str, survey: Survey | None
    ) -> None:
        """Begin with a setting; ``check`` says what the server would choke on.

        ``draft`` is the draft model's file name, ``survey`` what is known of the models.
        """
        super().__init__()
        self._speculation, self._check, self._look = speculation, check, look
        self._draft, self._survey = draft, survey
        self._marked = set(speculation.type.split(","))
        self._combining = len(self._marked) > 1
        self._kinds = list(TYPES)

    def compose(self) -> ComposeResult:
        """Yield the list, and what the keys would do now."""
        with Vertical(id="box") as box:
            box.border_title = Content("speculation type")
            page = Page(eager=True, digits=False)
            page.look = self._look
            yield page
            yield Static(id="foot", classes="foot", markup=False)

    def on_mount(self) -> None:
        """Put the cursor on what is chosen now."""
        page = self.query_one(Page)
        page.focus()
        page.show(self._document)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        first = next((i for i, kind in enumerate(self._kinds) if kind in self._marked), 0)
        self.query_one(Page).point_at(first)
        self._explain()

    def know(self, survey: Survey) -> None:
        """Take what was found out about the models meanwhile."""
        self._survey = survey
        self._refresh()

    def on_ended(self, event: Ended) -> None:
        """Take what was found out; where nothing could be, the start of the server will tell."""
        event.stop()
        if event.then is not None:
            event.then(event.result, event.error)

    # why not

    def _refused(self, kind: str) -> str:
        """Return why a type cannot be used at all, an empty string where it can."""
        if kind == OFF:
            return ""
        # its name stands before it already
        return self._type_problem(kind).removeprefix(f"{kind} ") or self._misfit(kind)

    def _type_problem(self, kinds: str) -> str:
        found = self._check(self._speculation.with_type(kinds))
        return next((clean(why, limit=200) for key, why in found if key == "type"), "")

    def _misfit(self, kind: str) -> str:
        """Return what the models have against a type, where they are known."""
        if self._survey is None or not TYPES[kind].drafts_with_model:
            return ""
        mine = self._mine(self._survey)
        if kind == "draft-mtp" and self._survey.target.mtp_layers:
            return ""
        if mine is None:
            wants_heads = kind == "draft-mtp" and not self._draft
            return "the target has no MTP layers" if wants_heads else ""
        if TYPE_OF.get(mine.facts.kind) == kind:
            return clean(mine.why_not, limit=200)
        if TYPES[kind].draft is Draft.OPTIONAL:
            return "neither the target nor the draft has MTP layers"
        plain = mine.facts.kind is ModelKind.MODEL
        what = "a plain model" if plain else f"of another kind ({KIND_NAMES[mine.facts.kind]})"
        return f"the draft model is {what}"

    def _mine(self, survey: Survey) -> Candidate | None:
        every = (*survey.fitting, *survey.unfit)
        return next((one for one in every if file_name(one.facts.path) == self._draft), None)

    def _clashing(self, kind: str) -> list[str]:
        """Return the marked types that it cannot be combined with."""
        if kind == OFF or kind in self._marked:
            return []
        return [
            other
            for other in self._marked
            if other != OFF and self._type_problem(f"{other},{kind}")
        ]

    # what a person does

    def action_mark_here(self) -> None:
        """Mark the type under the cursor, or take its mark away."""
        at = self.query_one(Page).cursor
        if at is not None:
            self.action_mark(self._kinds[at])

    def action_mark(self, kind: str) -> None:
        """Mark a type or take its mark away; one that cannot be combined stays as it is."""
        self.query_one(Page).point_at(self._kinds.index(kind))
        if kind in self._marked:
            self._marked = (self._marked - {kind}) or {OFF}
        elif self._refused(kind) or self._clashing(kind):
            return
        else:
            self._marked = {OFF} if kind == OFF else (self._marked - {OFF}) | {kind}
        self._combining = True
        self._refresh()

    def on_page_moved(self, event: Page.Moved) -> None:
        """Say what the keys would do here."""
        event.stop()
        self._explain()

    def on_page_chosen(self, event: Page.Chosen) -> None:
        """Take what is marked, or the one under the cursor."""
        event.stop()
        wanted = self._wanted(self._kinds[event.number])
        if any(self._refused(kind) for kind in wanted.split(",")):
            self._explain()
            return
        self.dismiss(wanted)

    def _wanted(self, kind: str) -> str:
        return canonical_type(",".join(self._marked)) if self._combining else kind

    # drawing

    def _refresh(self) -> None:
        self.query_one(Page).show(self._document, keep=True)
        self._explain()

    def _document(self, width: int) -> Document:
        document = Document()
        order = canonical_type(",".join(self._marked)).split(",")
        for kind in self._kinds:
            mark = str(order.index(kind) + 1) if kind in order and len(order) > 1 else "x"
            box = f"[{mark if kind in self._marked else ' '}] "
            why = self._refused(kind)
            line = Line("  ").add(box, "accent bold", f"screen.mark('{kind}')")
            line.add(kind, "muted" if why else "text bold" if kind in self._marked else "text")
            line.pad(_NAME)
            line.add(why or TYPES[kind].summary, "muted")
            if not why and (clashing := self._clashing(kind)):
                line.add(f" · not beside {' and '.join(clashing)}", "warn")
            document.choice(line.fit(width))
        return document

    def _explain(self) -> None:
        """Say what enter and space would do, or why they would not."""
        page, foot = self.query_one(Page), self.query_one("#foot", Static)
        width = max(page.scrollable_content_region.width, 20)
        kind = self._kinds[page.cursor or 0]
        said, tone = self._space(kind)
        lines = [*self._enter(kind, width), *(Line(text, tone) for text in wrap(said, width, 2))]
        lines.append(Line("escape closes", "muted"))
        parts = [
            (
                self._look.text(piece.text),
                Style.from_rich_style(self._look.style(piece.tone)),
            )
            for line in lines
            for piece in [*line.pieces, *Line("\n").pieces]
        ]
        foot.update(Content.assemble(*parts[:-1]))

    def _enter(self, kind: str, width: int) -> list[Line]:
        wanted = self._wanted(kind)
        for one in wanted.split(","):
            if why := self._refused(one):
                said = f"{self._look.glyphs.bad} {one}: {why}"
                return [Line(text, "bad") for text in wrap(said, width, 2)]
        told = together(self._speculation.with_type(wanted))
        return [Line(text, "text") for text in wrap(f"enter takes {told}", width, 3)]

    def _space(self, kind: str) -> tuple[str, str]:
        clashing = self._clashing(kind)
        if self._refused(kind):
            return "r on the dashboard lists the drafters there are", "muted"
        if clashing:
            why = self._type_problem(f"{clashing[0]},{kind}")
            return f"space cannot add it: {why}", "warn"
        if kind in self._marked:
            return "space takes its mark away", "muted"
        if kind == OFF:
            return "space takes every mark away", "muted"
        beside = "" if self._marked == {OFF} else " to what is marked"
        return f"space adds it{beside}; the first that has a draft is taken", "muted"
