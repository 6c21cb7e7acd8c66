"""The setting that a person is putting together: which knob, which value, what is being typed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from spectui.domain.speculation import INERT, OFF, TYPES, Draft, Knob, Number, Speculation
from spectui.tui.words import plural

MAX_TYPED = 8
"""Longer numbers are beyond every knob."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A Speculation under edit. Frozen: every change returns a new one.

    ``row`` is 0 for the type, then one per acting knob. ``typed`` is the text of a number that is
    being typed, None while nothing is. ``touched`` is false until the person changes something:
    so long, the setting follows the session's.
    """

    speculation: Speculation = field(default_factory=Speculation)
    row: int = 0
    typed: str | None = None
    touched: bool = False

    @classmethod
    def of(cls, speculation: Speculation) -> Self:
        """Begin with a setting; the knob of its draft length is chosen."""
        return cls(speculation, _length_row(speculation))

    @property
    def knob(self) -> Knob | None:
        """The chosen knob; None where the type is chosen."""
        knobs = self.speculation.knobs
        return knobs[self.row - 1] if 0 < self.row <= len(knobs) else None

    @property
    def problem(self) -> str:
        """Why the typed text is no number, or an empty string. Limits are the session's matter."""
        if self.typed is None or self.number is not None:
            return ""
        return "type a number" if not self.typed else f"{self.typed} is not a number"

    @property
    def number(self) -> Number | None:
        """The number that is typed, None where there is none."""
        if self.typed is None:
            return None
        try:
            return int(self.typed)
        except ValueError:
            pass
        try:
            return float(self.typed)
        except ValueError:
            return None

    def move(self, by: int) -> Self:
        """Choose the row ``by`` further down, round and round."""
        return replace(self, row=(self.row + by) % (len(self.speculation.knobs) + 1), typed=None)

    def step(self, by: int, *, has_draft: bool) -> Self:
        """Turn the chosen knob by ``by`` steps; on the first row take the next type there is."""
        knob = self.knob
        if knob is None:
            usable = [kind for kind, why in choices(has_draft=has_draft) if not why]
            at = usable.index(self.speculation.type) if self.speculation.type in usable else 0
            return self.with_type(usable[(at + by) % len(usable)])
        value = knob.clamp(self.speculation.value(knob) + by * knob.step)
        return self.turned(knob, value)

    def with_type(self, kind: str) -> Self:
        """Take another type and choose the knob of its draft length."""
        speculation = self.speculation.with_type(kind)
        row = self.row and _length_row(speculation)
        return replace(self, speculation=speculation, row=row, typed=None, touched=True)

    def type(self, character: str) -> Self:
        """Add a character to the number that is typed; the first one begins it."""
        knob = self.knob
        if knob is None or (self.typed is not None and len(self.typed) >= MAX_TYPED):
            return self
        return self._typing((self.typed or "") + character)

    def erase(self) -> Self:
        """Take back the last character."""
        return self if not self.typed else self._typing(self.typed[:-1])

    def settle(self) -> Self:
        """End typing. A text that is no number is given up, the value before it stays."""
        return replace(self, typed=None)

    def _typing(self, text: str) -> Self:
        knob, draft = self.knob, replace(self, typed=text)
        if knob is None or draft.number is None:
            return draft
        return draft.turned(knob, draft.number, typed=text)

    def turned(self, knob: Knob, value: Number, *, typed: str | None = None) -> Self:
        """Set a knob."""
        return replace(
            self,
            speculation=self.speculation.with_value(knob.key, value),
            typed=typed,
            touched=True,
        )


def silent(speculation: Speculation) -> tuple[str, ...]:
    """Return, for each type, which knobs of other types do nothing to it and what does instead."""
    general = [knob.label for knob in TYPES["draft-simple"].knobs]
    listed = f"{', '.join(general[:-1])} and {general[-1]}"
    found = []
    for kind in speculation.kinds:
        if kind.drafts_with_model or kind.id == OFF:
            continue
        length = kind.length_knob
        if length is None:
            found.append(f"no knob acts on {kind.id}: it drafts {kind.fixed_length} tokens at most")
        elif length.label in general:
            found.append(f"{kind.id} has an {length.label} of its own, apart from draft models'")
        else:
            told = f"{listed} have no effect on {kind.id}; its length is {length.label}"
            found.append(told)
        table = kind.id.replace("-", "_")
        found += [why for key, why in INERT.items() if key.startswith(f"{table}.")]
    return tuple(found)


def together(speculation: Speculation) -> str:
    """Return the types in the order in which they are asked, and how long a draft can get."""
    order = ", then ".join(kind.id for kind in speculation.kinds)
    length = speculation.draft_length
    if length is None:
        return order
    return f"{order}: at most {plural(length, 'token')} a draft"


def _length_row(speculation: Speculation) -> int:
    return next((i for i, knob in enumerate(speculation.knobs, 1) if knob.is_length), 0)


def choices(*, has_draft: bool) -> tuple[tuple[str, str], ...]:
    """Return (type id, why it cannot be used or an empty string) for every type."""
    return tuple(
        (kind.id, "needs a draft model" if kind.draft is Draft.NEEDED and not has_draft else "")
        for kind in TYPES.values()
    )
