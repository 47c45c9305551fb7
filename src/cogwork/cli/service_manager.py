"""What is told to a service manager that has started the container: systemd's protocol."""

from __future__ import annotations

import logging
import os
import socket

__all__ = ("tell_ready",)

log = logging.getLogger("cogwork")


def tell_ready() -> None:
    """Says that the container serves clients, where somebody wants to know (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    place = f"\0{path[1:]}" if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(b"READY=1", place)
        except OSError as error:
            log.warning("NOTIFY_SOCKET: nobody can be told there of the start: %s", error)
