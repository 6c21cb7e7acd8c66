"""Every way to draft, on a real llama-server: it starts, it drafts, and how long a draft can be.

The *effective length* is the number of per-position lines on /metrics: the longest draft that any
of the types can make, after what the draft model itself allows. Synthetic acceptance wants exactly
as many rates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import pytest
from server import Reply, Server, serving

pytestmark = pytest.mark.real
pytest.importorskip("gguf")

from binary import find_binary  # noqa: E402
from tiny_models import CYCLE, write_dspark, write_family  # noqa: E402  (it needs gguf)

# What the target is about to say, so that ngram-cache knows it: it learns from the prompt only.
PROMPT = (CYCLE * 2).decode().strip()
CLAMPED = "exceeds the trained block size 4 -- clamping to"
REDUCED = "synthetic acceptance draft limit was reduced from 6 to"
ADDING = re.compile(r"adding speculative implementation '(\S+)'")
ALL_NGRAMS = "ngram-simple,ngram-map-k,ngram-map-k4v,ngram-mod,ngram-cache"  # as they are asked


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: ``arguments`` in words, models as ``{name}``, and what must come of it."""

    name: str
    arguments: str
    length: int  # effective
    types: str = ""  # in the log, first asked first; the name where empty
    says: str = ""  # in the log


ON = "-m {target} --spec-type"
SIMPLE = "-md {draft}"
HEADS = "-m {mtp_target} --spec-type"
EVERY_TYPE = [
    Case("draft-simple", f"{ON} draft-simple {SIMPLE}", 3),
    Case("draft-mtp", f"{HEADS} draft-mtp", 3),
    Case("draft-eagle3", f"{ON} draft-eagle3 -md {{eagle3}}", 3),
    Case("draft-dflash", f"{ON} draft-dflash -md {{dflash}}", 3),
    Case("draft-dspark", f"{ON} draft-dspark -md {{dspark}}", 3),
    Case("ngram-cache", f"{ON} ngram-cache", 8),
    Case("ngram-simple", f"{ON} ngram-simple", 48),
    Case("ngram-map-k", f"{ON} ngram-map-k", 48),
    Case("ngram-map-k4v", f"{ON} ngram-map-k4v", 48),
    Case("ngram-mod", f"{ON} ngram-mod", 64),
]
OTHER_WAYS = [
    Case("--spec-default", "-m {target} --spec-default", 64, "ngram-mod"),
    Case("draft-mtp, a sidecar", f"{HEADS} draft-mtp -md {{mtp_sidecar}}", 3, "draft-mtp"),
    # a draft file of these three kinds turns its type on by itself; the others do not
    Case("a sidecar alone", "-m {mtp_target} -md {mtp_sidecar}", 3, "draft-mtp"),
    Case("a DFlash file alone", "-m {target} -md {dflash}", 3, "draft-dflash", "auto-detected"),
    Case("a DSpark file alone", "-m {target} -md {dspark}", 3, "draft-dspark", "auto-detected"),
]
LENGTHS = [
    Case("draft-simple", f"{ON} draft-simple {SIMPLE} --spec-draft-n-max 6", 6),
    Case("draft-eagle3", f"{ON} draft-eagle3 -md {{eagle3}} --spec-draft-n-max 6", 6),
    # one head drafts as many tokens as it is asked to, one after the other ...
    Case("draft-mtp", f"{HEADS} draft-mtp --spec-draft-n-max 6", 6),
    # ... three heads draft one each, and nothing but the counters tells
    Case(
        "three heads",
        "-m {mtp_three_heads} --spec-type draft-mtp --spec-draft-n-max 6",
        3,
        "draft-mtp",
    ),
    # a block of four holds the last token and three more, with DSpark four more
    Case(
        "draft-dflash",
        f"{ON} draft-dflash -md {{dflash}} --spec-draft-n-max 6",
        3,
        says=f"{CLAMPED} 3",
    ),
    Case(
        "draft-dspark",
        f"{ON} draft-dspark -md {{dspark}} --spec-draft-n-max 6",
        4,
        says=f"{CLAMPED} 4",
    ),
    Case(
        "bonus anchor",
        f"{ON} draft-dspark -md {{bonus}} --spec-draft-n-max 6",
        3,
        "draft-dspark",
        f"{CLAMPED} 3",
    ),
    # the draft model's knob moves no n-gram type; each has its own
    Case("ngram-cache", f"{ON} ngram-cache --spec-draft-n-max 6", 8),
    Case("ngram-simple", f"{ON} ngram-simple --spec-draft-n-max 6", 48),
    Case("ngram-simple", f"{ON} ngram-simple --spec-ngram-simple-size-m 20", 20),
    Case("ngram-map-k", f"{ON} ngram-map-k --spec-ngram-map-k-size-m 7", 7),
    Case("ngram-map-k4v", f"{ON} ngram-map-k4v --spec-ngram-map-k4v-size-m 7", 7),
    Case("ngram-mod", f"{ON} ngram-mod --spec-ngram-mod-n-max 9 --spec-ngram-mod-n-min 2", 9),
]
TOGETHER = [  # the length is the longest of the types'
    Case("ngram-mod,draft-simple", f"{ON} ngram-mod,draft-simple {SIMPLE}", 64),
    Case("ngram-simple,draft-mtp", f"{HEADS} ngram-simple,draft-mtp", 48),
    Case("ngram-mod,draft-eagle3", f"{ON} ngram-mod,draft-eagle3 -md {{eagle3}}", 64),
    Case("ngram-cache,draft-dflash", f"{ON} ngram-cache,draft-dflash -md {{dflash}}", 8),
    Case("ngram-map-k,draft-dspark", f"{ON} ngram-map-k,draft-dspark -md {{dspark}}", 48),
    Case(ALL_NGRAMS, f"{ON} {ALL_NGRAMS}", 64),
    Case("said twice", f"{ON} draft-simple,draft-simple {SIMPLE}", 3, "draft-simple"),
    # types add up over the command line
    Case(
        "twice",
        f"{ON} ngram-cache --spec-type draft-simple {SIMPLE}",
        8,
        "ngram-cache,draft-simple",
    ),
    Case("default too", f"{ON} draft-simple --spec-default {SIMPLE}", 64, "ngram-mod,draft-simple"),
    # without its file an EAGLE-3 or DFlash type is left out, and not a word is said
    Case("no file", f"{ON} ngram-mod,draft-eagle3", 64, "ngram-mod"),
]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    paths = asdict(write_family(folder))
    paths["bonus"] = write_dspark(folder / "bonus.gguf", from_anchor=False)
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture
def started(family, tmp_path):
    """Start the binary with the words of a case, models filled in."""
    binary = find_binary()
    assert binary is not None, "no llama-server: make real builds one"

    @contextmanager
    def start(arguments: str, *more: str) -> Iterator[Server]:
        filled = [word.format(**family) for word in arguments.split()]
        # level 4 names what drafts; a draft model that nothing uses is no part of it
        flags = ("--metrics", "-lv", "4", *filled, *more)
        with serving(binary, *flags, log=tmp_path / "server.log") as server:
            yield server

    return start


