"""The options of every TCP socket: no delay, and a bound on how long a dead peer goes unnoticed.

Theory of operation. A peer that vanishes without a FIN (its machine lost power, a firewall forgot
the connection) is found out in two ways. Where nothing is under way, the kernel sends keep-alive
probes after half of the silence that is allowed, and gives up when the other half has passed
unanswered. Where sent bytes wait to be acknowledged, it sends no probe, and retransmits for a
quarter of an hour by default: `TCP_USER_TIMEOUT` (RFC 5482) bounds that by the same silence.

Linux counts a peer that acknowledges but reads nothing towards `TCP_USER_TIMEOUT` as well. So the
bound follows the idle time-out of the connection, which ends such a peer anyway.

AMQP's own idle time-out finds a dead peer too, but only while the process can look, and not where
it is switched off.
"""

from __future__ import annotations

import socket
from typing import Final

__all__ = ("SILENCE_S", "keep_alive_options", "set_tcp_options")

SILENCE_S: Final = 60.0
"""The silence that is allowed where a connection has no idle time-out of its own."""

PROBES: Final = 3
"""Probes that may stay unanswered: a network that loses one packet in ten loses no connection."""

KEEP_ALIVE_S_MAX: Final = 32_767
"""The most that Linux takes for the seconds before and between probes."""

USER_TIMEOUT_MS_MAX: Final = 2**31 - 1

_IDLE = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)
_INTERVAL = getattr(socket, "TCP_KEEPINTVL", None)
_COUNT = getattr(socket, "TCP_KEEPCNT", None)
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)
"""What the system calls the options; None where it does not have one."""


def set_tcp_options(sock: socket.socket, silence_s: float = 0.0) -> None:
    """Set the options of a TCP socket; a socket that listens hands them on to what it accepts.

    Args:
        sock: Of TCP: a Unix-domain socket has none of these options.
        silence_s: How long the peer may acknowledge nothing, in seconds; 0 stands for `SILENCE_S`.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in keep_alive_options(silence_s).items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def keep_alive_options(silence_s: float = 0.0) -> dict[int, int]:
    """Return the options of level `IPPROTO_TCP` that bound a peer's silence, with their values.

    Args:
        silence_s: How long the peer may acknowledge nothing, in seconds; 0 stands for `SILENCE_S`.
    """
    allowed_s = silence_s or SILENCE_S
    idle_s = _whole_seconds(allowed_s / 2)
    values = {
        _IDLE: idle_s,
        _INTERVAL: _whole_seconds((allowed_s - idle_s) / PROBES),
        _COUNT: PROBES,
        _USER_TIMEOUT: min(max(int(allowed_s * 1000), 1), USER_TIMEOUT_MS_MAX),
    }
    return {option: value for option, value in values.items() if option is not None}


def _whole_seconds(seconds: float) -> int:
    return min(max(int(seconds), 1), KEEP_ALIVE_S_MAX)
