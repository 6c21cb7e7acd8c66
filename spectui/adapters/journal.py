"""What was measured, as it is measured: one JSON object a line, written out at once.

A plain file that any tool reads. Trouble with it never stops a measurement: it is told once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from spectui.domain.runs import Request, Run


class JsonlJournal:
    """Appends to ``folder/DATE-PID.jsonl``, made when there is something to write."""

    def __init__(
        self, folder: Path | None, head: dict[str, object], trouble: Callable[[str], None]
    ) -> None:
        """``head`` is the first line; None as ``folder`` writes nothing."""
        self._folder = folder
        self._head = head
        self._trouble = trouble
        self._file: TextIO | None = None
        self._broken = folder is None

    @property
    def path(self) -> Path | None:
        """The file, once there is one."""
        return Path(self._file.name) if self._file else None

    def run_started(self, run: Run, argv: Sequence[str]) -> None:
        """Write a run's arm and the command its server was started with."""
        self._write(
            {
                "event": "run",
                "run": run.number,
                "arm": run.arm.name,
                "speculation": {"type": run.arm.speculation.type}
                | dict(run.arm.speculation.settings),
                "planned": run.planned,
                "argv": list(argv),
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
            file.write(json.dumps({"at": now, **entry}, ensure_ascii=False) + "\n")
            file.flush()
        except OSError as error:
            self._broken = True
            self._trouble(f"the record of this session cannot be written ({error.strerror})")

    def _open(self, now: str) -> TextIO:
        if self._file is None:
            assert self._folder is not None  # noqa: S101 - without one it is broken from the start
            self._folder.mkdir(parents=True, exist_ok=True)
            stamp = now[:19].replace(":", "").replace("T", "-")
            path = self._folder / f"{stamp}-{os.getpid()}.jsonl"
            self._file = path.open("a", encoding="utf-8")
            head = {"at": now, "event": "session", **self._head}
            self._file.write(json.dumps(head, ensure_ascii=False) + "\n")
        return self._file