@dataclass(frozen=True, slots=True)
class Seen:
    """What one server said of one request."""

    reply: Reply
    speculative: bool
    types: list[str]
    drafted: int
    accepted: int
    drafts: int
    accepted_at: list[int]
    log: str


def ask(server: Server, tokens: int = 160) -> Seen:
    reply = server.chat(PROMPT, tokens=tokens, ignore_eos=True)
    found = server.metrics()
    log = server.log.read_text(encoding="utf-8", errors="replace")
    return Seen(
        reply,
        json.loads(server.get("/slots"))[0]["speculative"],
        ADDING.findall(log),
        int(found["spec_decode_num_draft_tokens_total"]),
        int(found["spec_decode_num_accepted_tokens_total"]),
        int(found["spec_decode_num_drafts_total"]),
        server.accepted_at(),
        log,
    )


def check(case: Case, seen: Seen) -> None:
    assert seen.speculative
    assert seen.types == (case.types or case.name).split(",")
    assert seen.drafts > 0
    assert seen.drafted >= seen.drafts
    assert seen.drafted == seen.reply.timings["draft_n"]
    assert len(seen.accepted_at) == case.length
    assert sum(seen.accepted_at) == seen.accepted == seen.reply.timings["draft_n_accepted"]
    assert case.says in seen.log


def words(case: Case) -> str:
    return f"{case.name}-{case.length}"


@pytest.mark.parametrize("case", EVERY_TYPE + OTHER_WAYS, ids=words)
def test_every_type_starts_and_drafts(case, started):
    with started(case.arguments) as server:
        seen = ask(server)
    check(case, seen)
    if not {"draft-eagle3", "draft-dflash"} & {*seen.types}:  # random, and verified honestly
        assert seen.accepted > 0
    # whatever is drafted, the text is the target's
    assert seen.reply.text.startswith((CYCLE[1:] + CYCLE * 3).decode())


