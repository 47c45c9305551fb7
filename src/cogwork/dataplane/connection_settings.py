"""What one side of a connection announces in its open and begins, and holds the peer to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("ConnectionSettings",)


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
