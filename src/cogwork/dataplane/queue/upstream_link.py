"""The link by which another container's shard sends items to a consumer of this one.

Theory of operation. An upstream is a link on which a shard sends to one consumer of this container as if
that had attached there. Its credit is what the consumer has to spare; items pass with the tag that
names their attempt, what the consumer says of them passes back as it was said, and only when the
shard's container settles is a claim confirmed. An item for which the consumer has no credit left is
released, uncounted: an item stays in its shard.

What the consumer has of it is kept with its `FederatedConsumer`, which outlives the link.
"""

import cython
from cython.cimports.cogwork.dataplane.addresses.entry import AddressEntry
from cython.cimports.cogwork.dataplane.addresses.holding import CLOSEST
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.transport.session_end import Session
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACQUIRED_BEFORE,
    NOWHERE,
    RELEASED,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ITEMS_MAX = cython.declare(uint32_t, 1500)
"""What a consumer has from one shard at most, where nothing else is said."""


class UpstreamLink(IncomingLink):
    """The link from one shard to one consumer.

    Attributes:
        federated: The consumer's side.
        container: The shard's container.
        returned: Items that came when the consumer had no credit left.
        owed: Items that will come again after a break.
        keeps_order: Whether an item that goes back takes those with it that were sent behind it,
            so that none of its group overtakes it.
        awaited: Items that will come which the client has from another container.
        items_max: What the consumer has by it at most: a frame names all of it after a break.
    """

    def __init__(self, session: Session, handle: int, federated: FederatedConsumer, container: str):
        """Make an upstream that has no credit yet.

        Args:
            session: The tunnel to the shard's container.
            handle: The handle this side sends its flows with.
            federated: The consumer's side.
            container: The shard's container.
        """
        IncomingLink.__init__(self, session, handle)
        self.federated = federated
        self.container = container
        self.items_max = ITEMS_MAX
        self.chain.first = self.chain.last = NOWHERE
        self.place = federated.seat(self)
        self.wants_tags = True
        self.entry = AddressEntry(session.core, "(upstream)", CLOSEST, None, None, True)
        self.entry.add_outlet(self)

    def is_ready(self):
        return True

    def take(self, s):
        """Give an item to the consumer, or back."""
        s.acquired = s.format & ACQUIRED_BEFORE != 0
        s.format &= ~ACQUIRED_BEFORE
        consumer: ConsumerEnd = self.federated.consumer
        if self.federated.expected and self.federated.resume(
            self, s, bytes_from(s.tag, s.tag_size)
        ):
            return 0
        if self.federated.broken and self.federated.take_again(
            self, cython.cast(uint32_t, s.token), bytes_from(s.tag, s.tag_size)
        ):
            return 0
        if self.is_withdrawing or consumer.detached or not consumer.is_ready():
            self.returned += 1
            if self.keeps_order:
                self.withdraw_credit()
            else:
                self.refresh(0)
            return self.reply(s.token, RELEASED, True)
        return self.federated.forward(self, s)

    def withdraw_credit(self):
        """Take the credit back, and give none until all has come that was sent on it."""
        if self.is_withdrawing:
            return 0
        self.is_withdrawing = True
        self.credit = 0
        self.drain = True
        return self.flow_later()

    def rest(self) -> None:
        """Take the credit back for good: `drain` is false when all has come that was sent on it."""
        self.is_resting = True
        if not self.is_withdrawing:
            self.credit = 0
            self.drain = True
            self.flow_later()

    def on_flow(self, f):
        IncomingLink.on_flow(self, f)
        if self.is_withdrawing and not self.drain:
            self.is_withdrawing = False
            self.federated.share_out()
        return 0

    def top_up(self):
        """Leave credit to `refresh`."""
        return 0

    def refresh(self, share):
        """Give the shard as much credit as the consumer spares it, by halves.

        What is to be sent again needs none of the consumer's: that has it already.
        """
        used: uint64_t = cython.cast(uint64_t, self.unsettled) + self.owed
        room: uint32_t = self.items_max - cython.cast(uint32_t, min(used, self.items_max))
        if self.detached or self.is_withdrawing or self.is_resting:
            return 0
        self.is_limited = share > room
        share = min(share, room) + self.owed
        if share == 0 and self.credit:
            self.credit = 0
            return self.flow_later()
        if share > self.credit and share - self.credit >= (share + 1) >> 1:
            self.credit = share
            return self.flow_later()
        return 0

    def confirm(self, first: int, last: int, code: int, state: bytes = None) -> None:
        """Confirm, or refuse, claims as the shard's container has settled them.

        Args:
            first: The first delivery-id on this link's session.
            last: The last one.
            code: The outcome's descriptor code.
            state: The outcome encoded, where it says more than its code.
        """
        items: RemoteItems = self.federated.remote_items
        for token in items.between(cython.address(self.chain), first, last):
            self.unsettled -= 1
            items.unlink(cython.address(self.chain), token)
            self.federated._confirm(token, code, state)
        if self.is_limited:
            self.federated.share_out()

    def detach(self) -> None:
        """End the link; what it brought stays with the consumer."""
        entry: AddressEntry = self.entry
        if self.detached:
            return
        self.federated.part(self)
        IncomingLink.detach(self)
        entry.remove_outlet(self)
        entry.close()
