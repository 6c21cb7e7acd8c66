"""``spectui attach`` without a dashboard: what it says, of what, and what it never shows."""

import argparse
import json
import signal
import threading
import urllib.request

import pytest
from fake_llama_server import CERTIFICATE, FakeLlamaServer
from session_tools import until

from spectui.cli.api_key import VARIABLES, read_key
from spectui.cli.attach import _choice
from spectui.domain.attached import Found, Offer, ServerKind
from spectui.domain.errors import UsageError

CANARY = "canary-5ecret"
DRAFTING = ("--metrics", "--spec-type", "draft-simple", "-md", "d.gguf", "--spec-draft-n-max", "4")
FAST = {"tps": 200, "time_scale": 0.02}


def before():
    """Return counters that the server has already."""
    return {
        "predicted": 900,
        "predicted_seconds": 9,
        "drafted": 400,
        "accepted": 300,
        "drafts": 100,
        "accepted_at": [90, 80, 70, 60],
    }


def ask(server, tokens=40):
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": tokens}
    request = urllib.request.Request(  # noqa: S310 - always the stand-in
        f"{server.url}/v1/chat/completions", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)["timings"]


# -- one reading -----------------------------------------------------------------------------------


def test_one_reading_tells_what_was_drafted_since_the_server_started(shell):
    with FakeLlamaServer(*DRAFTING, "-m", "x.gguf", start=before(), **FAST) as server:
        status, out, err = shell("attach", server.url, "--once")
        assert (status, err) == (0, "")
        assert out.splitlines() == [
            f"server       {server.url}  llama-server x.gguf b11434-fake ready speculates",
            "accepted     75.0 % of 400, 4.00 a step since the server's start",
            "by position  90 80 70 60 %",
        ]
        assert server.chats == 0
        assert ask(server)["predicted_n"] == 40  # it goes on


def test_one_reading_as_json(shell):
    with FakeLlamaServer(*DRAFTING, start=before(), **FAST) as server:
        status, out, _ = shell("attach", str(server.port), "--json")
        assert status == 0
        found = json.loads(out)
        assert found["kind"] == "llama-server"
        assert (found["drafted"], found["accepted"], found["drafts"]) == (400, 300, 100)
        assert found["unconditional"] == [0.9, 0.8, 0.7, 0.6]
        assert found["mean_acceptance_length"] == 4
        assert found["since"] == "the server's start"
        assert found["speculating"] is True
        assert found["missing"] == []
        assert found["requests"] is found["tps"] is None


def test_watching_for_a_while_counts_what_others_did(shell):
    with FakeLlamaServer(*DRAFTING, start=before(), **FAST) as server:
        process = shell.start("attach", server.url, "--for", "2", "--json")
        until(lambda: server.asked.get("/metrics", 0) > 1)  # the first reading is over
        timings = ask(server)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        found = json.loads(out)
        assert found["seconds"] == pytest.approx(2, abs=0.5)
        assert (found["requests"], found["tokens"]) == (1, 40)
        assert found["drafted"] == timings["draft_n"]
        assert found["accepted"] == timings["draft_n_accepted"]
        assert found["decode_tps"] == pytest.approx(timings["predicted_per_second"], rel=0.01)
        assert found["restarts"] == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_told_to_end_it_prints_what_was_seen_and_leaves_the_server(shell, number, status):
    with FakeLlamaServer(*DRAFTING, **FAST) as server:
        process = shell.start("attach", server.url, "--for", "600")
        until(lambda: server.asked.get("/metrics", 0) > 1)  # the first reading is over
        ask(server)
        asked = server.asked["/metrics"]
        until(lambda: server.asked["/metrics"] > asked + 1)
        process.send_signal(number)
        out, err = process.communicate(timeout=15)
        assert process.returncode == status
        assert "from at least 1 request\n" in out
        assert "a step in" in out
        assert "Traceback" not in err
        assert ask(server)["predicted_n"] == 40


# -- what is not there -----------------------------------------------------------------------------


def test_nobody_there_is_one_line(shell):
    status, out, err = shell("attach", "127.0.0.1:1", "--once")
    assert (status, out) == (1, "")
    assert err == (
        "spectui: http://127.0.0.1:1: the server does not accept connections:"
        " is it running, and is the port right?\n"
    )


