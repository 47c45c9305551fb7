"""Where a link leads: `amqp://host:port`, and how it is written where others can read it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

from cogwork.amqp.errors import Condition
from cogwork.spi.node import Refused

__all__ = ("BadLinkUrl", "LinkUrl", "without_password")

_PORTS = {"amqp": 5672, "amqps": 5671}
_BARE = re.compile(r"(?:\[[^\]]*\]|[^:/@]*):\d+")
_LOOPBACK = "127.0.0.1"


class BadLinkUrl(Refused):
    """What was given leads to no container.

    Attributes:
        found: What it is, without a password.
        expected: What would be right.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"link: found {found}, expected {expected}", Condition.INVALID_FIELD)
        self.found = found
        self.expected = expected


@dataclass(frozen=True, slots=True)
class LinkUrl:
    """The other end of a link.

    Attributes:
        scheme: `amqp` or `amqps`.
        host: In lower case.
        port: The TCP port.
        user: For SASL PLAIN; None for ANONYMOUS, or EXTERNAL with a certificate.
        password: The user's.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `HOST:PORT`, or `amqp[s]://[USER:PASSWORD@]HOST[:PORT]`.

        Args:
            text: Percent-encoded where user or password need it; no host is loopback.

        Raises:
            BadLinkUrl: It is something else; the message shows no password.
        """
        if _BARE.fullmatch(text):
            text = f"amqp://{_LOOPBACK if text.startswith(':') else ''}{text}"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise _bad(text, "a host and a port from 1 to 65535") from None
        if parts.scheme not in _PORTS:
            raise _bad(text, "HOST:PORT, amqp://HOST:PORT or amqps://HOST:PORT")
        if not parts.hostname or port == 0:
            raise _bad(text, "a host and a port from 1 to 65535")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise _bad(text, "nothing after the port: a link carries all virtual hosts")
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=port or _PORTS[parts.scheme],
            user=None if parts.username is None else unquote(parts.username),
            password=unquote(parts.password or ""),
        )

    @property
    def endpoint(self) -> str:
        """Host and port: what tells one link from another."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Writes it without the password."""
        user = "" if self.user is None else f"{self.user}@"
        return f"{self.scheme}://{user}{self.endpoint}"


def without_password(text: str) -> str:
    """Writes what may be a URL without what may be its user and password."""
    scheme, mark, rest = text.rpartition("://")
    return f"{scheme}{mark}...@{rest.rpartition('@')[2]}" if "@" in rest else text


def _bad(text: str, expected: str) -> BadLinkUrl:
    return BadLinkUrl(f'"{without_password(text):.80}"', expected)
