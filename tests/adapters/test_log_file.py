from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import open_files

from spectui.adapters.log_file import LogFile
from spectui.domain.errors import SpectuiError


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogFile]:
    file = LogFile(tmp_path, limit=10_000)
    yield file
    file.close()


@pytest.fixture
def write(log: LogFile) -> Iterator[Writer]:
    fd = log.writer()
    yield Writer(fd)
    os.close(fd)


class Writer:
    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __call__(self, data: bytes) -> None:
        assert os.write(self.fd, data) == len(data)


def test_the_last_lines_come_in_order(log: LogFile, write: Writer) -> None:
    write(b"one\ntwo\n")
    assert log.tail(5) == ("one", "two")
    write(b"three\n")
    assert log.tail(2) == ("two", "three")
    assert log.tail(0) == ()
    assert log.size_written == 14


def test_an_unfinished_line_is_shown_and_then_completed(log: LogFile, write: Writer) -> None:
    write(b"one\n....")
    assert log.tail(5) == ("one", "....")
    write(b"..\n")
    assert log.tail(5) == ("one", "......")


def test_a_character_that_is_written_in_two_halves_is_whole(log: LogFile, write: Writer) -> None:
    euro = "€".encode()
    write(b"5 " + euro[:1])
    log.tail(1)
    write(euro[1:] + b"\n")
    assert log.tail(1) == ("5 €",)


def test_of_a_progress_bar_the_last_state_is_shown(log: LogFile, write: Writer) -> None:
    write(b"10 %\r20 %\r30 %\r")
    assert log.tail(1) == ("30 %",)
    for percent in range(5000):
        write(b"%d %%\r" % percent)
        if percent % 500 == 0:
            log.refresh()
    assert log.tail(1) == ("4999 %",)
    write(b"done\r\n")
    assert log.tail(1) == ("done",)