@pytest.mark.parametrize("case", EVERY_TYPE, ids=words)
def test_synthetic_acceptance_accepts_drafts_of_every_type(case, started):
    rates = ",".join(["1", "0.5", *["0"] * (case.length - 2)])
    with started(case.arguments, "--spec-synth-rates", rates) as server:
        seen = ask(server)
    check(case, seen)
    # never quite all of the first: a drafted end of the answer is refused
    assert 0 < seen.accepted_at[0] <= seen.drafts
    assert seen.accepted_at[1] < seen.accepted_at[0]
    assert not any(seen.accepted_at[2:])


@pytest.mark.parametrize("case", LENGTHS, ids=words)
def test_the_effective_length_is_what_the_type_and_its_model_allow(case, started):
    with started(case.arguments) as server:
        seen = ask(server)
    if case.name in {"ngram-mod", "ngram-map-k", "ngram-map-k4v"}:
        assert max(at for at, count in enumerate(seen.accepted_at) if count) == case.length - 1
    check(case, seen)


@pytest.mark.parametrize(
    ("kind", "rates"), [("mtp_three_heads", 3), ("dflash", 3), ("dspark", 4)], ids=str
)
def test_a_clamped_length_wants_as_many_synthetic_rates_and_says_so(kind, rates, started):
    model = "-m {mtp_three_heads}" if kind.startswith("mtp") else f"-m {{target}} -md {{{kind}}}"
    named = f"draft-{kind.partition('_')[0]}"
    launch = f"{model} --spec-type {named} --spec-draft-n-max 6 --spec-synth-rates"
    with started(launch, ",".join(["1"] * rates)) as server:
        seen = ask(server)
    assert f"{REDUCED} {rates}" in seen.log
    assert len(seen.accepted_at) == rates
    with (
        pytest.raises(RuntimeError, match=f"rates must contain {rates} values, got 6"),
        started(launch, "1,1,1,1,1,1"),
    ):
        pass


@pytest.mark.parametrize("case", TOGETHER, ids=words)
def test_types_combine_and_the_longest_sets_the_effective_length(case, started):
    with started(case.arguments) as server:
        seen = ask(server)
    check(case, seen)
    assert seen.accepted > 0


def test_n_grams_are_asked_before_a_draft_model_whatever_the_order(started):
    orders = ("draft-simple,ngram-mod", "ngram-mod,draft-simple")
    counts = []
    for order in orders:
        with started(f"{ON} {order} {SIMPLE}") as server:
            seen = ask(server)
        assert seen.types == ["ngram-mod", "draft-simple"]
        counts.append(seen.accepted_at)
    assert counts[0] == counts[1]
    assert counts[0][2] > counts[0][3] > 0  # most drafts are the model's, of three tokens


@pytest.mark.parametrize(
    ("flag", "acts"), [("ngram-simple", False), ("ngram-map-k", False), ("ngram-map-k4v", True)]
)
def test_min_hits_acts_on_ngram_map_k4v_alone(flag, acts, started):
    with started(f"{ON} {flag} --spec-{flag}-min-hits 500") as server:
        assert (ask(server).drafts == 0) == acts


def test_ngram_cache_learns_prompts_only_and_only_past_the_longest_text_before(started):
    with started(f"{ON} ngram-cache") as server:
        assert "draft_n" not in server.chat("hi", tokens=160, ignore_eos=True).timings
        assert ask(server).drafts == 0  # alone, this prompt is drafted from
        assert "draft_n" in server.chat(PROMPT * 9, tokens=160, ignore_eos=True).timings


def test_ngram_simple_drafts_nothing_where_the_text_repeats_sooner_than_size_n(started):
    with started(f"{ON} ngram-simple --spec-ngram-simple-size-n 17") as server:
        assert "draft_n" not in server.chat("hi", tokens=300, ignore_eos=True).timings


def test_one_token_is_never_drafted(started):
    with started(f"{ON} draft-simple {SIMPLE}") as server:
        assert ask(server, tokens=1).drafts == 0


def test_props_names_no_type_whatever_is_on(started):
    with started(f"{ON} ngram-mod,draft-simple {SIMPLE}") as server:
        assert ask(server).drafts > 0
        props = json.loads(server.get("/props"))["default_generation_settings"]["params"]
        assert props["speculative.types"] == "none"
