"""What keeps a message from being posted."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("BacklogFull", "MessageTooLarge")


class BacklogFull(CogworkError):  # it tells a state
    """More was posted than an outbox keeps."""


class MessageTooLarge(CogworkError, ValueError):
    """A message is larger than the other end takes."""