def test_without_metrics_and_slots_it_says_what_is_missing(shell):
    with FakeLlamaServer("--no-slots", **FAST) as server:
        status, out, _ = shell("attach", server.url, "--once")
        assert status == 0
        assert "missing      no acceptance by position: the server runs without --metrics" in out
        assert "missing      no speed in flight: the server runs with --no-slots" in out


def test_a_model_that_is_not_loaded_is_not_loaded_for_us(shell):
    models = {"a": "loaded", "b": "unloaded"}
    with FakeLlamaServer(*DRAFTING, **{"as": "router"}, models=models, **FAST) as server:
        status, out, err = shell("attach", server.url, "--once", "--model", "b")
        assert status == 1
        assert "b not reached" in out
        assert err.splitlines()[-1].endswith(
            "b is unloaded: its first request loads it; spectui never does"
        )
        assert server.loads == []


def test_a_server_in_trouble_is_told(shell):
    with FakeLlamaServer(*DRAFTING, status={"/metrics": 500}, **FAST) as server:
        status, out, _ = shell("attach", server.url, "--once")
        assert status == 0
        assert "no acceptance by position: the server answered 500: scripted failure" in out


def test_without_a_terminal_it_says_what_to_do(shell):
    with FakeLlamaServer(**FAST) as server:
        status, _, err = shell("attach", server.url)
        assert status == 2
        assert "attach URL --once" in err
        assert not server.asked


# -- which model -----------------------------------------------------------------------------------

A, B = Offer("a", "loaded", ("first",)), Offer("b", "unloaded")


@pytest.mark.parametrize(
    ("kind", "offers", "asked", "chosen"),
    [
        (ServerKind.ROUTER, (A, B), "b", "b"),
        (ServerKind.ROUTER, (A, B), "first", "a"),
        (ServerKind.ROUTER, (A, B), "", "a"),  # the only one in memory
        (ServerKind.SWAP, (B,), "", "b"),  # the only one
        (ServerKind.VLLM, (Offer("m"), Offer("lora")), "lora", "lora"),
        (ServerKind.VLLM, (Offer("m"), Offer("lora")), "", "x"),
        (ServerKind.LLAMA, (), "x", "x"),
        (ServerKind.LLAMA, (), "", "x"),
    ],
)
def test_the_model_that_is_watched(kind, offers, asked, chosen):
    assert _choice(Found(kind, "x", models=offers), asked) == chosen


@pytest.mark.parametrize(
    ("kind", "offers", "asked", "said"),
    [
        (ServerKind.ROUTER, (A, B), "c", "has no model c: it has: a (loaded), b (unloaded)"),
        (ServerKind.SWAP, (A, Offer("c", "ready")), "", "several models: name one with --model: a"),
        (ServerKind.SWAP, (), "", "has no models"),
        (ServerKind.LLAMA, (), "y", "has no model y: it has: x"),
        (ServerKind.VLLM, (Offer("m"),), "y", "it has: m"),
    ],
)
def test_a_model_that_cannot_be_told(kind, offers, asked, said):
    with pytest.raises(UsageError) as caught:
        _choice(Found(kind, "x", models=offers), asked)
    assert said in str(caught.value)


# -- keys ------------------------------------------------------------------------------------------


