"""The footer: what can be pressed now. Every item can be clicked."""

from __future__ import annotations

from spectui.domain.phases import ALIVE
from spectui.tui.attached import barred
from spectui.tui.keys import ACTS, Act
from spectui.tui.line import Line
from spectui.tui.reading import busy
from spectui.tui.widgets.panel import Panel


class KeysBar(Panel):
    """Items in the order of the table; where it is narrow the low-ranked ones make room."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the one line."""
        del height
        wanted = [act for act in ACTS if act.rank and self._fits_now(act)]
        palette = self._line(wanted, " palette").width <= width
        while wanted and self._line(wanted).width > width:
            wanted.remove(max(wanted, key=lambda act: act.rank))
        return [self._line(wanted, " palette" if palette else "")]

    def _fits_now(self, act: Act) -> bool:
        if act.action in barred(self.snapshot):
            return False
        if act.action == "cancel":
            return busy(self.snapshot)
        if act.action == "trouble":
            return bool(self.snapshot.findings)
        if act.action == "view":
            return self.screen.has_class("-narrow") or self.screen.has_class("-short")
        return True

    def _line(self, acts: list[Act], palette: str = "") -> Line:
        line = Line()
        for act in acts:
            label = act.label
            if act.action == "server" and self.snapshot.phase in ALIVE:
                label = "stop"
            line.add(act.shown, "accent bold", f"screen.{act.action}")
            line.add(f" {label}", "muted", f"screen.{act.action}").add("  ")
        return line.add("^p", "accent bold", "app.command_palette").add(
            palette, "muted", "app.command_palette"
        )
