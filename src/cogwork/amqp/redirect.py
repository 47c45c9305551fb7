"""Redirects: where a peer sends us instead (AMQP 1.0 §2.8.16 for connections, §2.8.18 for links).

The specification's info map names one host, by `hostname`, `network-host` and `port`, and for a
link the `address` there. Two more entries are understood: `scheme`, which other clients know too,
and `known-hosts`, our own: a list of HOST:PORT that are tried in this order where the first one
does not answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.loopback import is_loopback
from cogwork.amqp.types import Array, Symbol, UShort

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("CONSOLE", "FORCE", "MESH", "REDIRECTS", "Host", "Redirect", "host_of")

FORCE = Symbol("cogwork:force")
"""A property of the open: true asks never to be redirected."""

REDIRECTS = Symbol("cogwork:redirects")
"""A property of the open: how many redirects in a row have led here; who sends it follows them."""

MESH = Symbol("cogwork:mesh")
"""A property of the open of a container that is linked with this one."""

CONSOLE = Symbol("cogwork:console")
"""A property of the open of a console, which looks at this container and no other."""

KNOWN_HOSTS_MAX = 32
"""Of more than these the rest is left out: nobody waits for so many time-outs."""

PORT_MAX = 65_535

STRING_BYTES = 5
"""What a string takes besides its text, at most (AMQP 1.0 §1.6.20)."""

HOST_MAX = 255
"""The longest name that DNS has (RFC 1035 §2.3.4)."""

_NAME = re.compile(r"[\w.-]+")
_IPV6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[\w.-]+)?")
_HOST_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*)):([0-9]{1,5})", re.ASCII)


class Host(NamedTuple):
    """A TCP port of a machine.

    Attributes:
        name: The machine's name or address.
        port: From 1 to 65535.
    """

    name: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether it is the machine that asks; a name other than localhost may be anything."""
        return is_loopback(self.name)

    def __str__(self) -> str:
        """Write HOST:PORT, an IPv6 address in brackets."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name}:{self.port}"


class Redirect(NamedTuple):
    """Where to go instead.

    Attributes:
        target: The host to try first.
        known_hosts: Those to try then, in order.
        hostname: What the container there is called in open, SASL and TLS; None for its host.
        scheme: What is spoken there, `amqp` or `amqps` say; None for what is spoken here.
        address: For a link, the address of its terminus there; None for the same.
    """

    target: Host
    known_hosts: tuple[Host, ...] = ()
    hostname: str | None = None
    scheme: str | None = None
    address: str | None = None

    def __str__(self) -> str:
        """Name the host."""
        return str(self.target)

    def to_error(
        self,
        condition: Symbol = Condition.CONNECTION_REDIRECT,
        *,
        frame_size_bytes: int = 1 << 16,
    ) -> AmqpError:
        """Return what a close, or a detach, says of it.

        Args:
            condition: That of a connection, or that of a link.
            frame_size_bytes: The largest frame the peer takes; half of one is left to known hosts.
        """
        info: dict[Symbol, object] = {
            Symbol("hostname"): self.hostname or self.target.name,
            Symbol("network-host"): self.target.name,
            Symbol("port"): UShort(self.target.port),
        }
        if known_hosts := _fitting(map(str, self.known_hosts), frame_size_bytes // 2):
            info[Symbol("known-hosts")] = known_hosts
        if self.scheme is not None:
            info[Symbol("scheme")] = self.scheme
        if self.address is not None:
            info[Symbol("address")] = self.address
        return AmqpError(condition=condition, description=f"go to {self.target}", info=info)

    @classmethod
    def from_error(cls, error: AmqpError) -> Redirect:
        """Read what a close, or a detach, said.

        Raises:
            ProtocolError: It names no host, or something in it is of the wrong type.
        """
        info = error.info or {}
        name = _text(info, "network-host")
        if name is None:
            raise _wrong("network-host", "nothing", "a host")
        hostname = _text(info, "hostname")
        return cls(
            target=Host(_checked_name("network-host", name), _port(info)),
            known_hosts=_known_hosts(info),
            hostname=_checked_name("hostname", hostname) if hostname else None,
            scheme=_text(info, "scheme"),
            address=_text(info, "address"),
        )


def host_of(text: str) -> Host:
    """Read HOST:PORT, an IPv6 address in brackets.

    Raises:
        ValueError: It is none; the message says what was expected.
    """
    match = _HOST_PORT.fullmatch(text)
    if match is not None:
        name, port = match[1] or match[2] or "", int(match[3])
        if _is_name(name) and (":" in name) == (match[1] is not None) and 0 < port <= PORT_MAX:
            return Host(name, port)
    raise ValueError(f"HOST:PORT is expected, not {text!r:.80}")


def _fitting(texts: Iterable[str], size_bytes: int) -> list[str]:
    """Return as many of the first as can be encoded in so much."""
    found = []
    for text in texts:
        size_bytes -= len(text.encode()) + STRING_BYTES
        if size_bytes < 0:
            break
        found.append(text)
    return found


def _is_name(name: str) -> bool:
    """Return whether it can be a host's, and cannot be taken for anything else."""
    return len(name) <= HOST_MAX and bool(_NAME.fullmatch(name) or _IPV6.fullmatch(name))


def _checked_name(key: str, name: str) -> str:
    if not _is_name(name):
        raise _wrong(key, repr(name)[:80], "a host")
    return name


def _text(info: Mapping[Symbol, object], key: str) -> str | None:
    """Return an entry that is text; an empty one says as much as none."""
    value = info.get(Symbol(key))
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(key, repr(value)[:80], "a string")
    return str(value) or None


def _port(info: Mapping[Symbol, object]) -> int:
    """Return the port, of whatever integer type: the specification names none."""
    port = info.get(Symbol("port"))
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= PORT_MAX:
        found = "nothing" if port is None else repr(port)[:80]
        raise _wrong("port", found, f"1 to {PORT_MAX}")
    return int(port)


def _known_hosts(info: Mapping[Symbol, object]) -> tuple[Host, ...]:
    value = info.get(Symbol("known-hosts"))
    found = value.items if isinstance(value, Array) else value
    if found is None:
        return ()
    if not isinstance(found, list | tuple):
        raise _wrong("known-hosts", repr(value)[:80], "a list of HOST:PORT")
    hosts = []
    for each in found[:KNOWN_HOSTS_MAX]:
        try:
            hosts.append(host_of(each if isinstance(each, str) else repr(each)))
        except ValueError as error:
            raise ProtocolError(
                Condition.INVALID_FIELD, f"a redirect's known-hosts: {error}"
            ) from None
    return tuple(hosts)


def _wrong(key: str, found: str, expected: str) -> ProtocolError:
    return ProtocolError(
        Condition.INVALID_FIELD, f"a redirect's {key}: {found}, expected {expected}"
    )
