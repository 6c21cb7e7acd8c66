"""The end of the server's log."""

from __future__ import annotations

from spectui.tui.line import Line
from spectui.tui.widgets.panel import Panel


class LogTail(Panel):
    """As many of the last lines as there is room for."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the last lines, or why there are none."""
        del width
        log = self.snapshot.log[-height:]
        if not log:
            return [Line("log  ", "muted").add("the server has written nothing yet", "faint")]
        return [
            Line("log  " if i == 0 else "     ", "muted", "screen.log").outside(text, "muted")
            for i, text in enumerate(log)
        ]
