"""What a person types for an address, and that its secrets stay secret."""

import copy
import dataclasses
import json
import pickle

import pytest
from hypothesis import given, strategies as st

from spectui.domain.address import Access, Secret, parse_address
from spectui.domain.errors import UsageError

CANARY = "canary-5ecret"


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("gpu-box", "http://gpu-box:8080"),
        ("gpu-box:9000", "http://gpu-box:9000"),
        ("http://gpu-box", "http://gpu-box"),
        ("HTTPS://GPU-Box.example/", "https://gpu-box.example"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("[fe80::1%eth0]:80", "http://[fe80::1%eth0]:80"),
        ("  http://h:1/llm/  ", "http://h:1/llm"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/llm/v1/chat/completions", "http://h:1/llm"),
        ("http://h:1/metrics", "http://h:1"),
        ("http://h:1/upstream", "http://h:1"),
    ],
)
def test_many_ways_to_write_one_address(typed, url):
    assert parse_address(typed).url == url


@pytest.mark.parametrize(
    ("typed", "model"),
    [
        ("http://h:1/upstream/big%2Fmodel", "big/model"),
        ("http://h:1/llm/upstream/m/metrics", "m"),
        ("http://h:1/metrics?model=m&autoload=false", "m"),
        ("http://h:1", ""),
    ],
)
def test_an_address_that_names_its_model(typed, model):
    found = parse_address(typed)
    assert found.model == model
    assert found.access.query == ()


@pytest.mark.parametrize(
    "typed",
    ["", "http://", "ftp://h", "h:0", "h:70000", "h:x", "::1:8080", "a b:1", "http://[::1"],
)
def test_what_is_no_address_is_refused_in_one_line(typed):
    with pytest.raises(UsageError) as caught:
        parse_address(typed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "local"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("[::1]:1", True),
        ("localhost", True),
        ("a.localhost", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_whether_it_is_this_machine(typed, local):
    assert parse_address(typed).local is local


def test_secrets_of_an_address_are_sent_and_never_shown():
    found = parse_address(f"https://me:{CANARY}@h/llm?token={CANARY}&model=m")
    assert found.url == "https://h/llm"
    assert found.access.authorization.reveal().startswith("Basic ")
    [(name, value)] = found.access.query
    assert (name, value.reveal()) == ("token", CANARY)
    assert CANARY not in repr(found) + str(found) + repr(dataclasses.asdict(found))
    assert found.access.authorization.reveal()[6:] not in repr(found)


def test_no_way_to_print_or_keep_a_secret_gives_it_away():
    secret = Secret(CANARY)
    shown = [str(secret), repr(secret), f"{secret}", f"{secret!r}", format(secret, "")]
    assert set(shown) == {"Secret(…)"}
    assert repr(Secret()) == "Secret()"
    for keep in (pickle.dumps, json.dumps):
        with pytest.raises(TypeError) as caught:
            keep(secret)
        assert CANARY not in str(caught.value)
    assert not hasattr(secret, "__dict__")
    assert copy.deepcopy(secret).reveal() == secret.reveal() == CANARY


def test_a_secret_is_hidden_as_it_stands_in_an_address_too():
    secret = Secret("a b/c?d")
    said = "a b/c?d, /metrics?token=a%20b%2Fc%3Fd, /metrics?token=a+b%2Fc%3Fd"
    assert secret.hide(said) == "…, /metrics?token=…, /metrics?token=…"


@pytest.mark.parametrize(
    "wrong", ["ftp://{}@h", "http://me:{}@h:x", "http://h:x/?k={}", "me:{}@:0"]
)
def test_a_slip_repeats_no_secret(wrong):
    with pytest.raises(UsageError) as caught:
        parse_address(wrong.format(CANARY))
    assert CANARY not in str(caught.value) + repr(caught.value)


def test_a_key_goes_before_a_user_and_hides_what_a_server_repeats():
    access = parse_address(f"http://me:pass-{CANARY}@h").access.with_key(Secret(CANARY))
    assert access.authorization.reveal() == f"Bearer {CANARY}"
    said = f"bad key {CANARY}, user me:pass-{CANARY}, {access.authorization.reveal()}"
    assert CANARY not in access.hide(said)
    assert access.hide("nothing here") == "nothing here"


def test_a_secret_too_short_to_be_one_blacks_nothing_out():
    assert Secret("a").hide("a fat cat") == "a fat cat"
    assert not Secret()
    assert not Access().authorization


@given(st.text(max_size=80))
def test_nothing_typed_ever_crashes(typed):
    try:
        found = parse_address(typed)
    except UsageError:
        return
    assert found.url.startswith(("http://", "https://"))
    assert not found.url.endswith("/")
