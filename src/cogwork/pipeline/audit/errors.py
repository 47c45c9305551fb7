"""What can be expected to go wrong with an audit, each in one line."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("AuditError",)


class AuditError(CogworkError):
    """What is asked for cannot be audited: the text says what is missing."""

    condition = "amqp:not-found"
