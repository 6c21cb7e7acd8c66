"""The runs so far, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import DataTable, Static

from spectui.domain.runs import Run, Summary
from spectui.domain.samples import Snapshot
from spectui.domain.text import clean
from spectui.tui.line import shorten
from spectui.tui.look import Look
from spectui.tui.reading import Sign, signs
from spectui.tui.widgets.panel import EMPTY
from spectui.tui.words import NONE, percent, ratio, speed

Cell = tuple[str, str]
"""Text and tone."""

COLUMNS: Final = (
    # key, title, cells, and the least width of the table that has room for it
    ("sign", "", 1, 0),
    ("arm", "arm", 0, 0),
    ("tps", "tok/s", 6, 0),
    ("against", "vs baseline", 15, 0),
    ("rate", "accept", 6, 56),
    ("length", "length", 6, 66),
    ("done", "prompts", 7, 46),
    ("note", "note", 0, 76),
)
RIGHT: Final = {"tps", "rate", "length", "done"}


class RunsPanel(Vertical):
    """One row per run, in the order they were begun. Enter compares with a run."""

    snapshot: var[Snapshot] = var(EMPTY, init=False)
    look: var[Look] = var(Look(), init=False)
    against: var[int | None] = var[int | None](None, init=False)

    class Chosen(Message):
        """A row was chosen. ``run`` is the run's number."""

        def __init__(self, run: int) -> None:
            super().__init__()
            self.run = run

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own name
        """Start without a row."""
        super().__init__(id=id)
        self._shown: dict[int, dict[str, Cell]] = {}
        self._columns: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """Yield the table, and the words for while it is empty."""
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=False, cell_padding=1)
        yield table
        yield Static(id="no-runs", markup=False)

    def on_mount(self) -> None:
        """Set the title."""
        self.border_title = "runs"
        self.query_one("#no-runs", Static).update(
            Content("no runs yet\nm measures the pending setting, and the baseline before it")
        )

    def on_resize(self, event: events.Resize) -> None:
        """Give the columns the new width."""
        self._rebuild(event.size.width)

    def watch_snapshot(self) -> None:
        """Show what changed."""
        self._update()

    def watch_against(self) -> None:
        """Show what is compared with."""
        self._update()

    def watch_look(self) -> None:
        """Show everything in the new colours."""
        self._rebuild(self.size.width)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Choose the run of the row."""
        event.stop()
        if event.row_key.value is not None:
            self.post_message(self.Chosen(int(event.row_key.value)))

    def _rebuild(self, width: int) -> None:
        if not width or not self.is_mounted:
            return
        table = self._table
        at = table.cursor_row
        table.clear(columns=True)
        self._shown = {}
        self._columns = _widths(width - 2)
        for key, cells in self._columns.items():
            title = next(name for known, name, *_ in COLUMNS if known == key)
            table.add_column(
                Text(title, justify="right" if key in RIGHT else "left"), width=cells, key=key
            )
        self._update()
        table.move_cursor(row=at)

    def _update(self) -> None:
        if not self._columns:
            return
        snapshot, table = self.snapshot, self._table
        self.set_class(not snapshot.runs, "-empty")
        wanted = rows(snapshot, self.look, self.against, self._columns)
        if list(self._shown) != list(wanted)[: len(self._shown)]:
            table.clear()
            self._shown = {}
        for number, row in wanted.items():
            before = self._shown.get(number)
            if before is None:
                table.add_row(*(self._text(key, row[key]) for key in row), key=str(number))
                if table.cursor_row >= table.row_count - 2:
                    table.move_cursor(row=table.row_count - 1)
                continue
            for key, cell in row.items():
                if cell != before[key]:
                    table.update_cell(str(number), key, self._text(key, cell))
        self._shown = wanted

    def _text(self, key: str, cell: Cell) -> Text:
        text, tone = cell
        return Text(
            self.look.text(shorten(text, self._columns[key])),
            style=self.look.style(tone),
            justify="right" if key in RIGHT else "left",
            no_wrap=True,
        )


def _widths(width: int) -> dict[str, int]:
    """Return the columns that have room, with their cells; arm and note share what is left."""
    chosen = [(key, cells) for key, _, cells, least in COLUMNS if width >= least]
    left = width - sum(cells + 2 for _, cells in chosen)
    noted = any(key == "note" for key, _ in chosen)
    arm = max(min(left * 11 // 20, 36) if noted else left, 8)
    return {key: cells or (arm if key == "arm" else max(left - arm, 4)) for key, cells in chosen}


def rows(
    snapshot: Snapshot, look: Look, against: int | None, columns: Sequence[str] | dict[str, int]
) -> dict[int, dict[str, Cell]]:
    """Return the cells of every run by its number, for the columns that are shown."""
    marks = signs(snapshot.runs, look.glyphs)
    found = {}
    for run in snapshot.runs:
        summary = snapshot.summaries.get(run.number, Summary())
        cells = _cells(run, summary, snapshot, marks[run.number])
        cells["note"] = _note(run, summary, snapshot, look, against)
        if "note" not in columns and cells["note"][1] in {"bad", "warn"}:
            # no room for a column of notes: what matters takes the place of what it spoils
            cells["against"] = cells["note"]
        found[run.number] = {key: cells[key] for key in columns}
    return found


def _cells(run: Run, summary: Summary, snapshot: Snapshot, sign: Sign) -> dict[str, Cell]:
    comparison = snapshot.comparisons.get(run.number)
    overall = comparison.overall if comparison else None
    tone = "muted"
    if overall is not None:
        tone = {"faster": "good", "slower": "bad"}.get(overall.verdict.value, "text")
    acceptance = summary.acceptance
    length = acceptance.mean_length
    done = len(run.requests)
    return {
        "sign": (sign.glyph, sign.tone),
        "arm": (clean(run.arm.name, limit=80), "text"),
        "tps": (speed(summary.decode_tps), "text bold"),
        "against": (
            ("baseline", "base") if run.number == snapshot.baseline else (ratio(overall), tone)
        ),
        "rate": (percent(acceptance.rate), "text"),
        "length": (NONE if length is None else f"{length:.1f}", "text"),
        "done": (
            f"{done}/{run.planned}",
            "pending" if run.ended is None else "muted",
        ),
    }


def _note(run: Run, summary: Summary, snapshot: Snapshot, look: Look, against: int | None) -> Cell:
    warn, bad = look.glyphs.warn, look.glyphs.bad
    if run.unverified:
        return f"{warn} {run.unverified}", "bad"
    if run.stopped:
        return f"{warn} {clean(run.stopped, limit=80)}", "warn"
    if summary.failed:
        return f"{bad} {summary.failed} failed", "warn"
    if run.ended is None:
        return "measuring", "pending"
    if run.number == against:
        return "compared", "accent"
    if run.number == snapshot.answer.run:
        return "the answer", "good"
    return "", "muted"
