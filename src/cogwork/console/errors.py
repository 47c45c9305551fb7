"""What a view cannot go on from; the application turns each into a page or a banner."""

from __future__ import annotations

__all__ = ("ContainerAway", "SessionEnded", "WrongForm")


class ContainerAway(Exception):
    """The container does not answer at present; the client goes on connecting."""


class SessionEnded(Exception):
    """The container does not take this user any more: log in again."""


class WrongForm(Exception):
    """A form has a field that cannot be used, or lacks one; the text says which."""
