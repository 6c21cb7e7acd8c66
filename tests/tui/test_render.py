"""Lines, dots, charts: what renderers make of values, without an app."""

from dataclasses import replace

import pytest
import scenes

from spectui.domain.samples import Mark, SettledPoint, SourceState, SourceStatus, SpeedPoint
from spectui.domain.text import duration
from spectui.tui import words
from spectui.tui.glyphs import ASCII, BLOCK, BRAILLE, ascii_only, detect
from spectui.tui.line import Line, shorten, wrap
from spectui.tui.look import Look
from spectui.tui.reading import Sign, curves, next_to_compare, signs
from spectui.tui.render import decay, speed
from spectui.tui.render.gauge import gauge
from spectui.tui.render.raster import Raster


def plain(lines):
    return [line.plain.rstrip() for line in lines]


# lines


def test_neighbours_of_one_tone_become_one_piece():
    assert len(Line("a", "good").add("b", "good").add("  ").add("c", "bad").pieces) == 2


def test_blanks_with_a_ground_of_their_own_stay_apart():
    assert len(Line("a", "good").add(" ", "accent reverse").pieces) == 2


def test_a_line_is_cut_at_cells_not_characters():
    line = Line("漢字漢字", "good").add("abc", "bad")
    assert line.width == 11
    assert line.fit(6).plain == "漢字…"
    assert line.fit(11) == line


def test_a_line_that_is_cut_exactly_between_two_pieces_says_so():
    assert Line("abc", "good").add("def", "bad").fit(3).plain == "ab…"


def test_what_does_not_fit_at_the_right_is_left_out():
    assert Line("abc").right(Line("xyz"), 8).plain == "abc  xyz"
    assert Line("abc").right(Line("xyz"), 6).plain == "abc"


def test_text_from_outside_loses_what_acts():
    assert Line().outside(scenes.HOSTILE).plain.startswith("[bold red]x[/] ")
    assert "\x1b" not in Line().outside(scenes.HOSTILE).plain


def test_wrapping_ends_with_an_ellipsis_where_lines_run_out():
    assert wrap("one two three four", 8, 2) == ["one two", "three f…"]
    assert wrap("", 8, 2) == []
    assert shorten("abc", 0) == ""


# words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (89, "89 s"),
        (118, "2 min"),
        (3570, "1 h 00 min"),
        (3900, "1 h 05 min"),
    ],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("tps", "said"), [(None, "–"), (8.416, "8.42"), (71.34, "71.3"), (99.96, "100"), (312.4, "312")]
)
def test_speeds_have_three_digits(tps, said):
    assert words.speed(tps) == said


def test_a_source_that_waits_or_is_absent_is_no_trouble():
    for status in (SourceStatus.OK, SourceStatus.WAITING, SourceStatus.ABSENT):
        snapshot = replace(scenes.idle(), sources={"gpu": SourceState("gpu", status, "why")})
        assert words.trouble(snapshot, "gpu") == ""
    assert words.trouble(scenes.idle(), "unheard of") == ""


# signs


@pytest.mark.parametrize(
    ("wanted", "environ", "encoding", "found"),
    [
        (None, {"TERM": "xterm-256color"}, "utf-8", BRAILLE),
        (None, {"TERM": "linux"}, "UTF-8", BLOCK),
        (None, {"TERM": "vt100"}, "utf-8", ASCII),
        (None, {"TERM": "dumb"}, "utf-8", ASCII),
        (None, {"TERM": "xterm"}, "iso-8859-1", ASCII),
        (None, {}, None, ASCII),
        ("block", {"TERM": "xterm"}, "utf-8", BLOCK),
        ("unknown", {"TERM": "xterm"}, "utf-8", BRAILLE),
    ],
)
def test_signs_are_those_that_the_terminal_can_show(wanted, environ, encoding, found):
    assert detect(wanted, environ, encoding) is found


