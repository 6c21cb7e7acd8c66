"""The runs so far, as a table."""

from __future__ import annotations

from typing import Final, Literal

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import DataTable, Static

from spectui.domain.comparison import Tone
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
    # key, title, least cells, and the least width of the table that has room for it
    ("sign", "", 1, 0),
    ("arm", "arm", 8, 0),
    ("tps", "tok/s", 5, 0),
    ("against", "vs baseline", 15, 0),
    ("rate", "accept", 6, 56),
    ("length", "len", 4, 64),
    ("done", "done", 5, 46),
    ("note", "note", 10, 72),
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
        self._width = 0

    def compose(self) -> ComposeResult:
        """Yield the table, and the words for while it is empty."""
        table: DataTable[Text] = DataTable(
            cursor_type="row",
            cursor_foreground_priority="renderable",  # an arm keeps its colour
        )
        yield table
        yield Static(id="no-runs", markup=False)

    def on_mount(self) -> None:
        """Set the title."""
        self.border_title = "runs"
        self.query_one("#no-runs", Static).update(
            Content("no runs yet\nm measures the pending setting, and the baseline before it")
        )

    def on_resize(self) -> None:
        """Give the columns the new width."""
        self._rebuild(self.content_size.width)

    def watch_snapshot(self) -> None:
        """Show what changed."""
        self._update()

    def watch_against(self) -> None:
        """Show what is compared with."""
        self._update()

    def watch_look(self) -> None:
        """Show everything in the new colours."""
        self._rebuild(self.content_size.width)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Choose the run of the row."""
        event.stop()
        if event.row_key.value is not None:
            self.post_message(self.Chosen(int(event.row_key.value)))

    def _rebuild(self, width: int) -> None:
        self._width = width
        self._columns = {}
        if width and self.is_mounted:
            self._update()

    def _fit(self, wanted: dict[int, dict[str, Cell]]) -> None:
        """Give the columns the cells that their content needs, where that has changed."""
        columns = widths(self._width - 2, wanted)
        if columns == self._columns:
            return
        self._columns, self._shown = columns, {}
        self._table.clear(columns=True)
        for key, title, *_ in COLUMNS:
            if key in columns:
                justify: Literal["left", "right"] = "right" if key in RIGHT else "left"
                self._table.add_column(Text(title, justify=justify), width=columns[key], key=key)

    def _update(self) -> None:
        if not self._width:
            return
        snapshot, table = self.snapshot, self._table
        self.set_class(not snapshot.runs, "-empty")
        wanted = rows(snapshot, self.look, self.against)
        at = table.cursor_row
        follow = at >= table.row_count - 1
        self._fit(wanted)
        if list(self._shown) != list(wanted)[: len(self._shown)]:
            table.clear()
            self._shown = {}
        fresh = len(self._shown) < len(wanted)
        for number, row in wanted.items():
            before = self._shown.get(number)
            if before is None:
                table.add_row(
                    *(self._text(key, row[key]) for key in self._columns), key=str(number)
                )
                continue
            for key in self._columns:
                if row[key] != before[key]:
                    table.update_cell(str(number), key, self._text(key, row[key]))
        self._shown = wanted
        if fresh and wanted:
            table.move_cursor(row=len(wanted) - 1 if follow else at)

    def _text(self, key: str, cell: Cell) -> Text:
        text, tone = cell
        width = self._columns[key]
        short = shorten_arm(text, width) if key == "arm" else shorten(text, width)
        return Text(
            self.look.text(short),
            style=self.look.style(tone),
            justify="right" if key in RIGHT else "left",
            no_wrap=True,
        )


def shorten_arm(name: str, width: int) -> str:
    """Shorten the type and keep the knobs: they tell arms apart. ``ngram-s… m16 n3``."""
    kind, _, knobs = name.partition(" ")
    room = width - cell_len(knobs) - 1
    if cell_len(name) <= width or not knobs or room < 4:
        return shorten(name, width)
    return f"{shorten(kind, room)} {knobs}"


def widths(width: int, wanted: dict[int, dict[str, Cell]]) -> dict[str, int]:
    """Return the columns that ``width`` has room for, with their cells.

    Arm and note get what their longest text needs; where both do not fit the arm gives way.
    """
    chosen = [(key, least) for key, _, least, room in COLUMNS if width >= room]
    need = {
        key: max([least, *(cell_len(row[key][0]) for row in wanted.values())])
        for key, least in chosen
    }
    left = width - sum(need[key] + 2 for key in need if key not in {"arm", "note"}) - 2
    if "note" in need:
        left -= 2
        need["note"] = max(min(need["note"], max(left - need["arm"], 16), left - 12), 8)
        left -= need["note"]
    need["arm"] = max(min(need["arm"], left), 8)
    return need


def rows(snapshot: Snapshot, look: Look, against: int | None) -> dict[int, dict[str, Cell]]:
    """Return the cells of every run by its number."""
    marks = signs(snapshot.runs, look.glyphs)
    found = {}
    for run in snapshot.runs:
        summary = snapshot.summaries.get(run.number, Summary())
        cells = _cells(run, summary, snapshot, marks[run.number])
        found[run.number] = {**cells, "note": _note(run, summary, snapshot, look, against)}
    return found


def _cells(run: Run, summary: Summary, snapshot: Snapshot, sign: Sign) -> dict[str, Cell]:
    comparison = snapshot.comparisons.get(run.number)
    overall = comparison.overall if comparison else None
    tone = "muted"
    if overall is not None:
        tone = {"faster": "good", "slower": "bad"}.get(overall.verdict.value, "text")
    acceptance = summary.acceptance
    length = acceptance.mean_length
    done = len(run.requests) if run.planned else summary.requests
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
            f"{done}/{run.planned}" if run.planned else str(done or NONE),
            "pending" if run.ended is None else "muted",
        ),
    }


def _note(run: Run, summary: Summary, snapshot: Snapshot, look: Look, against: int | None) -> Cell:
    warn, bad = look.glyphs.warn, look.glyphs.bad
    if run.unverified or run.undrafted:
        return f"{warn} {run.unverified or run.undrafted}", "bad"
    if run.stopped:
        return f"{warn} {clean(run.stopped, limit=80)}", "warn"
    if summary.failed:
        return f"{bad} {summary.failed} failed", "warn"
    if run.ended is None:
        return "measuring" if run.planned else "watching", "pending"
    if run.number == against:
        return "compared", "accent"
    if run.number == snapshot.answer.run and snapshot.answer.tone is Tone.GOOD:
        return "the answer", "good"
    return "", "muted"
