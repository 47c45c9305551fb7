"""What one side of a connection announces in its open and begins, and holds the peer to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = (
    "IDLE_TIMEOUT_S_MAX",
    "ConnectionSettings",
)

IDLE_TIMEOUT_S_MAX = 8_589_934
"""Half of it is announced, as milliseconds in 32 bits (AMQP 1.0 §2.7.1)."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What this side announces and enforces.

    Attributes:
        max_frame_size_bytes: The largest frame the peer may send.
        channel_max: The highest channel the peer may use.
        handle_max: The highest handle the peer may use on a session.
        session_window_frames: Frames a session's peer may send ahead.
        idle_timeout_s: Silence after which the peer is gone; 0 never.
    """

    max_frame_size_bytes: int = 32768
    channel_max: int = 255
    handle_max: int = 4095
    session_window_frames: int = 4096
    idle_timeout_s: float = 60.0