def test_ascii_keeps_the_width():
    assert ascii_only("1.31× ← 72 °C …é") == "1.31x < 72 'C ~?"


def test_an_arm_has_one_sign_however_often_it_is_run_and_no_two_share_both():
    first, again = (
        scenes.run(2, scenes.draft_simple(4), 0),
        scenes.run(9, scenes.draft_simple(4), 0),
    )
    others = [scenes.run(100 + n, scenes.draft_simple(n), 0, count=0) for n in range(5, 45)]
    found = signs([scenes.run(1, scenes.OFF, 0), first, *others, again], BRAILLE)
    assert found[1] == Sign("▪", "base")
    assert found[2] == found[9]
    assert len({found[run.number] for run in [first, *others]}) == 41


# dots


def test_braille_dots_lie_where_they_are_set():
    raster = Raster(2, 1, "braille")
    raster.dot(0, 0)
    raster.dot(3, 3)
    raster.dot(9, 9)
    assert raster.cells() == {(0, 0): "⠁", (1, 0): "⢀"}


def test_a_line_has_no_holes():
    raster = Raster(10, 5, "ascii")
    raster.line(0, 9, 9, 0)
    assert len(raster.cells()) == 10


@pytest.mark.parametrize(("share", "drawn"), [(None, "────"), (0.5, "━━──"), (7.0, "━━━━")])
def test_gauges_are_clamped(share, drawn):
    assert gauge(share, 4, BRAILLE).plain == drawn


# speed


def chart(**more):
    return speed.Chart(
        **{"now": 100.0, "flight": (), "settled": (), "marks": (), "signs": {}, "baseline": None}
        | more
    )


@pytest.mark.parametrize(
    ("low", "high", "rows"), [(45, 95, 10), (0.4, 0.5, 6), (3, 3, 5), (10, 900, 12), (1, 1e4, 3)]
)
def test_an_axis_holds_its_values_and_has_round_ticks(low, high, rows):
    axis = speed.scale([low, high], rows)
    assert axis.low <= low <= high <= axis.high
    assert all(abs(tick / axis.step - round(tick / axis.step)) < 1e-9 for tick in axis.ticks)
    assert axis.row(axis.high, rows) == 0
    assert axis.row(axis.low, rows) == rows - 1


def test_nothing_to_show_is_no_chart():
    assert speed.draw(chart(), 60, 12, BRAILLE) == []
    assert speed.draw(chart(baseline=50.0), 10, 12, BRAILLE) == []


@pytest.mark.parametrize("glyphs", [BRAILLE, BLOCK, ASCII])
def test_a_chart_fills_its_cells_exactly(glyphs):
    points = tuple(SpeedPoint(float(at), 50.0 + at % 7) for at in range(100))
    lines = speed.draw(chart(flight=points, baseline=40.0), 60, 12, glyphs)
    assert len(lines) == 12
    assert all(line.width == 60 for line in lines[:-1])
    assert lines[-1].width <= 60


def test_a_gap_stays_a_gap():
    points = [SpeedPoint(at / 2, 50.0) for at in range(20)]
    points += [SpeedPoint(10.0, None)]
    points += [SpeedPoint(30 + at / 2, 50.0) for at in range(20)]
    lines = plain(speed.draw(chart(now=40.0, flight=points), 90, 8, BRAILLE))
    [drawn] = [line[6:] for line in lines[:-1] if line[6:].strip()]
    assert drawn[20:58].strip() == ""
    assert drawn[:19].strip() != ""


def test_the_line_does_not_run_across_a_restart():
    points = [SpeedPoint(at / 2, 20.0 if at < 40 else 80.0) for at in range(80)]
    lines = plain(
        speed.draw(chart(now=40.0, flight=points, marks=(Mark(20.0, "n_max 4"),)), 90, 12, BRAILLE)
    )
    assert "n_max 4" in lines[0]
    middle = lines[4:8]
    assert all(set(line[6:]) <= {" ", "╎"} for line in middle)


