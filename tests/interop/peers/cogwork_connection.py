"""Connections of Cogwork's client, as the commands ask for them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from commands import Json, PeerError

import cogwork
from cogwork.io.tls import client_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

TIMEOUT_S = 40.0
"""For a whole command."""

OPTIONS = {"max_frame_size": "max_frame_size_bytes", "idle_timeout_s": "idle_timeout_s"}

KINDS: dict[type[Exception], str] = {
    cogwork.AuthenticationError: "authentication",
    cogwork.ConnectError: "connection",
    cogwork.Disconnected: "connection",
    cogwork.LinkRefused: "link",
    cogwork.LinkDetached: "link",
    TimeoutError: "timeout",
}
"""What an exception is to the tests; the first that fits."""


@contextlib.asynccontextmanager
async def connected(options: Json) -> AsyncIterator[cogwork.Client]:
    """Open a connection for the length of an `async with` block. Raises `PeerError`."""
    limits: dict[str, Any] = {
        OPTIONS[name]: value for name, value in options.items() if name in OPTIONS
    }
    tls, sasl = tls_context(options), options.get("sasl", "ANONYMOUS")
    try:
        async with cogwork.connect(url(options), tls=tls, sasl=sasl, **limits) as client:
            yield client
    except tuple(KINDS) as error:
        kind = next(name for type_, name in KINDS.items() if isinstance(error, type_))
        raise PeerError(kind, str(error), getattr(error, "condition", None)) from error


def url(options: Json) -> str:
    """Return a URL that has the user, the password and the virtual host in it."""
    parts = urlsplit(options["url"])
    user, password = (quote(options.get(name, ""), safe="") for name in ("user", "password"))
    credentials = f"{user}:{password}@" if user else ""
    vhost = options.get("hostname", "").removeprefix("vhost:")
    if parts.scheme == "unix":
        return f"unix://{credentials}{parts.path}" + (f"?vhost={vhost}" if vhost else "")
    return f"{parts.scheme}://{credentials}{parts.netloc}/{vhost}"


def tls_context(options: Json) -> ssl.SSLContext | None:
    """Return the TLS settings of a command's `connection`."""
    if "ca" not in options:
        return None
    certificate, key = options.get("certificate"), options.get("key")
    return client_context(
        Path(options["ca"]),
        Path(certificate) if certificate else None,
        Path(key) if key else None,
    )
