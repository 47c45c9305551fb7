"""Lists of places that may be dialled: networks, names of hosts, paths of sockets.

Theory of operation. An address is looked for in networks alone, and a name among names alone: a
name is not resolved to be judged, as it could lead elsewhere by the time it is dialled. What is
neither, such as an address in one of its odd notations, counts as a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cogwork.io.networks import Network, PeerName, network_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Places",)

_ENTRY = re.compile(r"(?:\[([^\[\]]+)\](/\d+)?|([^:\[\]]+))(?::(\d{1,5}))?")
_NAME = re.compile(r"[A-Za-z0-9*._-]+")
_UNIX = "unix://"
PORT_MAX = 65_535


class _Place(NamedTuple):
    """One entry; it has a network or a pattern.

    Attributes:
        network: Of addresses.
        pattern: Of names, or of paths.
        port: The only port; None for any.
    """

    network: Network | None
    pattern: re.Pattern[str] | None
    port: int | None


class Places:
    """A list of them."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Read the entries.

        Args:
            texts: `10.0.0.0/8`, `[fd00::]/8`, `host.example`, `*.example:5671`, `unix:///run/x`.
                In a name `*` stands for one label, in a path for one of its parts.

        Raises:
            ValueError: One is none of these.
        """
        self._places = [_place(text) for text in texts]

    def hold(self, host: str, port: int) -> bool:
        """Tell whether a place is among them.

        Args:
            host: An address or a name; for a Unix-domain socket its path.
            port: 0 for a path.
        """
        address = PeerName(host, port).address
        name = host if host.startswith("/") else host.lower().rstrip(".")
        return any(
            (each.port in (None, port))
            and (
                (each.network is not None and address is not None and address in each.network)
                or (each.pattern is not None and each.pattern.fullmatch(name) is not None)
            )
            for each in self._places
        )


def _place(text: str) -> _Place:
    if text.startswith(f"{_UNIX}/"):
        return _Place(None, _pattern(text.removeprefix(_UNIX), "/"), None)
    found = _whole_network(text)
    if found is not None:
        return _Place(found, None, None)
    entry = _ENTRY.fullmatch(text)
    if entry is None or not 0 < int(entry[4] or 1) <= PORT_MAX:
        raise ValueError("it is no network, no name and no path")
    port = None if entry[4] is None else int(entry[4])
    host = entry[3] or entry[1] + (entry[2] or "")
    network = _whole_network(host)
    if network is None and not _NAME.fullmatch(host):
        raise ValueError("it is no network, no name and no path")
    pattern = _pattern(host.lower().rstrip("."), ".") if network is None else None
    return _Place(network, pattern, port)


def _whole_network(text: str) -> Network | None:
    try:
        return network_of(text)
    except ValueError:
        return None


def _pattern(text: str, separator: str) -> re.Pattern[str]:
    one = f"[^{re.escape(separator)}]+"
    return re.compile(one.join(map(re.escape, re.split(r"\*+", text))))
