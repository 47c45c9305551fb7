"""What can be expected to go wrong with analytics, each in one line."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("AnalyticsError",)


class AnalyticsError(CogworkError):
    """There is nothing to look at; the text says what is missing."""
