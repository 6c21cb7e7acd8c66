"""What a program prints and how it ends, for questions such as ``--version`` and ``--help``."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Final

from spectui.adapters.program import child_environment
from spectui.domain.errors import EngineError

_PATIENCE: Final = 30.0  # s: a build for GPUs loads its drivers before it prints a word
_MOST: Final = 4 << 20  # bytes of it that are looked at


def printed(
    program: str, flag: str, variables: Mapping[str, str] | None = None
) -> tuple[str, int | None]:
    """Return what ``program`` prints on both outputs, and its exit status.

    ``variables`` are set besides those of spectui's own environment.
    Negative is a signal, None that it had to be killed. Only its first 4 MB are read. Raises
    EngineError where it cannot be started at all.
    """
    environment, _ = child_environment({**os.environ, **(variables or {})})
    # into a file, not a pipe: a program that prints without end must not fill our memory
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [program, flag],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"{program} cannot be started ({error.strerror})") from None
        code: int | None = None
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(OSError):  # whatever it left behind; usually nothing
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return output.read(_MOST).decode("utf-8", "replace"), code
