"""The first line: what runs, how it is doing, and on which engine."""

from __future__ import annotations

from spectui.domain.phases import Phase
from spectui.domain.samples import Activity, Doing, Snapshot
from spectui.domain.text import clean, duration
from spectui.tui.attached import phase_word
from spectui.tui.line import Line, shorten
from spectui.tui.widgets.panel import Panel

_PHASE_TONES = {
    Phase.STOPPED: "muted",
    Phase.READY: "good",
    Phase.BUSY: "good",
    Phase.FAILED: "bad bold",
    Phase.GONE: "bad bold",
}


def progress(activity: Activity) -> str:
    """Return ``measuring n_max 4 12/36 · 2 min left``, empty when idle."""
    if activity.doing is Doing.IDLE:
        return ""
    parts = [str(activity.doing), clean(activity.arm, limit=60)]
    if activity.total:
        parts.append(f"{activity.done}/{activity.total}")
    text = " ".join(part for part in parts if part)
    if activity.seconds_left is not None:
        text += f" · {duration(activity.seconds_left)} left"
    return text


class StatusLine(Panel):
    """Target ← draft · arm, then the phase with what is under way, then the build."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Return the one line; the models give way first, then the build."""
        del height
        snapshot = self.snapshot
        state = self._state(snapshot)
        engine = self._engine(snapshot)
        if width < state.width + engine.width + min(self._models(snapshot, 999).width, 44) + 5:
            engine = Line()
        end = Line().extend(state)
        if engine:
            end.add("   ").extend(engine)
        models = self._models(snapshot, width - end.width - 2)
        return [models.right(end, width)] if models.width + end.width < width else [end]

    def _models(self, snapshot: Snapshot, width: int) -> Line:
        target = clean(snapshot.target, limit=80) or clean(snapshot.title, limit=80) or "spectui"
        draft = clean(snapshot.draft, limit=80)
        arm = ""
        if snapshot.running is not None:
            arm = "no speculation" if snapshot.running.is_baseline else snapshot.running.name
        line = Line(target, "text bold")
        if draft:
            line.add(" ← ", "muted").add(draft, "text")
        if snapshot.attached is not None:
            line.add(" at ", "muted").add(clean(snapshot.url, limit=120), "text")
        elif arm:
            line.add(" · ", "muted").outside(arm, "text")
        if line.width > width and snapshot.attached is not None:
            place = Line(" at ", "muted").add(clean(snapshot.url, limit=120), "text")
            line = Line(shorten(target, max(width - place.width, 8)), "text bold").extend(place)
        elif line.width > width:
            # what is being measured says the arm already
            line = Line(target, "text bold")
            if draft:
                room = max(width - 3, 8)
                least = min(len(draft), room // 3)
                line = Line(shorten(target, room - least), "text bold")
                line.add(" ← ", "muted").add(shorten(draft, room - line.width), "text")
        return line.fit(max(width, 0))

    def _state(self, snapshot: Snapshot) -> Line:
        sign = self.look.glyphs.phases[snapshot.phase]
        tone = _PHASE_TONES.get(snapshot.phase, "pending")
        line = Line(f"{sign} ", tone)
        doing = progress(snapshot.activity)
        if doing:
            line.add(doing, "text bold")
        if not doing or snapshot.phase not in {Phase.READY, Phase.BUSY}:
            line.add(" · " if doing else "", "muted").add(phase_word(snapshot), tone)
            if snapshot.phase in {Phase.STARTING, Phase.LOADING, Phase.STOPPING}:
                line.add(f" {duration(snapshot.at - snapshot.phase_since)}", "muted")
        return line

    def _engine(self, snapshot: Snapshot) -> Line:
        if snapshot.engine is None:
            return Line()
        build = clean(snapshot.engine.build, limit=28)
        return Line(f"{clean(snapshot.engine.kind, limit=12)} {build}".strip(), "muted")
