"""What containers say to each other in the properties of open, begin and attach."""

from __future__ import annotations

from typing import Final

from cogwork.amqp.redirect import MESH
from cogwork.amqp.types import Symbol

__all__ = (
    "ANSWER",
    "CONSUMER",
    "CONTROL",
    "DATA",
    "DUPLICATE_LINK",
    "FORWARDED",
    "FRAME_BYTES",
    "FROM",
    "HOMED",
    "HOPS",
    "HOPS_MAX",
    "INCARNATION",
    "MARKS_REDELIVERED",
    "MESH",
    "MISSED",
    "MOVE",
    "NUMBER",
    "OTHER_CONTAINER",
    "OWNED",
    "PAST",
    "QUESTION",
    "REMOTE_CONSUMER",
    "TO",
    "VHOST",
)

CONTROL: Final = "control"
DATA: Final = "data"
"""What `MESH` says in open: what the connection is for."""

DUPLICATE_LINK: Final = Symbol("cogwork:duplicate-link")
"""The condition of a close: another link to the same container is kept."""

OTHER_CONTAINER: Final = Symbol("cogwork:other-container")
"""The condition of a close: the link's first connection is not here. Containers that share a port
are dialled by chance; the one that dials tries again until it meets the same one twice."""

NUMBER: Final = Symbol("cogwork:number")
"""In open: which link of the dialler's the connection belongs to. In begin: which tunnel of the
container's to that other one it is; a higher one takes the place of all before."""

INCARNATION: Final = Symbol("cogwork:incarnation")
"""In open and begin: the incarnation of the container that says it."""

FROM: Final = Symbol("cogwork:from")
TO: Final = Symbol("cogwork:to")
HOPS: Final = Symbol("cogwork:hops")
"""In begin: where a tunnel comes from, where it leads, and the containers it has passed."""

HOPS_MAX: Final = 64
"""No shortest path is longer; what goes in a circle while paths change ends here."""

VHOST: Final = Symbol("cogwork:vhost")
"""In attach: the virtual host whose address is meant."""

HOMED: Final = Symbol("cogwork:homed")
"""In attach: true, where the queue is one whose home is the container that is attached to."""

OWNED: Final = Symbol("cogwork:owned")
"""In attach: true, where the queue is a replicated one, which nobody makes by attaching to it."""

QUESTION: Final = Symbol("cogwork:question")
ANSWER: Final = Symbol("cogwork:answer")
"""In attach to a queue's owner: what is asked, a map with `ask`. In its answer: figures, a map."""

CONSUMER: Final = Symbol("cogwork:consumer")
"""In attach to a queue's owner: of a consumer of AMQP 0-9-1, a map: `exclusive`, `priority`; and
`fetch` of what takes one message (`basic.get`)."""

MARKS_REDELIVERED: Final = Symbol("cogwork:marks-redelivered")
"""A capability of an attach to a queue: the lowest bit of a message-format says that a consumer was
given the item before. The stored form of AMQP 0-9-1 has no other place for that."""

REMOTE_CONSUMER: Final = Symbol("cogwork:borrower")
"""In attach: the consumer that an upstream link feeds, by a name that outlives the link."""

FRAME_BYTES: Final = 32_768
"""The largest frame between containers: one that fits the first hop must fit all others."""

MOVE: Final = Symbol("cogwork:move")
"""In attach: the link brings items of a container that leaves; its value is that one's
incarnation."""

DURABILITY: Final = Symbol("cogwork:durability")
"""In attach, beside `MOVE`: how durable the items are; who keeps the queue less so takes none."""

PAST: Final = Symbol("cogwork:past")
"""In attach, beside `MOVE`: the monotonic clock of the container that leaves, in microseconds; when
its items came and are due is said by it. In the answer: true, where dead letters may say so."""

FORWARDED: Final = "$forwarded"
"""The target of a link that carries messages for private queues; earlier versions refuse it."""

MISSED: Final = Symbol("cogwork:missed")
"""In attach: what went by while the container that attaches had given the other one up: a map from
the patterns and addresses that the other one wanted to how many milliseconds ago that was last."""
