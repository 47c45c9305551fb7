"""Where a link of the mesh leads, as people write it, and as others may read it."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

from cogwork.amqp.errors import Condition
from cogwork.amqp.loopback import is_loopback
from cogwork.io.socket_file import PATH_BYTES_MAX
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from cogwork.config.mesh_settings import Link
    from cogwork.tls.contexts import Version

__all__ = ("BadLinkUrl", "LinkUrl", "link_url", "without_password")

_PORTS = {"amqp": 5672, "amqps": 5671}
_BARE = re.compile(r"(?:\[[^\]]*\]|[^:/@]*):\d+")
_LOOPBACK = "127.0.0.1"
_FORMS = "HOST:PORT, amqp[s]://[USER:PASSWORD@]HOST[:PORT] or unix://PATH"
_ENDPOINT = "a host and a port from 1 to 65535"
_UNIX = "unix://"


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
    """Another container's listener, and how to log in there.

    Attributes:
        scheme: `amqp`, `amqps` or `unix`.
        host: Its name or address, in lower case; for a Unix-domain socket the path.
        port: Its port; 0 for a Unix-domain socket.
        user: For SASL; None for anonymous, or for a certificate.
        password: The user's.
        token_file: The file with a token; None without.
        certificate: PEM file that this side shows.
        key: PEM file with its key; None where the certificate's file holds it.
        key_password: What the key is encrypted with; None where it is not.
        authority: PEM file with who vouches for the other side; None trusts the system's.
        crl: PEM file with whom they do not trust any more; None checks none.
        minimum_version: The oldest version of TLS that is spoken.
        ciphers: For TLS 1.2; None leaves them to the library.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    authority: Path | None = None
    crl: Path | None = None
    minimum_version: Version = "1.2"
    ciphers: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `HOST:PORT`, `amqp[s]://[USER:PASSWORD@]HOST[:PORT]` or `unix://PATH`.

        Args:
            text: Percent-encoded where user or password need it, but for a path, which stands as
                it is; no host is loopback.

        Raises:
            BadLinkUrl: It is something else; the message shows no password.
        """
        if text.startswith(_UNIX):
            return cls("unix", _socket_path(text), 0)
        if _BARE.fullmatch(text):
            text = f"amqp://{_LOOPBACK if text.startswith(':') else ''}{text}"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise _bad(text, _ENDPOINT) from None
        if parts.scheme not in _PORTS:
            raise _bad(text, _FORMS)
        if not parts.hostname or port == 0:
            raise _bad(text, _ENDPOINT)
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise _bad(text, "nothing after the port: a link carries all virtual hosts")
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=port or _PORTS[parts.scheme],
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
        )

    @property
    def endpoint(self) -> str:
        """Host and port, or the path: what tells one link from another."""
        if self.is_unix:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def leads_to(self, host: str, port: int, machine: str | None = None) -> bool:
        """Return whether who listens there is the one that this leads to, as far as names say so.

        Args:
            host: A name or an address, also of all interfaces; for a Unix-domain socket the path.
            port: 0 for a Unix-domain socket.
            machine: The name of this machine, where that is to count, and its addresses: as many
                may share a configuration that names all of them.
        """
        if self.port != port:
            return False
        here = _addresses(host)
        if here & _addresses(self.host):
            return True
        if self.is_unix:
            return False
        is_named = machine is not None and self.host == machine.lower()
        own = frozenset() if machine is None else frozenset(filter(_is_own, _addresses(self.host)))
        return self._is_any_of(here, own, is_named=is_named)

    def _is_any_of(self, here: frozenset[str], own: frozenset[str], *, is_named: bool) -> bool:
        """Return whether it leads to this machine by an interface of all that are listened at."""
        there = _addresses(self.host)
        is_near = any(is_loopback(each) and ":" not in each for each in there)
        is_ipv4 = is_near or any("." in each for each in own)
        is_ipv6 = "::1" in there or any(":" in each for each in own)
        return ("0.0.0.0" in here and (is_named or is_ipv4)) or (
            "::" in here and (is_named or is_ipv6)
        )

    @property
    def is_unix(self) -> bool:
        """Whether it is a Unix-domain socket."""
        return self.scheme == "unix"

    @property
    def is_private(self) -> bool:
        """Whether nobody can read along: TLS is spoken, or it leads to this machine."""
        return self.scheme == "amqps" or self.is_unix or is_loopback(self.host)

    @property
    def has_certificate(self) -> bool:
        """Whether this side can show who it is."""
        return self.certificate is not None

    def __str__(self) -> str:
        """Write it without the password."""
        user = "" if self.user is None else f"{self.user}@"
        return f"{self.scheme}://{user}{self.endpoint}"


def _addresses(host: str) -> frozenset[str]:
    """Return a host's addresses, where it needs nobody to tell them."""
    if host == "localhost":
        return frozenset(("127.0.0.1", "::1"))
    with suppress(OSError):  # no address of IPv4, which may be as short as 127.1
        host = socket.inet_ntoa(socket.inet_aton(host))
    return frozenset((host,))


def _is_own(host: str) -> bool:
    """Return whether this is an address of this machine: no other can be bound to."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.inet_pton(family, host)  # a name would have to be asked for
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _socket_path(text: str) -> str:
    path = text.removeprefix(_UNIX)
    if not path.startswith("/") or "\0" in path or len(path.encode()) > PATH_BYTES_MAX:
        raise _bad(text, f"the path of a socket from / on, of at most {PATH_BYTES_MAX} bytes")
    return path


def link_url(link: Link) -> LinkUrl:
    """Read the URL of a link, and add its files.

    Raises:
        BadLinkUrl: It is malformed; the message says what would be right.
    """
    url = LinkUrl.parse(link.url)
    return replace(
        url,
        password=url.password if link.password is None else link.password,
        token_file=_path(link.token_file),
        certificate=_path(link.certificate),
        key=_path(link.key),
        key_password=link.key_password,
        authority=_path(link.ca),
        crl=_path(link.crl_file),
        minimum_version=link.minimum_version,
        ciphers=link.ciphers,
    )


def without_password(text: str) -> str:
    """Write what may be a URL without what may be its user and password."""
    scheme, mark, rest = text.rpartition("://")
    return f"{scheme}{mark}...@{rest.rpartition('@')[2]}" if "@" in rest else text


def _bad(text: str, expected: str) -> BadLinkUrl:
    return BadLinkUrl(f'"{without_password(text):.80}"', expected)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
