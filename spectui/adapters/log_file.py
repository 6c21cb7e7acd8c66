"""The file that a server's output goes to: bounded, and read from its end as it grows.

The child writes to the file itself, never into a pipe, so that it can't block on a reader that is
slow or gone. The file is opened for appending: when it gets too long its last part is copied to
``NAME.1`` and the file is truncated, and the child goes on at the start without noticing. (What it
writes in the instant between the two steps is lost.)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections import deque
from io import FileIO
from pathlib import Path

from spectui.domain.errors import SpectuiError
from spectui.domain.text import clean

LIMIT = 8 << 20  # bytes
KEEP = 500  # lines
_LINE = 2000  # characters of a line that are kept
_LINE_BYTES = 4 * _LINE + 4  # no character of UTF-8 is longer than four bytes
_READ = 128 << 10  # most bytes looked at at once: reading must stay cheap whatever the child writes
_NAMES = 100
_ATTEMPTS = 20
# No link is followed, and no pipe that lies about under the name is waited for.
_FLAGS = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class LogFile:
    """One server's log, ``server.log`` in a directory, or ``server-2.log`` while that is in use.

    ``path`` is where it is; ``note`` says why it is not in the directory that was asked for, and is
    empty where it is. A log of an earlier server is kept as ``NAME.1``. Not thread-safe.
    """

    def __init__(self, directory: Path, *, limit: int = LIMIT) -> None:
        """Open it. Raises SpectuiError where neither there nor in a temporary place it can be.

        It may grow past ``limit`` bytes until the next ``refresh``, never after one; a quarter of
        it is kept in ``NAME.1``.
        """
        self._limit = limit
        self._lines: deque[str] = deque(maxlen=KEEP)
        self._partial = b""
        self._seen = 0  # how far the file has been read
        self._past = 0  # bytes written before the file was truncated
        self.note = ""
        self.path, self._file = self._open(directory)

    @property
    def size_written(self) -> int:
        """Bytes written since the log was opened, as far as ``refresh`` has seen."""
        return self._past + self._seen

    def writer(self) -> int:
        """Return a new file descriptor for a child to write to; the caller closes it."""
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | _FLAGS & ~os.O_NONBLOCK, 0o600)

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the last ``lines`` lines (500 at most), cleaned, the unfinished last one included.

        Blank lines are left out. Never raises: a log that cannot be read any more has the lines
        that it had.
        """
        self.refresh()
        if lines <= 0:
            return ()
        unfinished = _line(self._partial)
        every = (*self._lines, unfinished) if unfinished else tuple(self._lines)
        return every[-min(lines, KEEP) :]

    def refresh(self) -> None:
        """Read what is new, and shorten the file if it is too long. Never raises."""
        if self._file.closed:
            return
        with contextlib.suppress(OSError):
            size = self._size()
            if size < self._seen:  # somebody else emptied it
                self._past += self._seen
                self._seen, self._partial = 0, b""
            self._read_to(size)
            if size > self._limit:
                self._rotate()

    def close(self) -> None:
        """Read the rest and let go of the file; ``tail`` goes on answering."""
        self.refresh()
        self._file.close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _read_to(self, size: int) -> None:
        data = self._fetch(size)
        self._seen = size
        self._take(data)

    def _fetch(self, size: int) -> bytes:
        """Return what came in up to ``size``; of a flood only the end, from a line's start on."""
        start = max(self._seen, size - _READ)
        data = os.pread(self._file.fileno(), size - start, start)
        if start == self._seen:
            return data
        self._partial = b""  # its other half is leapt over
        return data[data.find(b"\n") + 1 :]

    def _take(self, data: bytes) -> None:
        """Add ``data`` to the lines."""
        *whole, rest = (self._partial + data).split(b"\n")
        self._lines.extend(line for line in map(_line, whole[-2 * KEEP :]) if line)
        if len(rest) > _LINE_BYTES:  # a progress bar needs its end, any other line its start
            rest = rest.rstrip(b"\r").rpartition(b"\r")[2][:_LINE_BYTES]
        self._partial = rest

    def _rotate(self) -> None:
        with contextlib.suppress(OSError):  # a bounded log matters more than its copy
            self._keep_end()
        # A server's last words must not get lost: look for an instant in which it is silent, and
        # clean the text only afterwards, which takes longer than all the rest.
        torn = True
        for _ in range(_ATTEMPTS):
            size = self._size()
            data = self._fetch(size)
            if self._size() == size:
                torn = False
                break
        os.ftruncate(self._file.fileno(), 0)
        self._past += size
        self._seen = 0
        # What was lost may have ended one line and begun another: don't join what is left of both.
        self._take(data + b"\n" if torn else data)

    def _keep_end(self) -> None:
        """Copy the end of the file to ``NAME.1``."""
        size = self._size()
        start = max(0, size - self._limit // 4)
        old = self.path.with_name(f"{self.path.name}.1")
        target = os.open(old, os.O_WRONLY | os.O_TRUNC | _FLAGS, 0o600)
        with FileIO(target, "w") as copy:
            while start < size:
                data = os.pread(self._file.fileno(), min(1 << 20, size - start), start)
                if not data:
                    break
                start += copy.write(data)

    def _open(self, directory: Path) -> tuple[Path, FileIO]:
        try:
            return self._open_in(directory)
        except OSError as error:
            why = _why(error)
        temporary = Path(tempfile.gettempdir()) / f"spectui-{os.getuid()}"
        try:
            opened = self._open_in(temporary, private=True)
        except OSError as error:
            raise SpectuiError(
                f"no log can be written in {directory} ({why}) nor in {temporary} ({_why(error)})",
                "free some space, or make one of them writable",
            ) from None
        self.note = f"the server's log is {opened[0]}: {directory} cannot be written ({why})"
        return opened

    def _open_in(self, directory: Path, *, private: bool = False) -> tuple[Path, FileIO]:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if private:
            status = directory.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                raise OSError(f"{directory} belongs to somebody else")
        for number in range(1, _NAMES):
            path = directory / ("server.log" if number == 1 else f"server-{number}.log")
            file = FileIO(os.open(path, os.O_RDWR | _FLAGS, 0o600), "r+")
            try:
                if _lock(file):
                    self.path, self._file = path, file
                    self._begin()
                    return path, file
            except OSError:
                file.close()
                raise
            file.close()
        raise OSError("too many logs are in use")

    def _begin(self) -> None:
        """Empty the file, an earlier log put aside; find out whether there is room to write."""
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise OSError(f"{self.path} is not a file")
        if self._size():
            self._keep_end()
            os.ftruncate(self._file.fileno(), 0)
        os.pwrite(self._file.fileno(), bytes(4096), 0)
        os.ftruncate(self._file.fileno(), 0)


def _lock(file: FileIO) -> bool:
    """Take the log for this process; False where another one has it."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: better a shared log than none
    return True


def _line(raw: bytes) -> str:
    """Clean one line. Of one that was overwritten with carriage returns the last state counts."""
    if b"\r" in raw:
        raw = raw.rstrip(b"\r").rpartition(b"\r")[2]
    return clean(raw[:_LINE_BYTES].decode("utf-8", "replace"), limit=_LINE).rstrip()


def _why(error: OSError) -> str:
    return error.strerror or str(error)
