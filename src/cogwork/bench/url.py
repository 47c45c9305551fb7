"""Where a load generator connects to, and how that fails."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from cogwork.amqp.errors import CogworkError
from cogwork.client.connection.url import PASSWORD_VARIABLE, UNIX, parse_url
from cogwork.client.errors import InvalidUrlError
from cogwork.config.link_urls import without_password
from cogwork.io.socket_file import check_path
from cogwork.io.tcp_options import set_tcp_options

__all__ = ("PeerError", "UnreachableError", "Url")

_PORTS: Final = {"amqp": 5672, "amqps": 5671}


class PeerError(CogworkError):
    """The other end refused what was asked for, or broke off; the text is one line.

    Attributes:
        condition: The AMQP error condition, where the peer named one.
    """

    def __init__(self, text: str, condition: str = "") -> None:
        super().__init__(text)
        self.condition = condition


class UnreachableError(ConnectionError, PeerError):
    """The other end cannot be connected to, or the connection is lost while it is being opened."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.condition = ""


@dataclass(frozen=True, slots=True)
class Url:
    """Where to connect to.

    Attributes:
        host: The name or address.
        port: The TCP port.
        is_tls: Whether TLS comes first.
        user: For SASL PLAIN; empty: ANONYMOUS.
        password: For SASL PLAIN.
        virtual_host: Empty: the default one.
        path: Of a Unix-domain socket, in the place of host and port; empty for none.
    """

    host: str
    port: int
    is_tls: bool = False
    user: str = ""
    password: str = ""
    virtual_host: str = ""
    path: str = ""

    @property
    def place(self) -> str:
        """Where that is, for people."""
        return self.path or f"{self.host}:{self.port}"

    def connect(self, timeout_s: float) -> socket.socket:
        """Open a socket.

        Raises:
            OSError: Nobody listens there.
        """
        if self.path:
            check_path(self.path)
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_s)
            try:
                sock.connect(self.path)
            except OSError:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((self.host, self.port), timeout_s)
        set_tcp_options(sock)
        return sock

    @property
    def hostname(self) -> str:
        """What Open says: the virtual host where there is one."""
        return f"vhost:{self.virtual_host}" if self.virtual_host else self.host

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `amqp[s]://[USER:PASSWORD@]HOST[:PORT][/VIRTUALHOST]`; the scheme may be missing.

        Or the URL of a Unix-domain socket, as clients take it.

        Raises:
            PeerError: It is something else.
        """
        if text.startswith(f"{UNIX}://"):
            return cls._parse_unix(text)
        parts = urlsplit(text if "://" in text else f"amqp://{text}")
        try:
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:  # its text may have a part of the password
            raise PeerError(
                f"{without_password(text)}: after the host and a colon comes a port, a number up "
                "to 65535"
            ) from None
        if port is None or not parts.hostname:
            shown = without_password(text)
            raise PeerError(f"invalid URL {shown!r} (expected one such as amqp://localhost:5672)")
        return cls(
            host=parts.hostname,
            port=port,
            is_tls=parts.scheme == "amqps",
            user=unquote(parts.username or ""),
            password=_password_of(parts.username, unquote(parts.password or "")),
            virtual_host=unquote(parts.path.strip("/")),
        )

    @classmethod
    def _parse_unix(cls, text: str) -> Self:
        try:
            found = parse_url(text)
        except InvalidUrlError as error:
            raise PeerError(str(error)) from None
        return cls(
            host=found.name,
            port=0,
            user=found.user or "",
            password=_password_of(found.user, found.password),
            virtual_host=found.vhost,
            path=found.host,
        )


def _password_of(user: str | None, password: str) -> str:
    """Return the password in a URL, or the one of the environment where that has none."""
    return os.environ.get(PASSWORD_VARIABLE, "") if user and not password else password
