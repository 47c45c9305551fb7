"""The table of the configuration for the security log."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = ("JOURNAL_SOCKET", "SECURITY_STREAM", "SecurityLogOptions")

SECURITY_STREAM = "$security"
"""The stream's name, without `stream/`: no wildcard of a permission reaches it."""

JOURNAL_SOCKET = "/run/systemd/journal/socket"

Text = Annotated[str, Meta(min_length=1)]


class SecurityLogOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[security_log]`: events that matter to security are written as lines of JSON.

    Attributes:
        to: Where they go.
        path: The file; or the socket of journald, where it is another than the machine's.
    """

    to: Literal["file", "journald", "stream"]
    path: Text | None = None
