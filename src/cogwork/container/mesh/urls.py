"""Where a link of the mesh leads, as people write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cogwork.container.settings import Link

__all__ = ("LinkUrl", "link_url")

_PORTS = {"amqp": 5672, "amqps": 5671}


@dataclass(frozen=True, slots=True)
class LinkUrl:
    """Another container's listener, and how to log in there.

    Attributes:
        scheme: `amqp` or `amqps`.
        host: Its name or address.
        port: Its port.
        user: For SASL PLAIN; None for anonymous, or for a certificate.
        password: The user's.
        certificate: PEM file that this side shows.
        key: PEM file with its key; None where the certificate's file holds it.
        authority: PEM file with who vouches for the other side; None trusts the system's.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def has_certificate(self) -> bool:
        """Whether this side can show who it is."""
        return self.certificate is not None


def link_url(link: Link) -> LinkUrl:
    """Reads the URL of a link.

    Raises:
        ValueError: It is malformed; the message says what would be right.
    """
    text = link.url if "://" in link.url else f"amqp://{link.url}"
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(
            f"{parts.scheme}://{parts.hostname or ''}: amqp[s]://HOST:PORT is expected"
        )
    return LinkUrl(
        scheme=parts.scheme,
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        certificate=_path(link.certificate),
        key=_path(link.key),
        authority=_path(link.ca),
    )


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
