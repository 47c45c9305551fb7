"""The two ends of a link: source, target, coordinator (AMQP 1.0 §3.5, §4.5.1)."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from cogwork.amqp.composite import Composite, composite, field
from cogwork.amqp.kinds import BOOLEAN, FIELDS, STRING, SYMBOL, SYMBOLS, UINT, choice, nested
from cogwork.amqp.outcomes import OUTCOME, Outcome
from cogwork.amqp.types import Symbol, UInt

__all__ = (
    "COPY",
    "MOVE",
    "SOURCE",
    "TARGET",
    "Coordinator",
    "Durability",
    "ExpiryPolicy",
    "Source",
    "Target",
)

MOVE: Final = Symbol("move")
"""Distribution mode: a message goes to one of the links."""
COPY: Final = Symbol("copy")
"""Distribution mode: a message stays at the node; browsing."""


class Durability(IntEnum):
    """What of a terminus outlives its container (§3.5.5)."""

    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class ExpiryPolicy(StrEnum):
    """When the expiry timer of a terminus starts (§3.5.6)."""

    LINK_DETACH = "link-detach"
    SESSION_END = "session-end"
    CONNECTION_CLOSE = "connection-close"
    NEVER = "never"


_DURABILITY = choice("terminus-durability", UInt, Durability)
_EXPIRY_POLICY = choice("terminus-expiry-policy", Symbol, ExpiryPolicy)


@composite(0x28, "source")
class Source(Composite):
    """Where messages come from; `timeout` in seconds."""

    address: str | None = field(STRING, default=None)
    durable: Durability = field(_DURABILITY, default=Durability.NONE)
    expiry_policy: ExpiryPolicy = field(_EXPIRY_POLICY, default=ExpiryPolicy.SESSION_END)
    timeout: int = field(UINT, default=0)
    dynamic: bool = field(BOOLEAN, default=False)
    dynamic_node_properties: dict[Symbol, object] | None = field(FIELDS, default=None)
    distribution_mode: Symbol | None = field(SYMBOL, default=None)
    filter: dict[Symbol, object] | None = field(FIELDS, default=None)
    default_outcome: Outcome | None = field(OUTCOME, default=None)
    outcomes: tuple[Symbol, ...] = field(SYMBOLS, default=())
    capabilities: tuple[Symbol, ...] = field(SYMBOLS, default=())


@composite(0x29, "target")
class Target(Composite):
    """Where messages go; `timeout` in seconds. A null address is the anonymous relay's."""

    address: str | None = field(STRING, default=None)
    durable: Durability = field(_DURABILITY, default=Durability.NONE)
    expiry_policy: ExpiryPolicy = field(_EXPIRY_POLICY, default=ExpiryPolicy.SESSION_END)
    timeout: int = field(UINT, default=0)
    dynamic: bool = field(BOOLEAN, default=False)
    dynamic_node_properties: dict[Symbol, object] | None = field(FIELDS, default=None)
    capabilities: tuple[Symbol, ...] = field(SYMBOLS, default=())


@composite(0x30, "coordinator")
class Coordinator(Composite):
    """The target of a transaction controller: known, so that it can be refused by its name."""

    capabilities: tuple[Symbol, ...] = field(SYMBOLS, default=())


SOURCE = nested("a source", "source")
TARGET = nested("a target", "target", "coordinator")
