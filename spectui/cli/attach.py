"""``spectui attach``: watch a server that somebody else runs, in the dashboard or without one."""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from dataclasses import replace
from urllib.parse import quote

from spectui import __version__
from spectui.adapters.llama_http import LlamaClient
from spectui.cli.api_key import add_key, read_key
from spectui.cli.dashboard import need_terminal, show
from spectui.cli.lifeline import Lifeline
from spectui.cli.options import add_look, positive
from spectui.cli.watched import lines, read, watched_report
from spectui.cli.watching import build_watching
from spectui.domain.address import Address, Secret, parse_address
from spectui.domain.attached import IN_MEMORY, Found, Offer
from spectui.domain.errors import RequestError, SpectuiError, UsageError
from spectui.domain.phases import UP
from spectui.domain.text import clean
from spectui.session.watch import Watching
from spectui.workbench import Workbench

_FIRST = 20.0  # s that the first reading may take; a busy server can take over 10 for /metrics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spectui attach``."""
    parser.add_argument("url", help="the server's address, such as http://127.0.0.1:8080")
    parser.add_argument("--model", help="one model of a router or of llama-swap")
    parser.add_argument("--api-prefix", default="", metavar="PATH", help="what all its paths have")
    add_key(parser)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="send at most N prompts of each task"
    )
    parser.add_argument("--once", action="store_true", help="print one reading, without dashboard")
    parser.add_argument(
        "--for",
        type=positive,
        dest="seconds",
        metavar="SECONDS",
        help="watch for so long without a dashboard, then print what was seen",
    )
    parser.add_argument("--json", action="store_true", help="print it as one JSON object")
    add_look(parser)


def main(options: argparse.Namespace) -> int:
    """Watch; return the exit status. The server goes on, whatever happens here."""
    address = parse_address(options.url)
    prefix = options.api_prefix.strip("/")
    if prefix:
        address = replace(address, url=f"{address.url}/{quote(prefix)}")
    key = read_key(options)
    headless = options.once or options.json or options.seconds is not None
    if not headless:
        need_terminal("`spectui attach URL --once`")
    found = _look(address, key, options.model or address.model)
    session = build_watching(address, key, found, limit=options.limit)
    if headless:
        return _print(session, options)
    return show(Workbench(session), options)


def _print(session: Watching, options: argparse.Namespace) -> int:
    """Watch for a while and print what was seen; what was seen before a Ctrl-C too."""
    ended = threading.Event()
    session.start()
    with Lifeline(session, lambda _: ended.set()) as lifeline:
        patience = time.monotonic() + _FIRST
        while not read(session.snapshot) and time.monotonic() < patience and not ended.is_set():
            ended.wait(0.1)
        began = time.monotonic()
        if options.seconds is not None and session.snapshot.phase in UP:
            ended.wait(options.seconds)
        seconds = time.monotonic() - began if options.seconds is not None else None
        snapshot = session.snapshot
    result = watched_report(snapshot, seconds, version=__version__)
    print(json.dumps(result, indent=2) if options.json else "\n".join(lines(result)))
    if snapshot.phase not in UP:
        raise SpectuiError(f"{snapshot.url} cannot be watched", snapshot.reason or snapshot.phase)
    return 128 + lifeline.signal if lifeline.signal is not None else 0


# -- what is there -----------------------------------------------------------------------------


def _look(address: Address, key: Secret, model: str) -> Found:
    """Return what answers at ``address``. Raises SpectuiError in one line, naming the address."""

    async def look() -> Found:
        client = LlamaClient(address.url, access=address.access.with_key(key))
        try:
            return await client.look(model)
        finally:
            await client.close()

    try:
        found = asyncio.run(look())
    except RequestError as error:
        fix = "is it running, and is the port right?" if error.status is None else ""
        what = f"{clean(address.url, limit=200)}: {error.what}"
        raise SpectuiError(what, error.fix or fix) from None
    return replace(found, model=_choice(found, model))


def _choice(found: Found, model: str) -> str:
    """Return the model to watch. The only one, or the only one in memory, needs no name."""
    offers = found.models or ((Offer(found.model),) if found.model else ())
    if not found.kind.has_models and (not model or not offers):
        return found.model
    if not found.models and found.kind.has_models:
        raise UsageError(f"{found.kind} has no models", "is its configuration the one you mean?")
    for offer in offers:
        if model and model in {offer.name, *offer.aliases}:
            return offer.name
    listed = clean(", ".join(map(_named, offers)), limit=1000)
    if model:
        raise UsageError(f"{found.kind} has no model {clean(model, limit=80)}", f"it has: {listed}")
    here = [offer.name for offer in offers if offer.state in IN_MEMORY]
    for names in ([offer.name for offer in offers], here):
        if len(names) == 1:
            return names[0]
    raise UsageError(f"{found.kind} has several models", f"name one with --model: {listed}")


def _named(offer: Offer) -> str:
    return f"{offer.name} ({offer.state})" if offer.state else offer.name
