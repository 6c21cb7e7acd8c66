"""The dashboard as an application: one session's face."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Literal, cast

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.reactive import var
from textual.screen import Screen

from spectui.domain.samples import Level, Snapshot
from spectui.domain.text import clean
from spectui.session.controls import Controls
from spectui.tui import glyphs as signs, themes
from spectui.tui.attached import barred
from spectui.tui.bridge import Arrived, Bridge
from spectui.tui.keys import ACTS
from spectui.tui.look import Look
from spectui.tui.screens.confirm import Confirm
from spectui.tui.screens.dashboard import Dashboard
from spectui.tui.widgets.panel import EMPTY

Severity = Literal["information", "warning", "error"]

_SEVERITY: Final[dict[Level, Severity]] = {
    Level.INFO: "information",
    Level.WARNING: "warning",
    Level.ERROR: "error",
}
_SECONDS: Final[dict[Severity, float]] = {"information": 5, "warning": 8, "error": 12}
_AT_ONCE: Final = 4
"""Toasts that fit on a small screen; of more, the oldest are left out."""


class SpectuiApp(App[int]):
    """Shows snapshots and passes on what a person wants; owns neither server nor measurement.

    Closing ``controls`` is for whoever made them.
    """

    TITLE = "spectui"
    CSS_PATH: ClassVar = [
        "app.tcss",
        "widgets/panel.tcss",
        "widgets/runs.tcss",
        "widgets/banner.tcss",
        "widgets/page.tcss",
        "screens/dashboard.tcss",  # a default screen's own CSS_PATH is not loaded
    ]
    ENABLE_COMMAND_PALETTE = True
    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "ask_to_quit", "quit", show=False, priority=True, id="quit.now"),
    ]

    snapshot: var[Snapshot] = var(EMPTY, init=False)
    look: var[Look] = var(Look(), init=False)

    def __init__(
        self,
        controls: Controls,
        *,
        theme: str | None = None,
        glyphs: str | None = None,
        theme_folders: Sequence[Path] | None = None,
    ) -> None:
        """Show this session.

        ``theme`` names a theme, ``glyphs`` one of braille, block and ascii; None chooses. Themes
        are looked for in ``theme_folders``, None for spectui's own and the user's.
        """
        self._glyphs = signs.detect(glyphs, os.environ, getattr(sys.__stdout__, "encoding", None))
        super().__init__()
        self.animation_level = "none"  # nothing moves that carries no news
        self._bridge = Bridge(controls, self)
        self._dashboard = Dashboard(controls)
        self._noticed = 0
        self._told = ("", 0.0)
        self._theme_problems = self._load_themes(
            themes.folders() if theme_folders is None else theme_folders, theme
        )
        self.look = Look.of(self.current_theme, self._glyphs)
        self.add_class(f"-frame-{self._glyphs.border}")

    def _load_themes(self, folders: Iterable[Path], wanted: str | None) -> tuple[str, ...]:
        found, problems = themes.load(folders)
        for theme in found.values():
            self.register_theme(theme)
        name = wanted or themes.DEFAULT
        if name not in self.available_themes:
            known = ", ".join(sorted(found)) or "none"
            problems = (*problems, f"there is no theme {clean(name, limit=40)}; there is: {known}")
            name = themes.DEFAULT if themes.DEFAULT in found else themes.FALLBACK
        self.theme = name
        return problems

    def get_default_screen(self) -> Screen[None]:
        """Return the dashboard."""
        return self._dashboard.data_bind(SpectuiApp.snapshot, SpectuiApp.look)

    def get_css_variables(self) -> dict[str, str]:
        """Give every theme spectui's tones, its own or derived ones."""
        look = Look.of(self.current_theme, self._glyphs)
        return {
            **super().get_css_variables(),
            **{f"tone-{tone}": colour for tone, colour in look.colours},
        }

    def on_mount(self) -> None:
        """Begin to listen to the session."""
        self.theme_changed_signal.subscribe(self, lambda _theme: self._new_look())
        for problem in self._theme_problems:
            self.tell(problem, "warning")
        self._bridge.open()

    def on_unmount(self) -> None:
        """Stop listening."""
        self._bridge.close()

    def _new_look(self) -> None:
        self.look = Look.of(self.current_theme, self._glyphs)

    def on_arrived(self, event: Arrived) -> None:
        """Take the newest snapshot; everything else follows from it."""
        event.stop()
        newest = self._bridge.take()
        if newest is not None:
            self.snapshot = newest

    def watch_snapshot(self, snapshot: Snapshot) -> None:
        """Tell what has not been told."""
        fresh = [notice for notice in snapshot.notices if notice.number > self._noticed]
        if not fresh:
            return
        self._noticed = max(notice.number for notice in fresh)
        for notice in fresh[-_AT_ONCE:]:
            self.tell(notice.text, _SEVERITY[notice.level])

    def tell(self, text: str, severity: str = "information") -> None:
        """Show a sentence for a while, as plain text.

        A sentence that was shown a moment ago is not repeated: an action's failure may come both
        as its outcome and as a notice of the session.
        """
        said, now = clean(text, limit=400), self.snapshot.at
        if said == self._told[0] and now - self._told[1] < 2.0:
            return
        self._told = (said, now)
        kind = cast("Severity", severity)
        self.notify(said, severity=kind, timeout=_SECONDS[kind], markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the same actions as the keys, and the theme."""
        del screen
        hidden = barred(self._dashboard.snapshot)
        for act in ACTS:
            if act.action in hidden:
                continue
            name = f"{act.title}  ({act.shown})"
            yield SystemCommand(name, act.help, partial(self._dashboard.run_action, act.action))
        yield SystemCommand(
            "Change the theme", "Colours of the dashboard", self.action_change_theme
        )

    def action_ask_to_quit(self) -> None:
        """Quit from anywhere; asked a second time, without a question."""
        if isinstance(self.screen, Confirm) and self.screen.leaves:
            self.screen.action_agree()
        else:
            self._dashboard.action_quit()
