"""What the keys do and what the signs mean, from the table of actions."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from spectui.domain.phases import Phase
from spectui.tui.keys import ACTS
from spectui.tui.line import wrap
from spectui.tui.look import Look
from spectui.tui.screens.dialogue import Dialogue

WIDTH: Final = 74
"""Cells of text; on a narrower terminal lines break once more."""

READING = (
    (
        "tok/s",
        "decode speed: tokens after the first over the time they took, by the server's clock",
    ),
    (
        "vs baseline",
        (
            "speed-up over no speculation, by prompts that both answered: geometric mean"
            " and a 95 % interval that stays true while you watch it form"
        ),
    ),
    ("accept", "accepted tokens / drafted tokens; falls as drafts get longer, so never a goal"),
    (
        "length",
        "mean acceptance length: tokens per step that had a draft; n-gram types draft seldom",
    ),
)


class Help(Dialogue[None]):
    """Scrolls where it doesn't fit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark,f1", "close", "close", id="help.close"),
    ]

    def __init__(self, look: Look, barred: frozenset[str] = frozenset()) -> None:
        """Take the signs to explain, and the actions that there are not."""
        super().__init__()
        self._look = look
        self._acts = [act for act in ACTS if act.action not in barred]

    def compose(self) -> ComposeResult:
        """Yield all of it as one text."""
        with VerticalScroll(id="box") as box:
            box.border_title = Content("help · escape closes")
            yield Static(self._text(), classes="said", markup=False)

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one("#box").focus()

    def _text(self) -> Content:
        strong, quiet = self._style("accent bold"), self._style("muted")
        parts: list[Content | str | tuple[str, Style]] = []
        for group, acts in groupby(self._acts, attrgetter("group")):
            parts.append((f"{group}\n", self._style("text bold")))
            for act in acts:
                parts += [(f"  {act.shown:8}", strong), f"{act.title}\n"]
                parts += [(f"          {row}\n", quiet) for row in wrap(act.help, WIDTH - 10, 3)]
            parts.append("\n")
        parts.append(("Signs\n", self._style("text bold")))
        glyphs = self._look.glyphs
        phases = "   ".join(f"{glyphs.phases[phase]} {phase}" for phase in Phase)
        parts.append((f"  {phases}\n", quiet))
        arms = " ".join(glyphs.arms)
        parts += [
            (
                f"  {glyphs.base} is the baseline's sign, each other arm has its own: {arms}\n",
                quiet,
            ),
            ("  In the speed chart the line is in flight, a sign a finished request.\n\n", quiet),
        ]
        parts.append(("Figures\n", self._style("text bold")))
        for name, what in READING:
            for i, row in enumerate(wrap(what, WIDTH - 15, 4)):
                parts += [(f"  {'' if i else name:13}", strong), (f"{row}\n", quiet)]
        return Content.assemble(*parts)

    def _style(self, tone: str) -> Style:
        return Style.from_rich_style(self._look.style(tone))
