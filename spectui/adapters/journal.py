"""What was measured, as it is measured: one JSON object a line, written out at once.

A plain file that any tool reads. Trouble with it never stops a measurement: it is told once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from spectui.domain.acceptance import Acceptance
from spectui.domain.errors import SpectuiError
from spectui.domain.profile import Profile, parse_profile
from spectui.domain.runs import Arm, Request, Run
from spectui.domain.samples import EngineInfo
from spectui.domain.speculation import Speculation
from spectui.domain.throughput import Timings


@dataclass(frozen=True, slots=True)
class Record:
    """A session read back. ``source`` is the profile's file, None for the demo."""

    profile: Profile
    source: Path | None
    engine: EngineInfo
    target: str
    draft: str
    hardware: str
    runs: tuple[Run, ...]


class JsonlJournal:
    """Appends to ``folder/DATE-PID.jsonl``, made when there is something to write."""

    def __init__(self, folder: Path, head: dict[str, object]) -> None:
        """Take ``head`` as the first line, below its own event and time."""
        self._folder = folder
        self._head = head
        self._trouble: Callable[[str], None] = _nobody
        self._file: TextIO | None = None
        self._path: Path | None = None
        self._broken = False

    def on_trouble(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with one sentence when nothing can be written any more."""
        self._trouble = tell

    @property
    def path(self) -> Path | None:
        """The file, once there is one."""
        return self._path

    def run_started(
        self, run: Run, *, argv: Sequence[str], build: str, gpus: Sequence[str]
    ) -> None:
        """Write a run's arm, and the command, build and GPUs it was measured with."""
        self._write(
            {
                "event": "run",
                "run": run.number,
                "arm": run.arm.name,
                "speculation": {"type": run.arm.speculation.type}
                | dict(run.arm.speculation.settings),
                "planned": run.planned,
                "started": run.started,
                "argv": list(argv),
                "build": build,
                "gpus": list(gpus),
            }
        )

    def request_ended(self, run: Run, request: Request) -> None:
        """Write one request whole, its text included."""
        self._write({"event": "request", "run": run.number, **asdict(request)})

    def run_ended(self, run: Run) -> None:
        """Write how a run ended."""
        self._write(
            {
                "event": "end",
                "run": run.number,
                "requests": len(run.requests),
                "ended": run.ended,
                "stopped": run.stopped,
                "unverified": run.unverified,
            }
        )

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._broken = True

    def _write(self, entry: dict[str, object]) -> None:
        if self._broken:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            file = self._open(now)
            file.write(_dumps({"at": now, **entry}))
            file.flush()
        except (OSError, ValueError) as error:
            self._broken = True
            why = getattr(error, "strerror", None) or error
            self._trouble(f"the record of this session cannot be written ({why})")

    def _open(self, now: str) -> TextIO:
        if self._file is None:
            # prompts and answers are a person's own: nobody else may read them
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stamp = now[:19].replace(":", "").replace("T", "-")
            path = self._folder / f"{stamp}-{os.getpid()}.jsonl"
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file, self._path = os.fdopen(handle, "a", encoding="utf-8"), path
            self._file.write(_dumps({"at": now, "event": "session", **self._head}))
        return self._file


def _dumps(entry: dict[str, object]) -> str:
    """Return a line of pure ASCII: a text has signs that other readers take for line ends."""
    return json.dumps(entry, ensure_ascii=True, default=str) + "\n"


def _nobody(_: str) -> None:
    """Hear of trouble before anybody has asked to."""


def newest_record(folder: Path) -> Path | None:
    """Return the newest session record in ``folder``, None without one."""
    try:
        found = [(path.stat().st_mtime, path) for path in folder.glob("*.jsonl")]
    except OSError:
        return None
    return max(found)[1] if found else None


def read_record(path: Path) -> Record:
    """Read a session back; a last line cut short by a crash is left out.

    Raises SpectuiError where the file is not a session's record.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise SpectuiError(f"{path} cannot be read ({why})") from None
    try:
        head, *events = [entry for line in lines if (entry := _entry(line)) is not None]
        source = head["source"]
        launches = [entry for entry in events if entry["event"] == "run"]
        gpus = dict.fromkeys(name for entry in launches for name in entry["gpus"])
        build = next((e["build"] for e in reversed(launches) if e["build"]), "")
        return Record(
            profile=parse_profile(head["profile"]),
            source=Path(source) if source else None,
            engine=EngineInfo(head["engine"]["kind"], build or head["engine"]["build"]),
            target=head["target"],
            draft=head["draft"],
            hardware=", ".join([head["hardware"], *gpus]),
            runs=_runs(events),
        )
    except (KeyError, TypeError, ValueError):
        raise SpectuiError(f"{path} is not a session's record") from None


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _runs(events: Sequence[dict[str, Any]]) -> tuple[Run, ...]:
    runs: dict[int, Run] = {}
    for entry in events:
        number = entry["run"]
        if entry["event"] == "run":
            speculation = dict(entry["speculation"])
            arm = Arm(Speculation.of(speculation.pop("type"), speculation))
            runs[number] = Run(number, arm, entry["started"], entry["planned"], stopped="cut off")
        elif entry["event"] == "request":
            runs[number] = runs[number].with_request(_request(entry))
        elif entry["event"] == "end":
            ended = {"ended": entry["ended"], "stopped": entry["stopped"]}
            runs[number] = replace(runs[number], **ended)
    return tuple(runs.values())


def _request(entry: dict[str, Any]) -> Request:
    fields = {k: v for k, v in entry.items() if k not in {"at", "event", "run"}}
    fields["timings"] = Timings(**fields["timings"])
    if fields["acceptance"] is not None:
        acceptance = dict(fields["acceptance"])
        acceptance["accepted_at"] = tuple(acceptance["accepted_at"])
        fields["acceptance"] = Acceptance(**acceptance)
    return Request(**fields)
