"""The machines of a mesh, as `cogwork init --machines` names them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.loopback import is_loopback
from cogwork.config.settings import VOTERS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("BadMachine", "Machine", "machines_of", "primaries_of")

MACHINES_MAX = 100

AMQP, AMQPS = 5672, 5671
"""The registered ports (AMQP 1.0 §1.1.1)."""

_PORT_MAX = 65_535
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TAKEN = {"ca", "admin.password"}
"""What stands beside the machines' folders."""

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_PLACE = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]+))(?::(?P<port>\d{1,5}))?")


class BadMachine(ValueError):
    """Words that name no machine; the message says which."""


@dataclass(frozen=True)
class Machine:
    """One machine, with one container.

    Attributes:
        id: The container's id; its files are in a folder of that name.
        host: Its name or address, where the others and clients reach it.
        port: Where it listens.
    """

    id: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def bound(self) -> str:
        """The address to listen on: every interface, but for a trial on one machine."""
        if is_loopback(self.host):
            return self.host
        return "::" if ":" in self.host else "0.0.0.0"


def machines_of(text: str, *, tls: bool) -> list[Machine]:
    """Read `NAME[=HOST[:PORT]],...`.

    Args:
        text: What the option says.
        tls: Whether they listen for TLS, by default at another port.

    Raises:
        BadMachine: It is something else, or names one twice.
    """
    found = [_machine(word.strip(), AMQPS if tls else AMQP) for word in text.split(",")]
    if len(found) > MACHINES_MAX:
        raise BadMachine(f"{len(found)} machines (expected at most {MACHINES_MAX})")
    for at, each in enumerate(found):
        if any(each.id.lower() == other.id.lower() for other in found[:at]):
            raise BadMachine(f"{each.id!r} twice (expected each name once)")
        if any(each.place.lower() == other.place.lower() for other in found[:at]):
            raise BadMachine(f"{each.place!r} twice (expected each host and port once)")
    return found


def _machine(word: str, port: int) -> Machine:
    name, equals, place = word.partition("=")
    if not _ID.fullmatch(name) or name.lower() in _TAKEN:
        raise BadMachine(
            f"{name!r:.100} is not a machine's name (expected letters, digits, '.', '_' and '-', "
            "and none of ca, admin.password)"
        )
    match = _PLACE.fullmatch(place if equals else name)
    if match is None or not _is_host(match["v6"] or match["host"], is_v6=bool(match["v6"])):
        raise BadMachine(f"{word!r:.300} leads to no machine (expected NAME=HOST[:PORT])")
    given = int(match["port"]) if match["port"] else port
    if not 0 < given <= _PORT_MAX:
        raise BadMachine(f"{word!r:.300} has no port from 1 to {_PORT_MAX}")
    return Machine(name, match["v6"] or match["host"], given)


def _is_host(text: str, *, is_v6: bool) -> bool:
    if not is_v6:
        return _HOST.fullmatch(text) is not None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def primaries_of(machines: Sequence[Machine]) -> list[str]:
    """Choose who votes: an odd number, as one more would have to be there for a majority."""
    count = min(len(machines), VOTERS_MAX)
    return [each.id for each in machines[: count - (count % 2 == 0)]]
