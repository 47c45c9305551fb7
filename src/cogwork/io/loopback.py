"""Which hosts are this machine."""

from __future__ import annotations

from ipaddress import ip_address

__all__ = ("is_loopback",)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine by its address or name.

    Args:
        host: An address, or a name: one other than localhost may be anything.
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
