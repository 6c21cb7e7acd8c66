"""The dashboard on a server that somebody else runs: what it shows, and what it does not offer."""

from dataclasses import replace

import pytest
import scenes

from spectui.domain.acceptance import Acceptance
from spectui.domain.attached import Attachment, ServerKind
from spectui.domain.comparison import Answer, Tone
from spectui.domain.phases import Phase
from spectui.domain.runs import AS_IT_RUNS, WATCHED, Run, Summary
from spectui.domain.samples import EngineInfo, SettledPoint, SpeedPoint

URL = "http://127.0.0.1:8080"
TOTALS = Acceptance(400, 300, 100, (90, 80, 70, 60))
MISSING = "no acceptance by position: the server runs without --metrics"


def fresh(phase=Phase.READY, *, reason="", **attachment):
    """Return a server that was found a moment ago."""
    found = {"model": "x.gguf", "speculating": True, "types": ("ngram-simple",), **attachment}
    return replace(
        scenes.idle(),
        phase=phase,
        reason=reason,
        title=URL,
        target=str(found["model"]),
        draft="",
        url=URL,
        engine=EngineInfo("llama-server", "b11434"),
        running=AS_IT_RUNS if phase in {Phase.READY, Phase.BUSY} else None,
        has_draft=False,
        log=("This server runs elsewhere, and so does its log.",),
        answer=Answer(Tone.WAITING, "Watched as it runs: nothing has been counted yet", "no base"),
        attached=Attachment(ServerKind.LLAMA, **found),
    )


def used():
    """Return the same after others have used it for a while."""
    snapshot = fresh(Phase.BUSY, tps=61.2, totals=TOTALS)
    return replace(
        snapshot,
        runs=(Run(1, WATCHED, 90.0, 0),),
        summaries={1: Summary(requests=7, tokens=900, decode_tps=64.0, acceptance=TOTALS)},
        speed=tuple(SpeedPoint(90 + i / 2, 60.0 + i % 5) for i in range(18)),
        settled=(SettledPoint(92, 95, 64.0, 1),),
        answer=Answer(Tone.WAITING, "Watched as it runs: 75% accepted, 4.0 tokens a step", "no"),
    )


def server(face):
    """Return the text of the panel on the left, as if it were one line."""
    return " ".join(row.split("││")[0].strip("│ ") for row in face.text.split("\n"))


SCENES = {
    "fresh": fresh,
    "used": used,
    "connecting": lambda: fresh(Phase.STARTING, speculating=None, types=()),
    "loading": lambda: fresh(Phase.LOADING),
    "not reached": lambda: fresh(Phase.FAILED, reason="b is unloaded"),
    "gone": lambda: replace(used(), phase=Phase.GONE, reason="refused", running=None),
    "nothing told": lambda: fresh(
        speculating=None, types=(), missing=(MISSING, MISSING), why_not_measure="no key"
    ),
}
SIZES = [(120, 36), (80, 24), (60, 18), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCENES)
async def test_every_state_is_drawn_at_every_size(face, name, size):
    async with face(SCENES[name](), size=size) as f:
        rows = f.text.split("\n")
        assert len(rows) == size[1]
        assert "8080" in rows[0]
        assert "only watched" in f.text
        assert "m measure" in rows[-1]
        assert "q quit" in rows[-1]


async def test_what_others_do_is_shown(face):
    async with face(used()) as f:
        for words in (
            f"x.gguf at {URL}",
            "busy",
            "75% accepted",
            "now 61.2",
            "settled 64.0 tok/s",
            "rate 75 %",
            "mean length 4.0",
            "it speculates: ngram-simple",
            "4.0 drafted",
            "watching",
        ):
            assert words in f.text
        assert "of ?" not in f.text


async def test_what_was_drafted_before_we_came_is_told(face):
    async with face(fresh(totals=TOTALS)) as f:
        assert "since it started: 75% of 400 accepted, 4.0 tokens a step" in server(f)


@pytest.mark.parametrize(
    ("attachment", "said"),
    [
        ({"speculating": False, "types": ()}, "it does not speculate"),
        ({"speculating": None, "types": ()}, "it does not say whether it speculates"),
        ({"speculating": True, "types": ()}, "it speculates "),
        ({"speculating": None, "types": ("draft-mtp",)}, "it speculates: draft-mtp"),
    ],
)
async def test_whether_it_speculates_is_what_it_says_itself(face, attachment, said):
    async with face(fresh(**attachment), size=(160, 40)) as f:
        assert said in server(f)


async def test_what_is_missing_is_told_where_it_would_be(face):
    async with face(fresh(missing=(MISSING,)), size=(200, 60)) as f:
        assert MISSING in server(f)
        assert MISSING in f.text


async def test_a_server_that_is_away_is_told_and_kept_trying(face):
    async with face(SCENES["not reached"]()) as f:
        assert "not reached: b is unloaded; spectui keeps trying" in f.text
        assert "failed" not in f.text
    async with face(SCENES["gone"]()) as f:
        assert "gone: refused; spectui keeps trying" in f.text


async def test_no_key_changes_anything(face):
    keys = ("s", "b", "a", "t", "r", "k", "e", "z", "right", "left", "4", "enter", "f", "g", "h")
    for scene in (fresh(), used(), SCENES["gone"]()):
        async with face(scene) as f:
            await f.press(*keys)
            assert len(f.app.screen_stack) == 1
            assert f.controls.calls == []
            assert any("only watches" in text for text, _ in f.toasts)


async def test_neither_footer_nor_palette_nor_help_offers_what_there_is_not(face):
    async with face(used(), size=(200, 60)) as f:
        footer = f.text.split("\n")[-1]
        offered = [command.title for command in f.app.get_system_commands(f.app.screen)]
        await f.press("?")
        for words in ("Start or stop the server", "Apply and measure", "Export", "Raise the knob"):
            assert words not in f.text
            assert not any(words in title for title in offered)
        assert any("Quit" in title for title in offered)
        for word in ("stop", "start", "baseline", "export", "type"):
            assert word not in footer


async def test_prompts_are_sent_only_after_a_question_that_says_what_it_costs(face):
    async with face(fresh()) as f:
        await f.press("m")
        assert "Whoever else uses that server waits" in " ".join(f.text.split())
        await f.press("n")
        assert f.controls.calls == []
        await f.press("m", "y")
        assert f.controls.calls == [("measure", f.controls.snapshot.speculation)]


async def test_where_no_prompt_can_be_sent_the_button_is_the_reason(face):
    async with face(fresh(why_not_measure="it refuses the key")) as f:
        assert "no prompts: it refuses the key" in f.text


async def test_quitting_leaves_the_server_alone_and_says_so(face):
    busy = replace(scenes.measuring(), attached=used().attached, url=URL)
    async with face(busy) as f:
        await f.press("q")
        assert "leaves the server alone" in " ".join(f.text.replace("│", " ").split())


async def test_hostile_words_of_a_server_do_nothing(face):
    bad = scenes.HOSTILE
    snapshot = fresh(model=bad, types=(bad,), missing=(bad,), why_not_measure=bad)
    for scene in (snapshot, replace(snapshot, phase=Phase.GONE, reason=bad, url=bad)):
        async with face(scene) as f:
            assert "\x1b" not in f.text
            assert "\u202e" not in f.text
            assert "[bold red]x[/]" in f.text
