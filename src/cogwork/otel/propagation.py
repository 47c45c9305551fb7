"""Where messages carry the context of a trace, as W3C Trace Context names it.

It is written into application-properties, as `traceparent` and `tracestate`: those are the headers
of AMQP 0-9-1, where instrumentations of its clients read and write the same names. Annotations of
the same names are read, too, which intermediaries may have added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry import propagate
from opentelemetry.propagators.textmap import Getter

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from cogwork.dataplane.message.messages import Message

__all__ = ("extracted", "injected")


class _Message(Getter["Message"]):
    """Reads fields of a context from a message."""

    def get(self, carrier: Message, key: str) -> list[str] | None:
        """Return what a message says of a field; nothing else than text is believed."""
        for entries in (carrier.properties, carrier.annotations):
            value = entries.get(key)
            if isinstance(value, str):
                return [str(value)]
        return None

    def keys(self, carrier: Message) -> list[str]:
        """List the fields of a message."""
        return [
            str(key) for entries in (carrier.properties, carrier.annotations) for key in entries
        ]


_GETTER = _Message()


def extracted(message: Message) -> Context:
    """Return the context that a message carries: an empty one where it carries none."""
    return propagate.extract(message, contexts.Context(), _GETTER)


def injected(context: Context) -> dict[str, str]:
    """Return the properties by which messages carry a context."""
    fields: dict[str, str] = {}
    propagate.inject(fields, context)
    return fields
