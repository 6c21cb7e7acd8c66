"""What may stand in llama-server's place: a router, llama-swap, vLLM, SGLang.

Each answers its own paths and sends the rest on to the stand-in, as the real one does.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote

PLAIN = ("/slots", "/props", "/running", "/models")


def front(handler: Any, path: str, query: str, body: bytes) -> str | None:
    """Return the path to go on with, None where everything was answered here."""
    fake = handler.server.fake
    prefix = fake.get("api_prefix", "")
    if prefix:
        if not path.startswith(prefix + "/"):
            handler._error(404, "File Not Found", "not_found_error")
            return None
        path = path.removeprefix(prefix)
    kind = fake.get("as")
    if kind is None or fake.loading:
        return path
    return KINDS[kind](handler, fake, path, query, body)


def _asked(query: str, name: str) -> str:
    return parse_qs(query).get(name, [""])[0]


def _model_of(body: bytes) -> str:
    try:
        return str(json.loads(body).get("model", ""))
    except (ValueError, AttributeError):
        return ""


def _is_here(fake: Any, name: str, *, load: bool) -> bool:
    """Load the model where that is what asking for it does, and remember that it was."""
    states = fake.get("models")
    if states.get(name) in {"loaded", "ready", "sleeping"}:
        return True
    if load:
        fake.loads.append(name)
        states[name] = "loaded"
    return load


def _router(handler: Any, fake: Any, path: str, query: str, body: bytes) -> str | None:
    states = fake.get("models")
    if path == "/health":
        handler._json({"status": "ok"})
        return None
    if not handler._allowed():
        return path
    if path in {"/models", "/v1/models"}:
        rows = [{"id": name, "status": {"value": state}} for name, state in states.items()]
        handler._json({"object": "list", "data": rows})
        return None
    name = _model_of(body) if body else _asked(query, "model")
    if path == "/props" and not name:
        handler._json({"role": "router", "build_info": "b11434-fake", "model_path": "none"})
        return None
    if not name:
        said = "model name is missing from the request"
    elif name not in states:
        said = f"model '{name}' not found"
    elif not _is_here(fake, name, load=_asked(query, "autoload") != "false"):
        said = "model is not loaded"
    else:
        return path
    handler._error(400, said, "invalid_request_error")
    return None


def _swap(handler: Any, fake: Any, path: str, query: str, body: bytes) -> str | None:
    states = fake.get("models")
    if path == "/health":
        handler._send(200, b"OK", "text/plain")
    elif not handler._allowed() and path not in {"/metrics", "/props", "/slots"}:
        handler._error(401, "unauthorized: invalid or missing API key", "authentication_error")
    elif path == "/v1/models":
        rows = [{"id": name, "object": "model", "owned_by": "llama-swap"} for name in states]
        handler._json({"object": "list", "data": rows})
    elif path == "/running":
        rows = [{"model": n, "state": s, "ttl": 300} for n, s in states.items() if s != "stopped"]
        handler._json({"running": rows})
    elif path.startswith("/upstream/"):
        rest = unquote(path.removeprefix("/upstream/"))
        name = next((n for n in states if rest.startswith(f"{n}/")), "")
        if name and _is_here(fake, name, load=True):
            return rest.removeprefix(name)
        handler._error(404, "model not found", "not_found_error")
    elif path == "/v1/chat/completions" and _is_here(fake, _model_of(body), load=True):
        return path
    else:
        handler._send(404, b"404 page not found", "text/plain")
    return None


def _vllm(handler: Any, fake: Any, path: str, query: str, body: bytes) -> str | None:
    if path == "/health":
        handler._send(200, b"", "text/plain")
    elif path == "/metrics":
        with fake.lock:
            page = PAGES[fake.get("as")](fake)
        handler._send(200, page.encode(), "text/plain; version=0.0.4")
    elif path in PLAIN:
        handler._json({"detail": "Not Found"}, 404)
    elif not handler._allowed():
        handler._json({"error": "Unauthorized"}, 401)
    elif path == "/v1/models":
        row = {"id": "org/model", "object": "model", "owned_by": fake.get("as")}
        handler._json({"object": "list", "data": [row]})
    else:
        return path
    return None


def _live(fake: Any) -> int:
    """Return the tokens of requests under way: these servers count them as they come."""
    return sum(slot.decoded for slot in fake.slots if slot.busy)


def _vllm_page(fake: Any) -> str:
    t, name = fake.totals, 'model_name="org/model"'
    rows = [f'vllm:num_requests_running{{engine="0",{name}}} {sum(s.busy for s in fake.slots)}.0']
    values = {"generation_tokens": t.predicted + _live(fake)}
    if fake.flags.types:
        values |= {
            "spec_decode_num_drafts": t.drafts,
            "spec_decode_num_draft_tokens": t.drafted,
            "spec_decode_num_accepted_tokens": t.accepted,
        }
    for key, value in values.items():
        rows.append(f'vllm:{key}_total{{engine="0",{name}}} {value:.1f}')
        rows.append(f'vllm:{key}_created{{engine="0",{name}}} 1.79e+09')
    for i, count in enumerate(t.accepted_at):
        labels = f'{{engine="0",{name},position="{i}"}}'
        rows.append(f"vllm:spec_decode_num_accepted_tokens_per_pos_total{labels} {count}.0")
    return "\n".join(rows) + "\n"


def _sglang_page(fake: Any) -> str:
    t, labels = fake.totals, 'model_name="org/model",tp_rank="0"'
    rows = {
        "generation_tokens_total": t.predicted,
        "num_requests_total": fake.settled,
        "spec_verify_calls_total": t.drafts,
        "num_running_reqs": sum(slot.busy for slot in fake.slots),
        "gen_throughput": 123.0,
        "spec_accept_rate": 0.5,
        "spec_accept_length": 2.5,
    }
    if not fake.get("spec_counters", True):  # as before 2026
        del rows["spec_verify_calls_total"]
    text = "".join(f"sglang:{key}{{{labels}}} {value:.1f}\n" for key, value in rows.items())
    live = t.predicted + _live(fake)
    return f'{text}sglang:realtime_tokens_total{{mode="decode",{labels}}} {live:.1f}\n'


KINDS = {"router": _router, "swap": _swap, "vllm": _vllm, "sglang": _vllm}
PAGES = {"vllm": _vllm_page, "sglang": _sglang_page}
