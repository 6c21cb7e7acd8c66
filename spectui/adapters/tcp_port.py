"""Ports on 127.0.0.1: is one free, who has it, and which one to use."""

from __future__ import annotations

import errno
import os
import socket

import psutil

from spectui.domain.errors import PortError
from spectui.domain.text import clean

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Return whether a server could bind ``port`` now."""
    return _try_to_bind(port) is None


def free_port(wanted: int | None) -> int:
    """Return ``wanted`` if a server can bind it, and any free port for None.

    Raises PortError, with the owner's name where it can be told.
    """
    if wanted is None:
        return _any_free_port()
    if not 0 < wanted < 65536:
        raise PortError(
            f"{wanted} is not a port",
            "set server.port to a number from 1 to 65535, or leave it out",
        )
    error = _try_to_bind(wanted)
    if error is None:
        return wanted
    if error.errno == errno.EADDRINUSE:
        raise PortError(
            f"port {wanted} is used by {_owner(wanted) or 'another program'}",
            "stop that program, or choose another port with server.port",
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        raise PortError(
            f"port {wanted} is for privileged programs", "choose one above 1023 with server.port"
        )
    raise PortError(
        f"port {wanted} cannot be bound on {LOOPBACK} ({error.strerror or error})",
        "choose another port with server.port",
    )


def _any_free_port() -> int:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
    except OSError as error:
        raise PortError(
            f"no port can be bound on {LOOPBACK} ({error.strerror or error})",
            "see that the loopback interface is up",
        ) from None
    return port


def _try_to_bind(port: int) -> OSError | None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # Connections of a server that has ended linger for a minute (TIME_WAIT) and are no
            # obstacle to the next one; with this option they don't count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, port))
    except OSError as error:
        return error
    # With the same option, systems other than Linux let a listener on all addresses pass.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
        caller.settimeout(0.2)
        if os.uname().sysname != "Linux" and caller.connect_ex((LOOPBACK, port)) == 0:
            return OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    return None


def _owner(port: int) -> str:
    """Return "NAME (pid N)" of the program that listens on ``port``, empty if it can't be told."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.pid
                and connection.laddr
                and connection.laddr.port == port
            ):
                name = psutil.Process(connection.pid).name()
                return f"{clean(name, limit=60)} (pid {connection.pid})"
    except (psutil.Error, OSError, RuntimeError):  # macOS asks for root; another user's is hidden
        return ""
    return ""