def test_the_line_moves_by_whole_columns():
    points = tuple(SpeedPoint(at / 2, 50.0) for at in range(200))
    first = speed.draw(chart(now=100.0, flight=points), 60, 8, BRAILLE)
    later = speed.draw(chart(now=100.4, flight=points), 60, 8, BRAILLE)
    assert first == later


def test_a_finished_request_has_the_sign_of_its_arm_and_the_baseline_its_label():
    lines = speed.draw(
        chart(
            now=20.0,
            settled=(SettledPoint(1.0, 9.0, 70.0, 3), SettledPoint(9.0, 19.0, 72.0, 4)),
            signs={3: Sign("▲", "arm1")},
            baseline=52.1,
        ),
        60,
        12,
        BRAILLE,
    )
    text = "\n".join(plain(lines))
    assert text.count("▲") == 1
    assert "•" in text
    assert "off 52.1" in text


# acceptance


def test_current_previous_and_chosen_each_have_a_sign_and_a_count():
    snapshot = scenes.many()
    shown = curves(snapshot, BRAILLE, 5, conditional=False)
    assert [(curve.role, curve.run) for curve in shown] == [
        ("now", 40),
        ("before", 39),
        ("chosen", 5),
    ]
    assert len({curve.sign for curve in shown}) == 3
    look = Look.of(theme(), BRAILLE)
    text = "\n".join(plain(decay.draw(shown, 60, 14, look)))
    for curve in shown:
        assert text.count(curve.sign.glyph) > 1
        assert f"{curve.drafts} drafts" in text


def test_the_chosen_run_is_not_drawn_twice():
    snapshot = scenes.many()
    assert len(curves(snapshot, BRAILLE, 39, conditional=False)) == 2


def test_conditional_points_are_ratios_of_neighbours():
    snapshot = scenes.done()
    one, two = (curves(snapshot, BRAILLE, None, conditional=kind)[0] for kind in (False, True))
    assert two.points[0] == one.points[0]
    assert two.points[2] == pytest.approx(one.points[2] / one.points[1])


@pytest.mark.parametrize(("width", "height"), [(58, 11), (40, 8), (112, 30), (58, 5), (24, 5)])
@pytest.mark.parametrize("glyphs", [BRAILLE, BLOCK, ASCII])
def test_a_curve_fits_its_cells(width, height, glyphs):
    shown = curves(scenes.cut_short(), glyphs, None, conditional=False)
    lines = decay.draw(shown, width, height, Look.of(theme(), glyphs))
    assert len(lines) <= height
    assert all(line.width <= width for line in lines)


def test_long_drafts_have_few_ticks_and_no_sign_on_every_point():
    shown = curves(scenes.long_names(), BRAILLE, None, conditional=False)
    text = "\n".join(plain(decay.draw(shown, 58, 12, Look.of(theme(), BRAILLE))))
    assert " 24" in text
    assert " 23" not in text


def test_going_round_the_runs_ends_with_none():
    snapshot = scenes.many()
    against, seen = None, []
    while (against := next_to_compare(snapshot, against)) is not None:
        seen.append(against)
    assert seen == list(range(38, 1, -1))
    assert next_to_compare(scenes.done(), None) is None


def theme():
    from pathlib import Path

    from spectui.tui.themes import read

    return read(Path(__file__).parents[2] / "themes" / "spectui-dark.toml")


def test_a_shortened_arm_keeps_what_tells_it_from_another():
    from spectui.tui.widgets.runs import shorten_arm

    assert shorten_arm("ngram-simple m16 n3", 15) == "ngram-s… m16 n3"
    assert shorten_arm("ngram-simple m16 n3", 19) == "ngram-simple m16 n3"
    assert shorten_arm("n_max 4, p_min 0.6", 10) == "n_max 4,…"
    assert shorten_arm("ngram-cache", 6) == "ngram…"