def test_blank_lines_are_left_out(log: LogFile, write: Writer) -> None:
    write(b"one\n\n \r\n\x00\x00\n\x1b[0m\ntwo\n\n")
    assert log.tail(9) == ("one", "two")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"nul\x00s\x00", "nuls"),
        (b"bad \xff\xfe utf", "bad \ufffd\ufffd utf"),
        ("\u202eright to left".encode(), "right to left"),
        (b"[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_hostile_text_is_made_harmless(log: LogFile, write: Writer, raw: bytes, shown: str) -> None:
    write(raw + b"\n")
    assert log.tail(1) == (shown,)


def test_an_endless_line_is_cut_and_the_next_one_is_whole(log: LogFile, write: Writer) -> None:
    for _ in range(50):
        write(b"y" * 1000)
        log.refresh()
    (line,) = log.tail(9)
    assert len(line) == 2000
    assert line.endswith("…")
    assert len(log._partial) < 10_000
    write(b"\nnext\n")
    assert [len(line) for line in log.tail(9)] == [2000, 4]


def test_no_more_than_500_lines_are_kept(log: LogFile, write: Writer) -> None:
    for number in range(3):
        write(b"".join(b"%d\n" % line for line in range(number * 400, number * 400 + 400)))
        log.refresh()
    assert len(log.tail(9999)) == 500
    assert log.tail(9999)[-1] == "1199"


def test_a_flood_is_leapt_over_and_no_half_line_is_shown(tmp_path: Path) -> None:
    log = LogFile(tmp_path)
    fd = log.writer()
    os.write(fd, b"begun")
    log.refresh()
    os.write(fd, b"".join(b" number %d of many\n" % number for number in range(100_000)))
    began = time.perf_counter()
    lines = log.tail(500)
    assert time.perf_counter() - began < 1
    assert lines[-1] == " number 99999 of many"
    assert lines[0] == " number 99500 of many"
    os.close(fd)
    log.close()


def test_a_log_that_grew_too_long_is_shortened_and_goes_on(log: LogFile, write: Writer) -> None:
    total = 0
    for number in range(1000):
        line = b"line %d %s\n" % (number, b"z" * 40)
        write(line)
        total += len(line)
        log.refresh()
        assert log.path.stat().st_size <= 10_000
    old = log.path.with_name("server.log.1")
    assert 0 < old.stat().st_size <= 2500
    assert log.tail(1)[0].startswith("line 999 ")
    assert log.size_written == total
    # what is in the old file comes right before what is in the new one
    last = old.read_bytes().split(b"\n")[-2].split()[1]
    first = log.path.read_bytes().split(b"\n")[0].split()[1]
    assert int(first) == int(last) + 1


def test_a_line_that_is_amid_when_the_log_is_shortened_is_whole(
    log: LogFile, write: Writer
) -> None:
    write(b"a" * 10_000 + b"\nbeg")
    log.refresh()
    assert log.path.stat().st_size == 0
    write(b"un\n")
    assert log.tail(1) == ("begun",)


def test_lines_torn_by_a_flood_are_not_joined(
    log: LogFile, write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = log._size

    def never_silent() -> int:
        write(b"f" * 100)
        return size()

    write(b"\n" + b"e" * 10_000)
    monkeypatch.setattr(log, "_size", never_silent)
    log.refresh()
    monkeypatch.undo()
    assert log.path.stat().st_size == 0
    write(b"the last words\n")
    assert log.tail(2)[1] == "the last words"


def test_a_log_that_somebody_empties_is_read_from_its_start(log: LogFile, write: Writer) -> None:
    write(b"one\ntwo and a half")
    log.refresh()
    os.truncate(log.path, 0)
    write(b"new\n")
    assert log.tail(5) == ("one", "new")
    assert log.size_written == 22


def test_a_log_that_somebody_deletes_is_still_read(log: LogFile, write: Writer) -> None:
    write(b"one\n")
    log.path.unlink()
    write(b"two\n" + b"w" * 11_000 + b"\n")
    assert log.tail(9)[:2] == ("one", "two")
    write(b"three\n")
    assert log.tail(1) == ("three",)


def test_a_log_whose_folder_is_gone_stays_bounded(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "logs", limit=1000)
    fd = log.writer()
    log.path.unlink()
    log.path.parent.rmdir()
    os.write(fd, b"v" * 5000 + b"\nlast\n")
    assert log.tail(1) == ("last",)
    assert os.fstat(fd).st_size == 0
    os.close(fd)
    log.close()


def test_a_closed_log_keeps_its_lines(tmp_path: Path) -> None:
    log = LogFile(tmp_path)
    fd = log.writer()
    os.write(fd, b"one\ntwo")
    os.close(fd)
    log.close()
    log.close()
    assert log.tail(5) == ("one", "two")


def test_the_log_of_the_server_before_is_kept_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("of the first\n")
    log = LogFile(tmp_path)
    assert log.tail(5) == ()
    assert log.path.read_bytes() == b""
    assert (tmp_path / "server.log.1").read_text() == "of the first\n"
    log.close()


def test_two_logs_at_once_have_two_files(tmp_path: Path) -> None:
    first, second = LogFile(tmp_path), LogFile(tmp_path)
    assert (first.path.name, second.path.name) == ("server.log", "server-2.log")
    first.close()
    third = LogFile(tmp_path)
    assert third.path == first.path
    second.close()
    third.close()


def test_only_its_owner_may_read_a_log(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a" / "b")
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.parent.stat().st_mode & 0o777 == 0o700
    log.close()


def test_a_link_under_the_name_of_the_log_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "server.log").symlink_to(precious)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    log = LogFile(tmp_path)
    assert log.path.parent.parent == tmp_path / "tmp"
    log.close()
    assert precious.read_text() == "precious"


def test_where_the_folder_cannot_be_written_the_log_is_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    log = LogFile(tmp_path / "file" / "logs")
    assert log.path.is_relative_to(tmp_path / "tmp")
    assert str(log.path) in log.note
    assert "Not a directory" in log.note
    log.close()


def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(os, "pwrite", full)
    before = open_files()
    with pytest.raises(SpectuiError, match="No space left on device") as caught:
        LogFile(tmp_path)
    assert "\n" not in str(caught.value)
    assert "free some space" in str(caught.value)
    assert open_files() == before


def test_a_child_writes_on_after_the_log_was_shortened(tmp_path: Path) -> None:
    log = LogFile(tmp_path, limit=1000)
    fd = log.writer()
    program = "import sys; sys.stdin.read(1); print('a' * 2000, flush=True)\n"
    program += "sys.stdin.read(1); print('b', flush=True)"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=fd)
    os.close(fd)
    assert child.stdin is not None
    child.stdin.write(b"1")
    child.stdin.flush()
    until = time.monotonic() + 10
    while log.size_written < 2001 and time.monotonic() < until:
        log.refresh()
        time.sleep(0.01)
    child.communicate(b"2")
    assert log.tail(1) == ("b",)
    assert log.path.read_bytes() == b"b\n"
    log.close()
