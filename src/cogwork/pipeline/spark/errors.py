"""What can be expected to go wrong between Spark and the mesh, each in one line."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("DataLoss", "JobFailed", "OptionError", "SessionError", "SinkError", "SourceError")


class SessionError(CogworkError):
    """No Spark session can be made here; the text says what to install or to change."""


class OptionError(CogworkError, ValueError):
    """An option of the source or the sink is unknown or makes no sense."""


class SourceError(CogworkError):
    """A stream cannot be read as asked."""


class DataLoss(SourceError):
    """Records that were asked for are not there any more, or never were."""


class SinkError(CogworkError):
    """Rows cannot be published as asked."""


class JobFailed(CogworkError):
    """A user's job ended with an error."""
