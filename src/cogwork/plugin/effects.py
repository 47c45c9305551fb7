"""What a node wants done: plain data, carried out by the container in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.terminus import Terminus
    from cogwork.dataplane.transport.ends import LinkEnd
    from cogwork.plugin.management import OnOutcome

__all__ = ("ACCEPTED", "Detach", "Effect", "Publish", "Report", "Send", "Settle")

ACCEPTED = 0x24
"""Descriptor code of the outcome `accepted` (AMQP 1.0 §3.4.2)."""


class Send(Struct, frozen=True):
    """Sends a message to an address.

    Attributes:
        address: Where to, as a client would name it.
        message: Encoded.
        on_outcome: Learns once, now or later, whether it was accepted; None sends it settled.
    """

    address: str
    message: bytes
    on_outcome: OnOutcome | None = None


class Publish(Struct, frozen=True):
    """Sends a message through an entry that the node holds itself.

    Attributes:
        entry: Whose outlets get it.
        message: Encoded.
    """

    entry: AddressEntry
    message: bytes


class Settle(Struct, frozen=True):
    """Settles a delivery that came in on a port.

    Attributes:
        source: Whom it came from.
        token: Which one.
        code: The outcome's descriptor code.
        state: The outcome encoded, where it says more than its code.
    """

    source: Terminus
    token: int
    code: int = ACCEPTED
    state: bytes | None = None


class Detach(Struct, frozen=True):
    """Ends a link, a consumer's or a publisher's.

    Attributes:
        link: The compiled end, as `subscribe` was given it, or a source of the node's entry.
        condition: Why, for the peer's program.
        description: Why, for people, and what would be right.
        info: What else the peer's program may want to know.
    """

    link: LinkEnd
    condition: Symbol
    description: str
    info: Mapping[str, object] | None = None


class Report(Struct, frozen=True):
    """Tells the container's log.

    Attributes:
        text: For people; no secrets and no message bodies.
        is_error: Whether something does not work and will not by itself.
        is_warning: Whether something does not work now, and may again by itself.
        kind: What many of such reports are about that come together, `streams are away`: one line
            then tells how many they are. Empty where each is to be told.
    """

    text: str
    is_error: bool = False
    is_warning: bool = False
    kind: str = ""


Effect = Send | Publish | Settle | Detach | Report
