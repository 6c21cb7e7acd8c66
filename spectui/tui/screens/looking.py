"""A screen that asks the session for something that takes a while, and shows what came back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import ClassVar, Generic, Protocol, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from spectui.domain.errors import SpectuiError
from spectui.domain.findings import Fix
from spectui.domain.samples import Snapshot
from spectui.domain.text import clean, duration
from spectui.tui.bridge import Ended, follow
from spectui.tui.line import Line, wrap
from spectui.tui.look import Look
from spectui.tui.render.document import Document
from spectui.tui.widgets.page import Page

Found = TypeVar("Found")


class Adopt(Protocol):
    """Applies a fix, after a question where it costs something."""

    def __call__(self, fix: Fix, begun: Callable[[], None], ended: Callable[[str], None]) -> None:
        """Call ``begun`` when the work begins, ``ended`` with its error ("" if there is none)."""


class Looking(Screen[None], Generic[Found]):
    """Says how long it has been looking, then shows what was found, or why nothing could be.

    Going back while it looks gives up the answer: nothing waits for it.
    """

    CSS_PATH = "looking.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="looking.back"),
    ]

    title_text: ClassVar[str]
    """What the screen is called."""
    doing: ClassVar[str]
    """What is being done while it looks: a sentence without an end."""
    keys_text: ClassVar[str]
    """What the keys do."""

    def __init__(self, ask: Callable[[], Future[Found]], adopt: Adopt) -> None:
        """``ask`` begins to look; ``adopt`` applies a fix."""
        super().__init__()
        self._ask, self._adopt = ask, adopt
        self._found: Found | None = None
        self._error = ""
        self._since: float | None = None
        self._applying = ""
        self._asked = 0
        self._title = ""

    # what a screen of this kind says

    def document(self, found: Found, width: int, look: Look) -> Document:
        """Return what was found as a text of ``width`` cells."""
        raise NotImplementedError

    def chosen(self, number: int) -> None:
        """Do what stands in the row of this choice."""
        raise NotImplementedError

    # its life

    def compose(self) -> ComposeResult:
        """Yield the page."""
        yield Page(eager=self._eager, id="page")

    _eager: ClassVar[bool] = False

    def on_mount(self) -> None:
        """Begin to look, unless there is something to show already."""
        page = self._page
        page.focus()
        self.watch(self.app, "look", self._new_look)
        self.watch(self.app, "snapshot", self._titled)
        self.set_interval(1.0, self._tick)
        if self._found is None:
            self.action_again()
        else:
            self._show()

    @property
    def _page(self) -> Page:
        return self.query_one(Page)

    @property
    def _look(self) -> Look:
        return cast("Look", self.app.look)  # type: ignore[attr-defined]  # the app is SpectuiApp

    def _new_look(self, look: Look) -> None:
        self._page.look = look

    def _titled(self, snapshot: Snapshot) -> None:
        target = clean(snapshot.target, limit=60)
        draft = clean(snapshot.draft, limit=40)
        models = f" · {target}{' ← ' + draft if draft else ''}" if target else ""
        look, page = self._look, self._page
        title = look.text(f"{self.title_text}{models}")
        if title == self._title:  # a snapshot comes twice a second: spare the terminal
            return
        self._title = title
        page.border_title = Content(title)
        page.border_subtitle = Content(look.text(self.keys_text))

    def action_back(self) -> None:
        """Leave; what is still being looked for is not waited for."""
        self._asked += 1
        self.app.pop_screen()

    def action_again(self) -> None:
        """Look once more."""
        if self._since is not None:
            return
        self._asked += 1
        number = self._asked
        self._since, self._error, self._applying = monotonic(), "", ""

        def ended(result: object, error: str) -> None:
            if number == self._asked:
                self._since = None
                self._error = error
                if not error:
                    self._found = cast("Found", result)
                    self.keep(self._found)
                self._show()

        try:
            follow(self._ask(), self, ended)
        except SpectuiError as error:
            ended(None, str(error))
            return
        self._show()

    def keep(self, found: Found) -> None:
        """Remember what was found, where that is worth it."""

    def on_ended(self, event: Ended) -> None:
        """Take what came back."""
        event.stop()
        if event.then is not None:
            event.then(event.result, event.error)

    def on_page_chosen(self, event: Page.Chosen) -> None:
        """Do what was chosen; nothing while something else is being done."""
        event.stop()
        if self._since is None:
            self.chosen(event.number)

    def apply(self, fix: Fix) -> None:
        """Apply a fix, and look again when that is over, however it ended."""

        def begun() -> None:
            self._since, self._applying = monotonic(), clean(fix.label, limit=120)
            self._show()

        def ended(error: str) -> None:
            if not self.is_attached:
                return
            self._since = None
            self.applied(error)

        self._adopt(fix, begun, ended)

    def applied(self, error: str) -> None:
        """Go on after a fix was applied; ``error`` is why that failed, told already."""
        del error
        self.action_again()

    # drawing

    def _tick(self) -> None:
        if self._since is not None:
            self._page.show(self._whole, keep=True)

    def _show(self) -> None:
        self._page.show(self._whole, keep=self._found is not None)

    def _whole(self, width: int) -> Document:
        look = self._look
        if self._since is None and self._found is not None and not self._error:
            return self.document(self._found, width, look)
        document = Document()
        document.add(Line())
        if self._since is not None:
            for_ = duration(monotonic() - self._since)
            doing = f"applying: {self._applying}" if self._applying else self.doing
            said = f"{doing}, for {for_}"
            document.add(*(Line("  ").add(text, "text") for text in wrap(said, width - 4, 4)))
            leave = "escape goes back, and it goes on" if self._applying else "escape gives it up"
            document.add(Line(), Line(f"  {leave}", "muted"))
            return document
        said = f"{look.glyphs.bad} {self._error}"
        document.add(*(Line("  ").add(text, "bad") for text in wrap(said, width - 4, 8)))
        again = Line("  ").add(self.again_key, "accent bold", "screen.again")
        document.add(Line(), again.add(" tries again", "muted", "screen.again"))
        return document

    again_key: ClassVar[str] = "k"
