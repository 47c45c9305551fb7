"""Where to connect, as a URL says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from cogwork.amqp.redirect import Host
from cogwork.client.errors import InvalidUrlError

__all__ = ("SCHEMES", "Endpoint", "parse_url")

SCHEMES = {"amqp": 5672, "amqps": 5671, "ws": 80, "wss": 443}
"""What is spoken, and the port for it that a URL need not name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One container to connect to.

    Attributes:
        scheme: `amqp`, `amqps`, `ws` or `wss`.
        host: A name or an address.
        port: The TCP port.
        user: For SASL PLAIN; None without.
        password: For SASL PLAIN.
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
        return self.known_as or self.host

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.scheme in ("amqps", "wss")

    @property
    def is_web(self) -> bool:
        """Whether AMQP travels in a WebSocket."""
        return self.scheme in ("ws", "wss")

    @property
    def authority(self) -> str:
        """Host and port, as a URL has them."""
        return str(Host(self.host, self.port))

    def __str__(self) -> str:
        """Shows the URL without user and password."""
        return f"{self.scheme}://{self.authority}" + (f"/{self.vhost}" if self.vhost else "")


def parse_url(url: str) -> Endpoint:
    """Reads `scheme://[user[:password]@]host[:port][/vhost]`.

    Args:
        url: Percent-encoded where user, password or virtual host need it.

    Raises:
        InvalidUrlError: It is none; the message says what would be one, and no password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text may have a part of the password
        raise InvalidUrlError(
            "this is no URL of a container: after the host and a colon comes a port, a number up "
            "to 65535; in a user or a password, / is written %2F, : %3A and @ %40"
        ) from None
    if parts.scheme not in SCHEMES:
        expected = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise InvalidUrlError(
            f"a URL starts with one of {expected}, such as amqp://localhost:5672; "
            f"this one starts with {(parts.scheme or url)[:20]!r}"
        )
    if not parts.hostname:
        raise InvalidUrlError(f"{parts.scheme}:// needs a host after it, such as localhost")
    return Endpoint(
        scheme=parts.scheme,
        host=parts.hostname,
        port=SCHEMES[parts.scheme] if port is None else port,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        vhost=unquote(parts.path.removeprefix("/")),
    )
