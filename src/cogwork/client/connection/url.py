"""Where to connect, as a URL says it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from cogwork.amqp.loopback import is_loopback
from cogwork.amqp.redirect import Host
from cogwork.client.errors import InvalidUrlError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

__all__ = (
    "BETWEEN",
    "PASSWORD_VARIABLE",
    "SCHEMES",
    "UNIX",
    "Endpoint",
    "Urls",
    "endpoints_of",
    "parse_url",
    "with_login",
)

Urls = str | Iterable[str]
"""One URL, several between commas, or a list: the containers to try, in this order."""

ONE_BY_ONE = "of several URLs between commas, each begins with its scheme, such as amqp://"

SCHEMES = {"amqp": 5672, "amqps": 5671, "ws": 80, "wss": 443}
"""What is spoken, and the port for it that a URL need not name."""

UNIX = "unix"
"""The scheme of Unix-domain sockets, which have a path in the place of host and port."""

PASSWORD_VARIABLE = "COGWORK_PASSWORD"
"""The environment variable with the password of command lines' URLs that name a user alone."""

BETWEEN = re.compile(r",\s*(?=[a-z]+://)")
"""A comma in a password separates nothing: the next URL begins with its scheme."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One container to connect to.

    Attributes:
        scheme: `amqp`, `amqps`, `ws`, `wss` or `unix`.
        host: A name or an address; for a Unix-domain socket the path.
        port: The TCP port; 0 for a Unix-domain socket.
        user: For SASL; None without.
        password: The user's.
        vhost: The virtual host; empty for the default one.
        known_as: What the container is called, if it is not called as its host is.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)
    vhost: str = ""
    known_as: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What the container is called in open, SASL and TLS."""
        return self.known_as or ("localhost" if self.is_unix else self.host)

    @property
    def is_unix(self) -> bool:
        """Whether it is a Unix-domain socket, and so a container of this machine."""
        return self.scheme == UNIX

    @property
    def is_plain(self) -> bool:
        """Whether the socket carries AMQP as it is."""
        return self.scheme in ("amqp", UNIX)

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.scheme in ("amqps", "wss")

    @property
    def is_private(self) -> bool:
        """Whether nobody can read along: TLS is spoken, or no other machine is asked."""
        return self.is_encrypted or self.is_unix or is_loopback(self.host)

    @property
    def is_web(self) -> bool:
        """Whether AMQP travels in a WebSocket."""
        return self.scheme in ("ws", "wss")

    @property
    def authority(self) -> str:
        """Host and port, as a URL has them."""
        return str(Host(self.host, self.port))

    def __str__(self) -> str:
        """Show the URL without user and password."""
        if self.is_unix:
            return f"{UNIX}://{self.host}" + (f"?vhost={self.vhost}" if self.vhost else "")
        return f"{self.scheme}://{self.authority}" + (f"/{self.vhost}" if self.vhost else "")


def parse_url(url: str) -> Endpoint:
    """Read `scheme://[user[:password]@]host[:port][/vhost]`.

    A Unix-domain socket is `unix://[user[:password]@]/path[?vhost=name]`.

    Args:
        url: Percent-encoded where user, password, virtual host or path need it.

    Raises:
        InvalidUrlError: It is none; the message says what would be one, and no password.
    """
    if not isinstance(url, str):
        raise InvalidUrlError(f"a URL is a text, such as amqp://localhost:5672, not {url!r:.80}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text may have a part of the password
        raise InvalidUrlError(
            "this is no URL of a container: after the host and a colon comes a port, a number up "
            "to 65535; in a user or a password, / is written %2F, : %3A and @ %40; "
            f"{ONE_BY_ONE}"
        ) from None
    if parts.scheme == UNIX:
        return _unix_endpoint(parts)
    if parts.scheme not in SCHEMES:
        expected = ", ".join(f"{scheme}://" for scheme in (*SCHEMES, UNIX))
        raise InvalidUrlError(
            f"unknown URL scheme {(parts.scheme or url)[:20]!r} (expected one of {expected}, "
            "such as amqp://localhost:5672)"
        )
    if not parts.hostname:
        raise InvalidUrlError(f"{parts.scheme}:// needs a host after it, such as localhost")
    if "," in parts.hostname:
        raise InvalidUrlError(ONE_BY_ONE)
    return Endpoint(
        scheme=parts.scheme,
        host=parts.hostname,
        port=SCHEMES[parts.scheme] if port is None else port,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        vhost=unquote(parts.path.removeprefix("/")),
    )


def endpoints_of(urls: str | Iterable[str | Endpoint]) -> list[Endpoint]:
    """Return where URLs lead.

    Args:
        urls: One URL, several between commas, or a list; an `Endpoint` is taken as it is.

    Raises:
        InvalidUrlError: One of them is not a URL, or there is none.
    """
    given = urls if isinstance(urls, Iterable) and not isinstance(urls, str) else [urls]
    found: list[Endpoint] = []
    for each in given:
        if isinstance(each, Endpoint):
            found.append(each)
        else:
            found += map(parse_url, BETWEEN.split(each) if isinstance(each, str) else [each])
    if not found:
        raise InvalidUrlError("no URL is given: one such as amqp://localhost:5672 is expected")
    return found


def with_login(
    urls: str | Iterable[str | Endpoint], user: str | None, password: str | None
) -> list[Endpoint]:
    """Return where URLs lead, with a login for those that lack it.

    Args:
        urls: As for `endpoints_of`.
        user: For URLs that name nobody; None leaves them so.
        password: For URLs that hold none but name a user.

    Raises:
        InvalidUrlError: A URL is wrong, or the password has no user.
    """
    endpoints = [
        each if each.user is not None or user is None else replace(each, user=user)
        for each in endpoints_of(urls)
    ]
    if password is None:
        return endpoints
    if all(each.user is None for each in endpoints):
        raise InvalidUrlError("password needs a user: give user, too, or a URL that names one")
    return [
        replace(each, password=password) if each.user is not None and not each.password else each
        for each in endpoints
    ]


def _unix_endpoint(parts: SplitResult) -> Endpoint:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    vhost = options.pop("vhost", "")
    if parts.hostname or parts.port is not None or len(parts.path) < 2 or options or parts.fragment:
        raise InvalidUrlError(
            "unix:// needs the path of a socket after it, from / on, such as "
            "unix:///run/cogwork/north.sock, and takes ?vhost=NAME behind that"
        )
    return Endpoint(
        scheme=UNIX,
        host=unquote(parts.path),
        port=0,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        vhost=vhost,
    )