@pytest.fixture
def key(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return lambda file=None, env=None: read_key(
        argparse.Namespace(api_key_file=file, api_key_env=env)
    )


def test_a_key_comes_from_the_environment_or_a_file(key, tmp_path, monkeypatch, capsys):
    assert not key()
    monkeypatch.setenv("LLAMA_API_KEY", "second")
    assert key().reveal() == "second"
    monkeypatch.setenv("SPECTUI_API_KEY", " first\n")
    assert key().reveal() == "first"
    monkeypatch.setenv("OTHER", "other")
    assert key(env="OTHER").reveal() == "other"
    file = tmp_path / "key"
    file.write_text("\n  from-file \nnot this\n", encoding="utf-8")
    file.chmod(0o600)
    assert key(file).reveal() == "from-file"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_is_worth_a_warning(key, tmp_path, capsys, mode):
    file = tmp_path / "key"
    file.write_text(CANARY, encoding="utf-8")
    file.chmod(mode)
    assert key(file).reveal() == CANARY
    said = capsys.readouterr().err
    assert "others can read" in said
    assert "chmod 600" in said
    assert CANARY not in said


def test_what_is_no_key_is_refused_without_repeating_it(key, tmp_path, monkeypatch):
    for content in (f"{CANARY}\x07", f"{CANARY}é", "x" * 5000 + CANARY, "  \n"):
        monkeypatch.setenv("ODD", content)
        with pytest.raises(UsageError) as caught:
            key(env="ODD")
        assert CANARY not in str(caught.value)
    monkeypatch.delenv("ODD")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for wrong in (
        {"env": "ODD"},
        {"file": tmp_path / "none"},
        {"file": tmp_path},
        {"file": binary},
        {"file": binary, "env": "ODD"},
    ):
        with pytest.raises(UsageError):
            key(**wrong)


@pytest.mark.parametrize("option", ["--api-key", "--key", "--token"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_key_on_the_command_line_is_refused_and_not_repeated(shell, option, joined):
    given = [f"{option}={CANARY}"] if joined else [option, CANARY]
    status, out, err = shell("attach", "8080", "--once", *given)
    assert status == 2
    assert "does not belong on the command line" in err
    assert CANARY not in out + err


@pytest.mark.slow
def test_a_key_is_never_shown_whatever_happens(shell):
    """Right, wrong and missing keys, a server that repeats them, a fault, a signal."""
    secret = shell.folder / "key"
    secret.write_text(f"{CANARY}\n", encoding="utf-8")
    secret.chmod(0o600)
    key_file = ("--api-key-file", secret)
    said = []
    for wanted in (CANARY, "another"):
        with FakeLlamaServer(*DRAFTING, "--api-key", wanted, echo_key=True, **FAST) as server:
            url = server.url.replace("//", f"//me:{CANARY}@") + f"/?token={CANARY}"
            said += shell("attach", server.url, "--json", *key_file)[1:]
            said += shell("attach", url, "--once", *key_file)[1:]
            said += shell("attach", url, "--for", "1", SPECTUI_API_KEY=CANARY)[1:]
            assert f"Bearer {CANARY}" in server.keys
            server.options["status"] = {"/metrics": 500, "/slots": 500, "/props": 500}
            said += shell("attach", url, "--once", *key_file)[1:]
    fault = {"PYTHONPATH": f"{shell.folder}:{shell.environment()['PYTHONPATH']}"}
    (shell.folder / "sitecustomize.py").write_text(
        "import spectui.adapters.llama_http as h\n"
        "def fail(*a): raise ValueError(str(a[0]._access) + repr(a[0]._http.headers))\n"
        "h.LlamaClient.look = fail\n",
        encoding="utf-8",
    )
    status, *told = shell("attach", "8080", "--once", *key_file, TMPDIR=str(shell.home), **fault)
    assert status == 1
    assert list(shell.home.rglob("spectui-fault-*")), told
    said += told
    assert len("".join(said)) > 500
    assert CANARY not in "".join(said)
    files = [path for path in shell.folder.rglob("*") if path.is_file() and path != secret]
    assert not [path for path in files if CANARY in path.read_text(errors="replace")]


# -- the way there ---------------------------------------------------------------------------------


def test_tls_is_trusted_by_its_authority_only(shell):
    with FakeLlamaServer(*DRAFTING, tls=True, start=before(), **FAST) as server:
        status, _, err = shell("attach", server.url, "--once")
        assert status == 1
        assert "certificate is not trusted" in err
        assert "SSL_CERT_FILE" in err
        status, out, err = shell("attach", server.url, "--once", SSL_CERT_FILE=str(CERTIFICATE))
        assert status == 0, err
        assert "75.0 % of 400" in out
    with FakeLlamaServer(**FAST) as server:
        status, _, err = shell("attach", server.url.replace("http:", "https:"), "--once")
        assert (status, "does not speak TLS there: try http://" in err) == (1, True)


def test_a_path_prefix_is_part_of_the_address_or_an_option(shell):
    with FakeLlamaServer(*DRAFTING, api_prefix="/llm", start=before(), **FAST) as server:
        assert "75.0 %" in shell("attach", f"{server.url}/llm/v1", "--once")[1]
        assert "75.0 %" in shell("attach", server.url, "--api-prefix", "/llm/", "--once")[1]
        status, _, err = shell("attach", server.url, "--once")
        assert status == 1
        assert "is the address right, with its port and prefix?" in err


def test_a_server_that_never_answers_is_told(shell):
    with FakeLlamaServer(hang={"/health": 30}, **FAST) as server:
        timer = threading.Timer(20, server.stop)
        timer.start()
        status, _, err = shell("attach", server.url, "--once")
        timer.cancel()
        assert status == 1
        assert "did not answer in time" in err
