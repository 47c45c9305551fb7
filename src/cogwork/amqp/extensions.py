"""What a container and its clients say beyond AMQP 1.0: names that both ends must spell alike."""

from __future__ import annotations

from cogwork.amqp.types import Symbol

__all__ = (
    "ANONYMOUS_RELAY",
    "CAUGHT_UP",
    "CLAIM_IN_DOUBT",
    "CONSUMER_LOST",
    "DELAYED_DELIVERY",
    "ESTABLISHMENT_FAILED",
    "EXCLUSIVE",
    "EXCLUSIVE_AGAIN",
    "LINK_ID",
    "MARKS_RECEIVED",
    "MESSAGES_MISSED",
    "NO_LOCAL",
    "OUT_OF_SEQUENCE",
    "RECORDS_LOST",
    "SELECTOR",
    "STALE_ATTEMPT",
    "STREAM",
    "STREAM_BEYOND",
    "STREAM_START",
    "STREAM_TRUNCATED",
    "TAKES_BACK",
)

ANONYMOUS_RELAY = Symbol("ANONYMOUS-RELAY")
"""A capability of a connection: a link to the null target takes messages to any address
(Using the Anonymous Terminus for Message Routing 1.0 §2.1)."""

DELAYED_DELIVERY = Symbol("DELAYED_DELIVERY")
"""A capability of a connection: queues heed `x-opt-delivery-time` and `x-opt-delivery-delay`."""

ESTABLISHMENT_FAILED = Symbol("amqp:connection-establishment-failed")
"""A property of an open, true: the close that says why follows. Clients that know it wait for that,
and report an error instead of a connection."""

TAKES_BACK = Symbol("cogwork:takes-back")
"""A capability of a connection: a sender's disposition `released`, not settled, asks for deliveries
back. Those that no queue and no consumer has had yet are released."""

SELECTOR = Symbol("apache.org:selector-filter:string")
NO_LOCAL = Symbol("apache.org:no-local-filter:list")
"""Descriptors of the filters that all brokers know."""

STREAM = Symbol("cogwork:stream")
"""A capability of a target: what is there is to be a stream, and else the link is refused."""

EXCLUSIVE = Symbol("cogwork:exclusive")
"""A capability of a source: nobody else is to receive there, and else the link is refused."""

EXCLUSIVE_AGAIN = Symbol("cogwork:exclusive-again")
"""A capability beside it: the client has held the address before its connection was lost. Another
container may not have noticed that yet, so only this one's receivers count."""

STREAM_START = Symbol("cogwork:stream-start")
"""The descriptor of a filter: where in a stream a receiver starts."""

STREAM_TRUNCATED = Symbol("cogwork:stream-truncated")
"""The descriptor of a filter: what to do where the start has been given up. And the condition of a
detach that says so."""

STREAM_BEYOND = Symbol("cogwork:stream-beyond")
"""The descriptor of a filter: what to do where the start is above the end."""

CAUGHT_UP = Symbol("cogwork:caught-up")
"""A capability that a stream's receiver desires: it is to be told when it has caught up."""

MARKS_RECEIVED = Symbol("cogwork:marks-received")
"""A capability that a queue's consumer desires: it says `received` for what its application has."""

CONSUMER_LOST = Symbol("cogwork:consumer-lost")
"""The condition of a detach by a container or gateway that received for a consumer: that one has
gone, and may have what it was given. Without it, nobody has."""

LINK_ID = Symbol("cogwork:link-id")
"""The property of the container's attach by whose value `$management` knows the link."""

STALE_ATTEMPT = Symbol("cogwork:stale-attempt")
"""The condition of a claim that comes too late: the item was given to somebody else."""

CLAIM_IN_DOUBT = Symbol("cogwork:claim-in-doubt")
"""The condition of a claim of which the queue cannot tell, or not any more, whether it counted."""

MESSAGES_MISSED = Symbol("cogwork:messages-missed")
"""The condition of a detach: a subscriber lacks messages that publishers were told are accepted."""

OUT_OF_SEQUENCE = Symbol("cogwork:out-of-sequence")
"""The condition of a stream's rejection: the message before this one, by its producer's count, has
not come."""

RECORDS_LOST = Symbol("cogwork:records-lost")
"""The condition of a detach: a stream's server has lost records that its reader was given."""
