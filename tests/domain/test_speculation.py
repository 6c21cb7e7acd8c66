import pytest

from spectui.domain.speculation import KNOBS, TYPES, Draft, Speculation, check


def test_all_ten_types_and_off_are_known():
    assert len(TYPES) == 11
    assert next(iter(TYPES)) == "none"


def test_n_max_does_not_move_the_ngram_types():
    for kind in TYPES.values():
        if kind.id.startswith("ngram"):
            assert "n_max" not in [knob.key for knob in kind.knobs]
            assert kind.draft is Draft.NONE


def test_every_drafting_type_has_one_length():
    for kind in TYPES.values():
        if kind.id != "none":
            assert (kind.length_knob is not None) != (kind.fixed_length is not None)


@pytest.mark.parametrize(
    ("speculation", "name", "length"),
    [
        (Speculation(), "off", None),
        (Speculation.of("draft-simple", {"n_max": 4}), "n_max 4", 4),
        (Speculation.of("draft-simple"), "n_max 3", 3),
        (Speculation.of("draft-simple", {"p_min": 0.6, "n_max": 4}), "n_max 4, p_min 0.6", 4),
        (Speculation.of("draft-eagle3", {"n_max": 2}), "draft-eagle3 n_max 2", 2),
        (
            Speculation.of("ngram-simple", {"ngram_simple.size_n": 3, "ngram_simple.size_m": 8}),
            "ngram-simple m8 n3",
            8,
        ),
        (Speculation.of("ngram-cache"), "ngram-cache", 8),
        (Speculation.of("ngram-mod", {"n_max": 4}), "ngram-mod n_max 64", 64),
    ],
)
def test_names_and_lengths(speculation, name, length):
    assert speculation.name == name
    assert speculation.draft_length == length


def test_a_setting_at_its_default_is_the_same_setting():
    assert Speculation.of("draft-simple", {"n_max": 3}).same_as(Speculation.of("draft-simple"))
    assert not Speculation.of("draft-simple").same_as(Speculation())


def test_knobs_that_do_not_act_make_no_difference():
    one = Speculation.of("ngram-cache", {"n_max": 9})
    assert one.same_as(Speculation.of("ngram-cache"))


def test_changing_the_type_and_back_keeps_the_knobs():
    first = Speculation.of("draft-simple", {"n_max": 9})
    assert first.with_type("ngram-simple").with_type("draft-simple") == first


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"n_max": 0}, "n_max"),
        ({"n_max": 65}, "n_max"),
        ({"p_min": 2.0}, "p_min"),
        ({"p_min": -0.1}, "p_min"),
        ({"n_min": 5, "n_max": 4}, "n_min"),
        ({"n_max": True}, "n_max"),
        ({"n_max": 4.0}, "n_max"),
    ],
)
def test_what_a_server_would_choke_on_is_refused(settings, key):
    found = check(Speculation.of("draft-simple", settings), has_draft=True)
    assert [where for where, _ in found] == [key]


def test_zero_is_not_off():
    found = check(Speculation.of("draft-simple", {"n_max": 0}), has_draft=True)
    assert "the baseline is type none" in found[0][1]


def test_a_type_that_needs_a_draft_model_says_so():
    assert check(Speculation.of("draft-simple"), has_draft=False)[0][0] == "type"
    assert not check(Speculation.of("draft-mtp"), has_draft=False)
    assert check(Speculation("turbo"), has_draft=True)[0][0] == "type"


def test_ngram_mod_may_not_have_its_minimum_above_its_maximum():
    found = check(Speculation.of("ngram-mod", {"ngram_mod.n_max": 8}), has_draft=False)
    assert [key for key, _ in found] == ["ngram_mod.n_min"]


def test_clamping_keeps_the_kind_of_number():
    assert KNOBS["n_max"].clamp(99) == 64
    assert KNOBS["p_min"].clamp(0.1 + 0.2) == 0.3
    assert isinstance(KNOBS["n_max"].clamp(5), int)


def test_several_types_are_one_setting_in_the_order_in_which_they_are_asked():
    one = Speculation.of("draft-simple, ngram-mod", {"n_max": 4})
    assert one.type == "ngram-mod,draft-simple"
    assert one.same_as(Speculation.of("ngram-mod,draft-simple,ngram-mod", {"n_max": 4}))
    assert one.name == "ngram-mod n_max 64 + draft-simple n_max 4"
    assert one.draft_length == 64
    assert one.draft is Draft.NEEDED
    assert [knob.key for knob in one.knobs][:4] == [
        *("ngram_mod.n_max", "ngram_mod.n_match", "ngram_mod.n_min", "n_max")
    ]
    assert Speculation.of("ngram-cache,draft-mtp", {"n_max": 2}).draft_length == 8


def test_what_spec_default_turns_on_is_ngram_mod():
    assert Speculation.of("default") == Speculation.of("ngram-mod")


def test_knobs_of_the_same_name_are_told_apart_beside_each_other():
    both = Speculation.of("ngram-mod,draft-simple")
    assert [both.label(knob) for knob in both.knobs] == [
        *("mod n_max", "n_match", "mod n_min", "n_max", "n_min", "p_min")
    ]
    lookups = Speculation.of("ngram-simple,ngram-map-k,ngram-map-k4v")
    labels = [lookups.label(knob) for knob in lookups.knobs]
    assert len(set(labels)) == len(labels)
    assert max(map(len, labels)) <= 9
    alone = Speculation.of("ngram-mod")
    assert [alone.label(knob) for knob in alone.knobs] == ["n_max", "n_match", "n_min"]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("none,ngram-mod", "none turns every other type off"),
        ("draft-simple,draft-eagle3", "cannot share the one draft model"),
        ("ngram-mod,draft-mtp,draft-dflash", "draft-mtp and draft-dflash"),
        ("ngram-mod,turbo", "'turbo' is not one of"),
    ],
)
def test_combinations_that_llama_server_cannot_run_are_refused(kind, word):
    assert word in check(Speculation.of(kind), has_draft=True)[0][1]


def test_each_type_of_a_combination_is_checked():
    found = check(Speculation.of("ngram-mod,draft-simple", {"n_max": 0}), has_draft=True)
    assert [key for key, _ in found] == ["n_max"]
    found = check(Speculation.of("ngram-mod,draft-simple", {"n_min": 9}), has_draft=True)
    assert [key for key, _ in found] == ["n_min"]


def test_min_hits_is_a_knob_only_where_it_acts():
    found = {kind.id for kind in TYPES.values() if "min_hits" in [k.label for k in kind.knobs]}
    assert found == {"ngram-map-k4v"}
