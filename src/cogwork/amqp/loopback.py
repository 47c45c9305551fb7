"""Which hosts are the machine itself."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

__all__ = ("is_loopback",)

_SHORT = re.compile(r"127(\.\d{1,3}){1,2}", re.ASCII)
"""What the system's calls take for an address, with the middle left out: `127.1`."""


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, by its address; of the names only `localhost` is.

    Any other name leads wherever a name server says, also one that begins like an address.
    """
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return _SHORT.fullmatch(host) is not None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
