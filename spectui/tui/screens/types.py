"""Which way to draft."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from spectui.domain.speculation import TYPES
from spectui.tui.pending import choices
from spectui.tui.screens.dialogue import Dialogue


class Types(Dialogue[str]):
    """Lists every type with what it is; those that need a draft model cannot be chosen without."""

    def __init__(self, chosen: str, *, has_draft: bool) -> None:
        """Take the type that is under the cursor at first."""
        super().__init__()
        self._chosen, self._has_draft = chosen, has_draft

    def compose(self) -> ComposeResult:
        """Yield the list, and what to do about what is missing."""
        rows = choices(has_draft=self._has_draft)
        with Vertical(id="box") as box:
            box.border_title = Content("speculation type")
            yield OptionList(
                *(
                    Option(
                        Content(f"{kind:14}  {why or TYPES[kind].summary}"),
                        id=kind,
                        disabled=bool(why),
                    )
                    for kind, why in rows
                ),
                compact=True,
            )
            foot = "enter chooses, escape closes"
            if not self._has_draft:
                foot = f"the profile names no draft model (models.draft); {foot}"
            yield Static(Content(foot), classes="foot", markup=False)

    def on_mount(self) -> None:
        """Put the cursor on what is chosen now."""
        options = self.query_one(OptionList)
        options.highlighted = list(TYPES).index(self._chosen)
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the type."""
        event.stop()
        self.dismiss(event.option_id)
