"""Profile → the argv of a llama-server of today's dialect."""

from __future__ import annotations

from spectui.domain.profile import Profile
from spectui.domain.speculation import Draft, Speculation


def server_arguments(
    profile: Profile, speculation: Speculation, *, target: str, draft: str, port: int
) -> tuple[str, ...]:
    """Return llama-server's arguments, without the program itself.

    ``target`` and ``draft`` are the resolved model files. The baseline is ``--spec-type none``
    without a draft model: a draft length of 0 is not off, it crashes or still drafts one token.
    Every knob that acts on the type is passed, also at its default, since defaults differ between
    builds. The profile's own args come first, so that nothing in them can undo what is measured.
    """
    arguments = [*profile.server.args, "-m", target, "--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--metrics", "--slots", "--spec-type", speculation.type]
    if draft and speculation.kind.draft is not Draft.NONE:
        arguments += ["-md", draft]
    for knob, value in speculation.acting():
        arguments += [knob.flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return tuple(arguments)
