"""What can go wrong inside of Raft, beyond what every engine may answer."""

from __future__ import annotations

from cogwork.plugin.engine.errors import ConsensusError

__all__ = ("Malformed", "Violation")


class Malformed(ConsensusError):
    """Octets that came from another container are no message."""


class Violation(ConsensusError):
    """A message asks for what Raft never does: its sender has lost or invented state."""
