"""What is known of intermediaries, by the product that they name in their open.

An entry here holds only where the configuration leaves an option at its default. Routers, Cogwork
among them, need none: they take the routable notation and have dynamic sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ("Dialect", "dialect_of")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one kind of intermediary wants.

    Attributes:
        is_legacy: Whether it takes the notation with dots.
        prefixes: The options of prefixes, by name, that let it make the nodes by itself.
        reply_prefix: What addresses of replies begin with, where it has no dynamic sources.
        drains: Whether it takes a request to drain a link.
    """

    is_legacy: bool = False
    prefixes: dict[str, str] = field(default_factory=dict)
    reply_prefix: str | None = None
    drains: bool = True


ROUTABLE = Dialect()
LEGACY = Dialect(is_legacy=True)

RABBITMQ = Dialect(
    is_legacy=True,
    prefixes={
        "server_request_prefix": "/queue/exclusive",
        "group_request_prefix": "/queue/unicast",
        "broadcast_prefix": "/topic/broadcast",
    },
    reply_prefix="/topic/reply.",
    drains=False,
)
"""Its addresses say what they name. A source `/topic/...` is a queue of the link's own, which is
bound to `amq.topic` and goes with the link: that is what replies need, and its plug-in (up to 3.13)
has no dynamic sources. It also breaks down over a drain (`send_drained`, seen with 3.10.8)."""

ACTIVEMQ = Dialect(
    is_legacy=True,
    prefixes={
        "server_request_prefix": "queue://exclusive",
        "group_request_prefix": "queue://unicast",
        "broadcast_prefix": "topic://broadcast",
    },
)

_DIALECTS = {
    "activemq": ACTIVEMQ,
    "qpid-cpp": LEGACY,
    "rabbitmq": RABBITMQ,
}


def dialect_of(product: str | None) -> Dialect:
    """Returns what an intermediary wants.

    Args:
        product: The property of its open; None where there is none.
    """
    if product is None:
        return LEGACY
    return _DIALECTS.get(product.lower(), ROUTABLE)
