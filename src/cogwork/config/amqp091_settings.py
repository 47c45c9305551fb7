"""The table of the configuration for AMQP 0-9-1."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ("Amqp091Options",)

RABBITMQ_VERSION = "3.13.7"
"""Clients branch on it: kombu takes a prefetch count for that of a channel below 3.3, and others
look for what came with later versions. All that 3.13 has of the protocol is there."""

ShortText = Annotated[str, Meta(min_length=1, max_length=200)]


class Amqp091Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[amqp091]`: connections by AMQP 0-9-1, on the listeners that there are.

    Attributes:
        enabled: Whether they are taken.
        product: What clients are told that the broker is.
        version: Which version of it.
        cluster_name: What clients are told that the cluster is called; None is the container's id.
        max_returned_messages: How many returned messages may wait for one client to read them.
    """

    enabled: bool = True
    product: ShortText = "RabbitMQ"
    version: ShortText = RABBITMQ_VERSION
    cluster_name: ShortText | None = None
    max_returned_messages: Annotated[int, Meta(ge=1)] = 1000
