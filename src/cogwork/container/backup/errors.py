"""What is wrong with a backup, or with where one is to be."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("BackupDamaged", "BackupError", "NoBackup", "UnknownFormat")


class BackupError(CogworkError):
    """A backup that cannot be made, or used."""

    def __init__(self, path: str, reason: str) -> None:
        """Say what is wrong.

        Args:
            path: Where.
            reason: What.
        """
        super().__init__(path, reason)
        self._text = f"{path}: {reason}"

    def __str__(self) -> str:
        return self._text


class NoBackup(BackupError):
    """There is none where one is expected."""


class BackupDamaged(BackupError):
    """A file is not what was written, or missing."""


class UnknownFormat(BackupError):
    """It was made by a later version."""
