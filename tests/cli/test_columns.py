"""Rows that fit a terminal: aligned where there is room, and never cut off."""

import pytest

from spectui.cli.columns import Columns, entry, terminal_width, wrapped

ROWS = [
    ("name", "size", ""),
    ("a.gguf", "1 GB", "small"),
    ("a-model-with-a-long-name.gguf", "12 GB", "large, and rather slow on this machine"),
]


def shown(width, **more):
    columns = Columns(ROWS, width, **more)
    return [line for row in ROWS for line in columns.lines(row)]


def test_where_there_is_room_each_row_is_one_aligned_line():
    assert shown(120, right=frozenset({1})) == [
        "name                            size",
        "a.gguf                          1 GB  small",
        "a-model-with-a-long-name.gguf  12 GB  large, and rather slow on this machine",
    ]


def test_without_a_width_no_line_is_broken():
    assert len(shown(None)) == len(ROWS)


def test_remarks_go_below_all_rows_if_one_does_not_fit():
    assert shown(50) == [
        "name                           size",
        "a.gguf                         1 GB",
        "  small",
        "a-model-with-a-long-name.gguf  12 GB",
        "  large, and rather slow on this machine",
    ]


def test_a_name_that_is_too_long_stands_above_its_cells():
    assert shown(24) == [
        "name               size",
        "a.gguf             1 GB",
        "  small",
        "a-model-with-a-long-name.gguf",
        "                   12 GB",
        "  large, and rather slow",
        "  on this machine",
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, None])
@pytest.mark.parametrize("indent", ["", "    "])
def test_nothing_is_lost_and_only_a_name_may_be_too_long(width, indent):
    lines = shown(width, indent=indent)
    words = [word for row in ROWS for cell in row for word in cell.split()]
    assert [word for line in lines for word in line.split()] == words
    assert all(line.startswith(indent) for line in lines)
    names = {indent + row[0] for row in ROWS}
    assert all(width is None or len(line) <= width or line in names for line in lines)


def test_a_path_is_never_broken():
    path = "/a-long/path-with-hyphens/" + "x" * 60
    assert wrapped(f"see {path} there", 30, "  ") == ["  see", f"  {path}", "  there"]


def test_an_entry_is_one_line_if_it_fits():
    assert entry("a.gguf", "it is cut off", 30) == ["a.gguf: it is cut off"]
    assert entry("a.gguf", "it is cut off, so download it", 30, "  ") == [
        "  a.gguf:",
        "    it is cut off, so download",
        "    it",
    ]
    assert entry("a.gguf", "x" * 200, None) == [f"a.gguf: {'x' * 200}"]


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("3", 40)])
def test_only_a_terminal_has_a_width(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert terminal_width() == width
