"""What every test of the dashboard needs: an app without a terminal, and its screen as text."""

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import scenes
from fake_controls import FakeControls

# read by Textual when it is imported, so the import of the app comes after it
for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS", "TEXTUAL_COLOR_SYSTEM"):
    os.environ.pop(name, None)

from spectui.tui.app import SpectuiApp  # noqa: E402 - see above


@dataclass
class Face:
    """A running app, the pilot that presses its keys, and the session it believes in."""

    app: SpectuiApp
    pilot: object
    controls: FakeControls

    @property
    def dashboard(self):
        return self.app._dashboard

    @property
    def text(self):
        """What the top screen shows, one line per row."""
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def toasts(self):
        return [(note.message, note.severity) for note in self.app._notifications]

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.settle()

    async def emit(self, snapshot):
        self.controls.emit(snapshot)
        await self.settle()

    async def settle(self):
        for _ in range(3):
            await self.pilot.pause()

    async def click_text(self, words):
        """Click on the first place where ``words`` stand."""
        for y, row in enumerate(self.text.split("\n")):
            if words in row:
                await self.pilot.click(offset=(row.index(words), y))
                await self.settle()
                return
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text}")


@pytest.fixture
def face():
    """Return a context manager that runs the dashboard on a snapshot."""

    @asynccontextmanager
    async def running(snapshot=None, *, size=(120, 36), hold=False, **options):
        controls = FakeControls(snapshot or scenes.idle(), hold=hold)
        app = SpectuiApp(controls, **{"glyphs": "braille", **options})
        async with app.run_test(size=size) as pilot:
            face = Face(app, pilot, controls)
            await face.settle()
            yield face
        assert controls.subscribers == 0

    return running
