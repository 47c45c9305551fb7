"""The tables of the configuration for telemetry and audits."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated

from msgspec import Meta, Struct

from cogwork.config.limits import Positive

__all__ = ("AUDIT_STREAM", "TELEMETRY_STREAM", "Audit", "Telemetry")

TELEMETRY_STREAM, AUDIT_STREAM = "$telemetry", "$audit"

EVERY_S = 10.0
"""A day of ten containers is less than 100,000 records."""

Text = Annotated[str, Meta(min_length=1)]


class Telemetry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[telemetry]`: the container appends what it counts to a stream.

    Attributes:
        stream: The stream's name, without `stream/`.
        every_s: How often.
    """

    stream: Text = TELEMETRY_STREAM
    every_s: Positive = EVERY_S


class Audit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[audit]]`: what happens to the items of some queues is appended to a stream.

    Attributes:
        queue: A queue's address, or a pattern with `*` and `#`.
        vhost: The virtual host that the queues are in; None is the default one.
        sample: The share of the items that are followed.
        stream: The stream's name, without `stream/`.
        digest: Whether the hash of each message's body is told, too.
    """

    queue: Text
    vhost: Text | None = None
    sample: Positive = 1.0
    stream: Text = AUDIT_STREAM
    digest: bool = False
