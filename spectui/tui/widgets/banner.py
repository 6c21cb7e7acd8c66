"""What is wrong with the launch: the worst of it in full, and a key for each way out."""

from __future__ import annotations

from typing import Final

from spectui.domain.findings import Finding, Severity
from spectui.domain.text import clean
from spectui.tui.keys import FIX_KEYS
from spectui.tui.line import Line, flow, wrap
from spectui.tui.render.findings import head, label
from spectui.tui.widgets.panel import Panel

_SAID: Final = 3
"""Lines that a sentence may take; the rest of a longer one is where ``w`` leads."""


class Banner(Panel):
    """Hidden while all is well. One line where there is no room for more, or only a hint."""

    def on_mount(self) -> None:
        """Begin hidden."""
        self._dress()

    def watch_snapshot(self) -> None:
        """Show what is wrong now."""
        self._dress()
        super().watch_snapshot()

    def _dress(self) -> None:
        worst = self._worst
        self.set_class(worst is None, "-none")
        for severity in Severity:
            self.set_class(worst is not None and worst.severity is severity, f"-{severity}")

    @property
    def _worst(self) -> Finding | None:
        return next(iter(self.snapshot.findings), None)

    @property
    def _flat(self) -> bool:
        """Whether there is room for one line only, or no more is called for."""
        worst = self._worst
        return self.screen.has_class("-short") or (
            worst is not None and worst.severity in {Severity.HINT, Severity.GOOD}
        )

    def heading(self) -> Line:
        """Return ``✗ blocker · port-in-use``."""
        worst = self._worst
        if worst is None or self._flat:
            return Line()
        line = head(worst.severity, self.look.glyphs)
        return line.add(f" · {clean(worst.code, limit=40)}", "muted")

    def rows(self, width: int) -> int:
        """Return how many lines the worst finding takes."""
        worst = self._worst
        if worst is None or self._flat:
            return 1
        return len(self._whole(worst, width))

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the sentence, the advice and the ways out."""
        worst = self._worst
        if worst is None:
            return []
        if self._flat or height == 1:
            return [self._short(worst, width)]
        return self._whole(worst, width)

    def _whole(self, worst: Finding, width: int) -> list[Line]:
        tone = "text bold" if worst.severity is Severity.BLOCKER else "text"
        lines = [Line(text, tone) for text in wrap(clean(worst.what), width, _SAID)]
        lines += [Line(text, "muted") for text in wrap(clean(worst.advice), width, 2)]
        lines += flow([*self._fixes(worst), *self._more(worst)], width)
        return lines

    def _short(self, worst: Finding, width: int) -> Line:
        """Return all of it in one line: the sentence gives way, then what a fix is called."""
        fixes, more = self._fixes(worst), self._more(worst, always=True)
        line = head(worst.severity, self.look.glyphs).add("  ")
        for ways in ([*fixes[:1], *more], [*_keys_only(fixes[:1]), *more]):
            end = _joined(ways)
            if end.width <= (width - line.width) // 2:
                break
        room = width - line.width - end.width - 2
        line.extend(Line(clean(worst.what), "text").fit(room))
        return line.right(end, width)

    def _fixes(self, worst: Finding) -> list[Line]:
        if self.snapshot.attached is not None:  # not ours to change
            return []
        return [
            Line(key, "accent bold", f"screen.fix({i})").add(
                f" {label(fix)}", "accent", f"screen.fix({i})"
            )
            for i, (key, fix) in enumerate(zip(FIX_KEYS, worst.fixes, strict=False))
        ]

    def _more(self, worst: Finding, *, always: bool = False) -> list[Line]:
        """Return the way to the rest, where there is one."""
        others = len(self.snapshot.findings) - 1
        unsaid = len(worst.fixes) > len(FIX_KEYS)
        if not others and not unsaid and not always:
            return []
        text = f"+{others} more" if others else "all"
        return [
            Line("w", "accent bold", "screen.trouble").add(f" {text}", "muted", "screen.trouble")
        ]


def _keys_only(fixes: list[Line]) -> list[Line]:
    return [
        Line(fix.plain[:1], "accent bold", "screen.fix(0)").add(" fix", "accent", "screen.fix(0)")
        for fix in fixes
    ]


def _joined(ways: list[Line]) -> Line:
    line = Line()
    for way in ways:
        if line:
            line.add("  ")
        line.extend(way)
    return line
