"""The one screen: is it faster, and why."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import var
from textual.screen import Screen
from textual.widgets import Static

from spectui.domain.attached import WHY_NOT
from spectui.domain.errors import SpectuiError
from spectui.domain.findings import Fix
from spectui.domain.pairing import Survey
from spectui.domain.phases import ALIVE
from spectui.domain.samples import Snapshot
from spectui.session.controls import Controls
from spectui.tui import attached, keys, plans, reading
from spectui.tui.bridge import Ended, follow
from spectui.tui.look import Look
from spectui.tui.pending import Pending
from spectui.tui.screens.checkup import Checkup
from spectui.tui.screens.confirm import Confirm
from spectui.tui.screens.drafters import Drafters
from spectui.tui.screens.export import Export
from spectui.tui.screens.help import Help
from spectui.tui.screens.log import LogScreen
from spectui.tui.screens.trouble import Trouble
from spectui.tui.screens.types import Types
from spectui.tui.size import MIN_HEIGHT, MIN_WIDTH
from spectui.tui.widgets.answer import AnswerPanel
from spectui.tui.widgets.banner import Banner
from spectui.tui.widgets.decay import DecayPanel
from spectui.tui.widgets.keysbar import KeysBar
from spectui.tui.widgets.knobs import Knobs
from spectui.tui.widgets.logtail import LogTail
from spectui.tui.widgets.machine import MachinePanel
from spectui.tui.widgets.panel import EMPTY
from spectui.tui.widgets.runs import RunsPanel
from spectui.tui.widgets.speed import SpeedPanel
from spectui.tui.widgets.status import StatusLine

VIEWS: Final = ("speed", "decay", "machine")

Job = Callable[[], Future[Any]]
Then = Callable[[object, str], None]


class Dashboard(Screen[None]):
    """Holds what the person has chosen; what is measured comes from the app's snapshot."""

    AUTO_FOCUS = "Knobs"
    BINDINGS: ClassVar[list[BindingType]] = [act.binding for act in keys.ACTS]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # Textual annotates it
        (0, "-tiny-width"),
        (MIN_WIDTH, "-narrow"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012  # Textual annotates it
        (0, "-tiny-height"),
        (MIN_HEIGHT, "-short"),
        (33, "-tall"),
    ]

    snapshot: var[Snapshot] = var(EMPTY, init=False)
    look: var[Look] = var(Look(), init=False)
    pending: var[Pending] = var(Pending(), init=False)
    problems: var[tuple[tuple[str, str], ...]] = var[tuple[tuple[str, str], ...]]((), init=False)
    against: var[int | None] = var[int | None](None, init=False)
    conditional: var[bool] = var[bool](default=False, init=False)

    def __init__(self, controls: Controls) -> None:
        """Show and steer this session."""
        super().__init__()
        self._controls = controls
        self._starts = plans.StartTimes()
        self._stopped = False
        self._survey: Survey | None = None

    def compose(self) -> ComposeResult:
        """Yield the panels; CSS decides which of them are shown at which size."""
        seen = (Dashboard.snapshot, Dashboard.look)
        yield StatusLine(id="status").data_bind(*seen)
        yield AnswerPanel(id="answer").data_bind(*seen)
        yield Banner(id="banner").data_bind(*seen)
        with Horizontal(id="charts"):
            yield SpeedPanel(id="speed").data_bind(*seen)
            yield DecayPanel(id="decay").data_bind(*seen, Dashboard.against, Dashboard.conditional)
        yield MachinePanel(id="machine").data_bind(*seen)
        with Horizontal(id="desk"):
            yield Knobs(id="knobs").data_bind(*seen, Dashboard.pending, Dashboard.problems)
            yield RunsPanel(id="runs").data_bind(*seen, Dashboard.against)
        yield LogTail(id="logtail").data_bind(*seen)
        yield KeysBar(id="keys").data_bind(*seen)
        with Vertical(id="too-small"):
            yield Static(id="too-small-text", markup=False)

    def on_mount(self) -> None:
        """Begin with the speed chart where there is room for one view only."""
        self.add_class("-view-speed")

    def on_resize(self, event: events.Resize) -> None:
        """Say how much is missing, where it is."""
        width, height = event.size
        self.query_one("#too-small-text", Static).update(
            Content(f"{width}×{height} is too small: {MIN_WIDTH}×{MIN_HEIGHT} needed, q quits")
        )

    # what comes in

    def watch_snapshot(self, snapshot: Snapshot) -> None:
        """Let the knobs follow the session until somebody turns them."""
        self._starts.see(snapshot)
        untouched = not self.pending.touched and self.pending.typed is None
        if untouched and not snapshot.speculation.same_as(self.pending.speculation):
            self.pending = Pending.of(snapshot.speculation)

    def watch_pending(self, pending: Pending) -> None:
        """Ask at once whether a server would take it."""
        self.problems = self._controls.check(pending.speculation)

    def on_ended(self, event: Ended) -> None:
        """Tell of a failure, or go on with what waited for this."""
        event.stop()
        if event.error:
            # what a person has stopped is no failure, though the job ends with an error
            stopped = self._stopped and event.then is None
            self._tell(event.error, "information" if stopped else "error")
        if event.then is not None:
            event.then(event.result, event.error)

    def on_runs_panel_chosen(self, event: RunsPanel.Chosen) -> None:
        """Compare with the run of the row; a second time takes it away."""
        event.stop()
        self._compare(None if event.run == self.against else event.run)

    def on_key(self, event: events.Key) -> None:
        """Digits go to the chosen knob."""
        typing = self.pending.typed is not None
        character = event.character or ""
        digit = character.isdigit() or (character == "." and self.pending.knob is not None)
        if digit and self.snapshot.attached is None:
            self.pending = self.pending.type(character)
        elif event.key == "backspace" and typing:
            self.pending = self.pending.erase()
        elif event.key in {"enter", "escape"} and typing:
            self.pending = self.pending.settle()
        else:
            return
        event.stop()

    # what a person does: the knobs

    def action_move(self, by: int) -> None:
        """Choose another knob."""
        self.pending = self.pending.move(by)

    def action_choose(self, row: int) -> None:
        """Choose a knob by its row."""
        self.pending = self.pending.move(row - self.pending.row)

    def action_step(self, by: int) -> None:
        """Turn the chosen knob."""
        if self._barred():
            return
        self.pending = self.pending.step(by, has_draft=self.snapshot.has_draft)

    def action_revert(self) -> None:
        """Go back to what runs, else to what the session would start."""
        if self._barred():
            return
        running = self.snapshot.running
        wanted = running.speculation if running else self.snapshot.speculation
        row = min(self.pending.row, len(wanted.knobs))
        self.pending = Pending(wanted, row)

    def action_choose_type(self) -> None:
        """List the types."""
        if self._barred():
            return

        def chosen(kind: str | None) -> None:
            if kind is not None:
                self.pending = self.pending.with_type(kind)

        screen = Types(
            self.pending.speculation,
            self._controls.check,
            self.look,
            self.snapshot.draft,
            self._survey,
        )
        self.app.push_screen(screen, chosen)
        # reading headers takes the processor's time: not from a measurement
        if self._survey is None and not reading.busy(self.snapshot):
            self._look_at_models(screen)

    def _look_at_models(self, screen: Types) -> None:
        """Find out what the models allow; the dialogue is told when that is known."""

        def found(result: object, error: str) -> None:
            if not error and isinstance(result, Survey):
                self._survey = result
                if screen.is_attached:
                    screen.know(result)

        follow(self._controls.survey(), screen, found)

    # what a person does: jobs

    def action_measure(self) -> None:
        """Measure the pending setting, if a server would take it."""
        if self.snapshot.attached is not None:
            runs = self.snapshot.speculation
            self._ask(attached.measuring(self.snapshot), lambda: self._controls.measure(runs))
            return
        if not self._valid():
            return
        wanted = self.pending.speculation
        if wanted.is_off:
            self.action_baseline()
            return
        self._ask(
            plans.measuring(self.snapshot, wanted, self._starts.longest),
            lambda: self._controls.measure(wanted),
        )

    def action_apply(self) -> None:
        """Apply is to measure: a setting is judged by what it does."""
        if not self._barred():
            self.action_measure()

    def action_baseline(self) -> None:
        """Measure with speculation off."""
        if self._barred():
            return
        self._ask(
            plans.baseline(self.snapshot, self._starts.longest), self._controls.measure_baseline
        )

    def action_server(self) -> None:
        """Start the server, or stop it."""
        if self._barred():
            return
        if self.snapshot.phase in ALIVE:
            self._ask(plans.stopping(self.snapshot), self._controls.stop_server, ends=True)
        elif self._valid():
            wanted = self.pending.speculation
            self._start(lambda: self._controls.launch(wanted))

    def action_cancel(self) -> None:
        """Give up a number that is typed, else the job that is under way."""
        if self.pending.typed is not None:
            self.pending = self.pending.settle()
        elif reading.busy(self.snapshot):
            self._stop(self._controls.cancel)

    def action_export(self) -> None:
        """Ask where to write the profile."""
        if self._barred():
            return
        self.app.push_screen(Export(self._controls, plans.export(self.snapshot), self.look.glyphs))

    # what a person does: what is wrong

    def action_fix(self, number: int) -> None:
        """Apply a way out of the banner's."""
        worst = next(iter(self.snapshot.findings), None)
        if worst is None or number >= len(worst.fixes):
            return
        if not self._barred():
            self.adopt(worst.fixes[number])

    def action_trouble(self) -> None:
        """Show all that is wrong."""
        if not self.snapshot.findings:
            self._tell("nothing is wrong with this launch; k checks the profile", "information")
            return

        def chosen(fix: Fix | None) -> None:
            if fix is not None:
                self.adopt(fix)

        self.app.push_screen(Trouble(self.look), chosen)

    def action_checkup(self) -> None:
        """Check the profile before a launch."""
        if not self._barred():
            self.app.push_screen(Checkup(self._controls.preflight, self.adopt))

    def action_drafters(self) -> None:
        """Show what can draft for the target."""
        if not self._barred():
            screen = Drafters(self._controls.survey, self.adopt, self._survey, self._surveyed)
            self.app.push_screen(screen)

    def _surveyed(self, found: Survey) -> None:
        """Remember what was found: reading hundreds of headers takes a while."""
        self._survey = found

    def adopt(
        self,
        fix: Fix,
        begun: Callable[[], None] | None = None,
        ended: Callable[[str], None] | None = None,
    ) -> None:
        """Apply a fix, after a question where it ends something or takes it out of sight."""
        if self._barred():
            return

        def job() -> Future[None]:
            # what was told of the launch before is over; so is what the knobs were turned to
            self.app.clear_notifications()
            self.pending = replace(self.pending, touched=False, typed=None)
            if begun is not None:
                begun()
            return self._controls.adopt(fix)

        def over(_result: object, error: str) -> None:
            if ended is not None:
                ended(error)

        # the session itself ends what is under way
        plan = plans.adopting(self.snapshot, fix, self._starts.longest)
        self._ask(plan, job, over, ends=True)

    def action_quit(self) -> None:
        """Quit; ask once while something is under way."""
        if not reading.busy(self.snapshot):
            self.app.exit(return_code=0)
            return

        def answered(agreed: bool | None) -> None:  # noqa: FBT001  # Textual's callback
            if agreed:
                self.app.exit(return_code=0)

        said = plans.quitting(self.snapshot)
        self.app.push_screen(Confirm("quit", said, "quit", leaves=True), answered)

    # what a person does: the view

    def action_compare(self) -> None:
        """Compare with the next run there is."""
        if not reading.drafting(self.snapshot)[:-2]:
            self._tell("there is no third run to compare with yet", "information")
            return
        self._compare(reading.next_to_compare(self.snapshot, self.against))

    def action_conditional(self) -> None:
        """Turn from unconditional to conditional acceptance and back."""
        self.conditional = not self.conditional

    def action_view(self) -> None:
        """Show the next view where there is room for one only."""
        now = next(i for i, name in enumerate(VIEWS) if self.has_class(f"-view-{name}"))
        wanted = VIEWS[(now + 1) % len(VIEWS)]
        for name in VIEWS:
            self.set_class(name == wanted, f"-view-{name}")

    def action_log(self) -> None:
        """Show the log."""
        self.app.push_screen(LogScreen())

    def action_help(self) -> None:
        """Explain keys and signs."""
        self.app.push_screen(Help(self.look, attached.barred(self.snapshot)))

    # the rest

    def _compare(self, run: int | None) -> None:
        known = {known.number for known in reading.drafting(self.snapshot)}
        if run is not None and run not in known:
            self._tell("that run drafted nothing: there is no curve to compare", "warning")
            return
        self.against = run

    def _barred(self) -> bool:
        """Whether the server is not ours to change; a person who tries is told so."""
        if self.snapshot.attached is None:
            return False
        self._tell(WHY_NOT, "information")
        return True

    def _valid(self) -> bool:
        why = self.pending.problem or next((reason for _, reason in self.problems), "")
        if why:
            self._tell(f"not applied: {why}", "error")
            return False
        self.pending = self.pending.settle()
        return True

    def _ask(
        self, plan: plans.Plan, job: Job, then: Then | None = None, *, ends: bool = False
    ) -> None:
        """Do the job at once, or after a question where it interrupts or takes long.

        ``ends`` is for a job that itself ends the one under way.
        """
        begin = self._stop if ends else self._start
        if not plan.question:
            begin(job, then)
            return

        def answered(agreed: bool | None) -> None:  # noqa: FBT001  # Textual's callback
            if not agreed:
                return
            if reading.busy(self.snapshot) and not ends:
                # a session at work refuses the next job: stop this one first
                self._stop(self._controls.cancel, lambda _result, _error: self._start(job))
            else:
                begin(job, then)

        self.app.push_screen(Confirm(plan.title, plan.question, plan.yes), answered)

    def _stop(self, job: Job, then: Then | None = None) -> None:
        self._start(job, then)
        self._stopped = True

    def _start(self, job: Job, then: Then | None = None) -> None:
        self._stopped = False
        try:
            follow(job(), self, then)
        except SpectuiError as error:
            self._tell(str(error), "error")

    def _tell(self, text: str, severity: str) -> None:
        self.app.tell(text, severity)  # type: ignore[attr-defined]  # the app is SpectuiApp
