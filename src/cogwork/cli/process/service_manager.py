"""What is told to a service manager that has started the container: systemd's protocol.

A service manager may want to hear every few seconds that the container is alive (`WatchdogSec=`).
It hears so from the event loop: where that stands still, it restarts the container.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket

__all__ = ("keep_telling", "tell_ready", "watchdog_interval_s")

log = logging.getLogger("cogwork")


def tell_ready() -> None:
    """Say that the container serves clients, where somebody wants to know (sd_notify(3))."""
    error = _tell(b"READY=1")
    if error is not None:
        log.warning("cannot notify the service manager of the start (NOTIFY_SOCKET): %s", error)


def watchdog_interval_s() -> float | None:
    """Return how often the service manager is to hear of this process (sd_watchdog_enabled(3)).

    Returns:
        Half of what it waits at most, in seconds; None if it does not ask, or asks another process.
    """
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    process = os.environ.get("WATCHDOG_PID", "")
    if not limit_us.isdecimal() or int(limit_us) == 0 or process not in ("", str(os.getpid())):
        return None
    return int(limit_us) / 2e6


async def keep_telling() -> None:
    """Tell the service manager that the event loop turns, as long as it wants to know."""
    interval_s = watchdog_interval_s()
    while interval_s is not None and _tell(b"WATCHDOG=1") is None:
        await asyncio.sleep(interval_s)


def _tell(state: bytes) -> OSError | None:
    """Send a state, and return what went wrong; nothing is sent where nobody listens."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return None
    place = f"\0{path[1:]}" if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.sendto(state, place)
        except BlockingIOError:  # it is behind, and hears of the next turn
            return None
        except OSError as error:
            return error
    return None
