"""Profile → the argv of a llama-server, in the words of the binary at hand."""

from __future__ import annotations

from spectui.domain.dialect import TODAY, Dialect
from spectui.domain.profile import Profile
from spectui.domain.speculation import Speculation


def server_arguments(
    profile: Profile,
    speculation: Speculation,
    *,
    target: str,
    draft: str,
    port: int,
    dialect: Dialect = TODAY,
) -> tuple[str, ...]:
    """Return llama-server's arguments, without the program itself.

    ``target`` and ``draft`` are the resolved model files. The profile's own args come first, so
    that nothing in them can undo what is measured.
    """
    arguments = [*profile.server.args, "-m", target, "--host", "127.0.0.1", "--port", str(port)]
    # a build that lacks one of them still serves: the dashboard then says what it cannot read
    arguments += [flag for flag in ("--metrics", "--slots") if flag in dialect.flags]
    arguments += _placement(profile, dialect)
    arguments += dialect.speak(speculation, draft=draft)
    if draft and any(kind.drafts_with_model for kind in speculation.kinds):
        arguments += _draft_placement(profile, dialect)
    return tuple(arguments)


def _placement(profile: Profile, dialect: Dialect) -> list[str]:
    server = profile.server
    layers = dialect.layers(server.gpu_layers) if server.gpu_layers else None
    return _given(
        ("-c", server.context),
        ("-np", server.parallel),
        ("-ngl", layers),
        ("-dev", server.device),
        ("-ctk", server.kv_k),
        ("-ctv", server.kv_v),
    )


def _draft_placement(profile: Profile, dialect: Dialect) -> list[str]:
    draft = profile.draft
    layers = dialect.layers(draft.gpu_layers) if draft.gpu_layers else None
    return _given(
        (dialect.spelling("--spec-draft-ngl"), layers),
        (dialect.spelling("--spec-draft-device"), draft.device),
        (dialect.spelling("--spec-draft-type-k"), draft.kv_k),
        (dialect.spelling("--spec-draft-type-v"), draft.kv_v),
    )


def _given(*pairs: tuple[str | None, str | int | None]) -> list[str]:
    return [
        word
        for flag, value in pairs
        if flag is not None and value not in {None, ""}
        for word in (flag, str(value))
    ]
