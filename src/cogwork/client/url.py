"""Where to connect, as a URL says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from cogwork.client.errors import InvalidUrlError

__all__ = ("Endpoint", "parse_url")

_PORTS = {"amqp": 5672, "amqps": 5671, "ws": 80, "wss": 443}


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
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)
    vhost: str = ""

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
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

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
    except ValueError as error:
        raise InvalidUrlError(f"this is no URL of a container: {error}") from None
    if parts.scheme not in _PORTS:
        expected = ", ".join(f"{scheme}://" for scheme in _PORTS)
        raise InvalidUrlError(
            f"a URL starts with one of {expected}, such as amqp://localhost:5672; "
            f"this one starts with {(parts.scheme or url)[:20]!r}"
        )
    if not parts.hostname:
        raise InvalidUrlError(f"{parts.scheme}:// needs a host after it, such as localhost")
    return Endpoint(
        scheme=parts.scheme,
        host=parts.hostname,
        port=_PORTS[parts.scheme] if port is None else port,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
        vhost=unquote(parts.path.removeprefix("/")),
    )
