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
"""Its addresses say what they name, and its plug-in (up to 3.13) has no dynamic sources. A source
`/topic/...` is a new queue `amq.gen-...`, bound to `amq.topic`. The plug-in leaves that queue
behind, so a policy has to let it expire (docs/oslo.md). And it breaks down over a drain
(`send_drained`; seen with 3.10.8)."""

ACTIVEMQ = Dialect(
    is_legacy=True,
    prefixes={
        "server_request_prefix": "queue://exclusive",
        "group_request_prefix": "queue://unicast",
        "broadcast_prefix": "topic://broadcast",
    },
    drains=False,
)
"""It makes what its addresses name, and has dynamic sources. A drain it does not answer while there
is nothing to be sent (seen with 6.1.6)."""

_DIALECTS = {
    "activemq": ACTIVEMQ,
    "qpid-cpp": LEGACY,
    "rabbitmq": RABBITMQ,
}


def dialect_of(product: str | None) -> Dialect:
    """Return what an intermediary wants.

    Args:
        product: The property of its open; None where there is none.
    """
    if product is None:
        return LEGACY
    return _DIALECTS.get(product.lower(), ROUTABLE)
