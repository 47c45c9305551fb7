"""Items that other containers' shards lend to a consumer of this one.

Theory of operation. A loan is a link on which a shard sends to one consumer of this container as if
that had attached there. Its credit is what the consumer has to spare; items pass with the tag that
names their attempt, what the consumer says of them passes back as it was said, and only when the
shard's container settles is a claim confirmed. An item for which the consumer has no credit left is
released, uncounted: lending moves nothing.

What a consumer has is kept with its `Borrower` by the attempt's tag. So it outlives the link it came
by: after a break the next one presents the tags, what is sent again is recognised, and what the
consumer has said meanwhile is passed on.

A client that comes from another container presents tags of its own. Its attach is not answered until
the shards have been asked (`expect`, `begin`); what goes on is awaited, and until it has come again
all of the consumer's credit is for that.
"""

import cython
from cython.cimports.cogwork.dataplane.entry import AddressEntry
from cython.cimports.cogwork.dataplane.holding import CLOSEST
from cython.cimports.cogwork.dataplane.octets import bytes_from
from cython.cimports.cogwork.dataplane.session_end import Session
from cython.cimports.cogwork.dataplane.shipment import (
    ACCEPTED,
    LOST,
    RECEIVED,
    RELEASED,
    fill_verdict,
    state_of,
)
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Lent:
    """One item in a consumer's hands.

    Attributes:
        loan: The link it came by; None while that is broken.
        container: The shard's container.
        tag: Names the attempt.
        incoming_id: The delivery-id on the loan's session.
        outgoing_id: The delivery-id on the consumer's session.
        code: What the consumer has said of it; 0 for nothing.
        state: The same, encoded, where it says more than its code.
        settled: Whether the consumer has settled it.
        awaited: Whether the client has it from another container, and it has not come here yet.
    """


class Loan(IncomingLink):
    """The link from one shard to one consumer.

    Attributes:
        borrower: The consumer's side.
        container: The shard's container.
        returned: Items that came when the consumer had no credit left.
        owed: Items that will come again after a break.
        awaited: Items that will come which the client has from another container.
    """

    def __init__(self, session: Session, handle: int, borrower: Borrower, container: str):
        """Makes a loan that has no credit yet.

        Args:
            session: The tunnel to the shard's container.
            handle: The handle this side sends its flows with.
            borrower: The consumer's side.
            container: The shard's container.
        """
        IncomingLink.__init__(self, session, handle)
        self.borrower = borrower
        self.container = container
        self.numbers = {}
        self.wants_tags = True
        self.entry = AddressEntry(session.core, "(loan)", CLOSEST, None, None, True)
        self.entry.add_outlet(self)

    def is_ready(self):
        return True

    def take(self, s):
        """Gives an item to the consumer, or back."""
        consumer: OutgoingLink = self.borrower.consumer
        tag: bytes = bytes_from(s.tag, s.tag_size)
        if self.borrower.take_again(self, s, tag):
            return 0
        if consumer.detached or not consumer.is_ready():
            self.returned += 1
            self.refresh(0)
            return self.reply(s.token, RELEASED, True)
        return self.borrower.borrow(self, s)

    def top_up(self):
        """Leaves credit to `refresh`."""
        return 0

    def refresh(self, share):
        """Gives the shard as much credit as the consumer spares it, by halves.

        What is to be sent again needs none of the consumer's: that has it already.
        """
        if self.detached:
            return 0
        share += self.owed
        if share == 0 and self.credit:
            self.credit = 0
            return self.flow_later()
        if share > self.credit and share - self.credit >= (share + 1) >> 1:
            self.credit = share
            return self.flow_later()
        return 0

    def confirm(self, first: int, last: int, code: int, state: bytes = None) -> None:
        """Confirms, or refuses, claims as the shard's container has settled them.

        Args:
            first: The first delivery-id on this link's session.
            last: The last one.
            code: The outcome's descriptor code.
            state: The outcome encoded, where it says more than its code.
        """
        incoming_id: uint32_t = first
        left: uint32_t = cython.cast(uint32_t, last) - incoming_id + 1
        while left and self.numbers:
            number = self.numbers.pop(incoming_id, None)
            if number is not None:
                self.unsettled -= 1
                self.borrower._confirm(number, code, state)
            incoming_id += 1
            left -= 1

    def detach(self) -> None:
        """Ends the link; what it brought stays in the consumer's hands."""
        entry: AddressEntry = self.entry
        lent: Lent
        if self.detached:
            return
        for number in self.numbers.values():
            lent = self.borrower.lent.get(number)
            if lent is not None:
                lent.loan = None
                self.borrower.broken[lent.tag] = number
        self.numbers.clear()
        IncomingLink.detach(self)
        entry.remove_outlet(self)
        entry.close()


class Borrower(Terminus):
    """Stands between a consumer and its store: what credit the store has no use for goes to loans.

    Attributes:
        consumer: The consumer's link.
        store: Who feeds it first.
        loans: From other containers' shards.
        awaited: Items that the client has from another container and that have not come here yet.
    """

    def __init__(self, store: Terminus, consumer: OutgoingLink):
        """Has no loans yet.

        Args:
            store: Which feeds the consumer already.
            consumer: Its link.
        """
        self.store = store
        self.consumer = consumer
        self.loans = []
        self.lent = {}
        self.broken = {}
        consumer.core.register(self)
        consumer.feeder = self

    # -- credit

    def on_ready(self, link):
        return self.serve()

    def serve(self):
        """Lets the store and the loans use the consumer's credit."""
        if self.awaited == 0 and not self.is_pending:
            self.store.on_ready(self.consumer)
        return self.share_out()

    def has_waiting(self):
        return self.store.has_waiting()

    def share_out(self):
        """Shares the consumer's credit out among the loans."""
        loan: Loan
        count: uint32_t = cython.cast(uint32_t, len(self.loans))
        spare: uint32_t = self.consumer.credit
        share: uint32_t
        if self.consumer.queue_count or self.consumer.detached or self.is_pending:
            spare = 0
        for loan in self.loans:
            share = min(spare, loan.awaited) if self.awaited else (spare + count - 1) // count
            loan.refresh(share)
            spare -= share
            count -= 1
        return 0

    def add(self, loan: Loan) -> None:
        """Lets a shard lend."""
        self.loans.append(loan)
        self.share_out()

    def remove(self, loan: Loan) -> None:
        """Takes a loan out that has ended."""
        if loan in self.loans:
            self.loans.remove(loan)
            self.share_out()

    def refresh(self) -> None:
        """Looks again at what the consumer can take."""
        self.share_out()

    # -- items

    def borrow(self, loan, s):
        """Gives an item to the consumer, under the tag it came with."""
        lent: Lent = Lent()
        self.next_number += 1
        lent.loan = loan
        lent.container = loan.container
        lent.tag = bytes_from(s.tag, s.tag_size)
        lent.incoming_id = cython.cast(uint32_t, s.token)
        lent.outgoing_id = self.consumer.session.next_delivery_id
        self.lent[self.next_number] = lent
        loan.numbers[lent.incoming_id] = self.next_number
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = self.next_number
        return self.consumer.take(s)

    def take_again(self, loan, s, tag):
        """Recognises an item that the consumer has already; passes on what has been said of it."""
        lent: Lent
        incoming_id: uint32_t = cython.cast(uint32_t, s.token)
        if not self.broken:
            return False
        number = self.broken.pop(tag, None)
        lent = self.lent.get(number)
        if lent is None:
            return False
        if lent.awaited and not self.consumer.is_ready():
            # Its client took the credit back: left as it is, the shard will have to doubt it.
            self.broken[tag] = number
            return True
        lent.loan = loan
        lent.incoming_id = incoming_id
        loan.numbers[incoming_id] = number
        if lent.awaited:
            self.resume(lent, number, s)
            return True
        if loan.owed:
            loan.owed -= 1
        if lent.code:
            self._pass_back(lent)
            if lent.settled:
                loan.numbers.pop(incoming_id)
                del self.lent[number]
        return True

    def resolve_outcome(self, token, verdict):
        """Takes what the consumer says; what it has not settled is the shard's to confirm."""
        lent: Lent = self.lent.get(token)
        if lent is None:
            return REFUSE if verdict.code == ACCEPTED else SETTLE
        if verdict.code == LOST:
            # The consumer has gone, and its loans will: the shards know what that means.
            del self.lent[token]
            return SETTLE
        lent.code = verdict.code
        lent.state = state_of(verdict)
        lent.settled = verdict.settled
        self._pass_back(lent)
        if not verdict.settled:
            return KEEP
        if lent.loan is not None:
            lent.loan.numbers.pop(lent.incoming_id, None)
            del self.lent[token]
        return SETTLE

    def _pass_back(self, lent):
        """Says to the shard what the consumer said, if there is a way."""
        verdict: Verdict
        session: Session
        if lent.loan is None:
            return 0
        session = lent.loan.session
        fill_verdict(
            cython.address(verdict), lent.code, None if lent.code == RECEIVED else lent.state
        )
        session.settle(
            cython.address(session.to_sender),
            True,
            lent.incoming_id,
            cython.address(verdict),
            lent.settled,
        )
        if lent.settled:
            lent.loan.unsettled -= 1
        return 0

    def _confirm(self, number, code, state):
        lent: Lent = self.lent.pop(number, None)
        if lent is None or lent.settled or self.consumer.detached:
            return 0
        self.consumer.unsettled -= 1
        self.consumer.session.confirm(lent.outgoing_id, code, state)
        return 0

    # -- what the client has from another container

    def expect(self, container: str, tag: bytes) -> None:
        """Waits for an item; the consumer gets nothing until `begin`."""
        lent: Lent = Lent()
        self.is_pending = True
        self.next_number += 1
        lent.container = container
        lent.tag = tag
        lent.awaited = True
        self.lent[self.next_number] = lent
        self.broken[tag] = self.next_number
        self.awaited += 1

    def awaits(self, tag: bytes) -> bool:
        """Tells whether an item is awaited."""
        lent: Lent = self.lent.get(self.broken.get(tag))
        return lent is not None and lent.awaited

    def forget(self, tag: bytes) -> None:
        """Awaits an item no more."""
        if self.awaits(tag):
            del self.lent[self.broken.pop(tag)]
            self.awaited -= 1
            self.serve()

    def begin(self) -> None:
        """Lets items come: the client's attach is answered."""
        self.is_pending = False
        self.serve()

    def resume(self, lent, number, s):
        """Gives the client an item that it has from another container, so that it can settle it."""
        lent.awaited = False
        lent.outgoing_id = self.consumer.session.next_delivery_id
        if lent.loan.awaited:
            lent.loan.awaited -= 1
        self.awaited -= 1
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = number
        self.consumer.take(s)
        return self.serve()

    # -- breaks

    def tags_of(self, container: str) -> list:
        """Lists the tags of what the consumer has from a container whose loan is broken."""
        lent: Lent
        found: list = []
        for tag, number in self.broken.items():
            lent = self.lent.get(number)
            if lent is not None and lent.container == container:
                found.append(tag)
        return found

    def containers(self) -> list:
        """Lists the containers from which the consumer has something whose loan is broken."""
        lent: Lent
        found: list = []
        for number in self.broken.values():
            lent = self.lent.get(number)
            if lent is not None and lent.container not in found:
                found.append(lent.container)
        return found

    def close_tag(self, tag: bytes, code: int, state: bytes = None) -> None:
        """Confirms or refuses what a shard says is over, as it was asked after a break."""
        number = self.broken.pop(tag, None)
        if number is not None:
            self._confirm(number, code, state)

    def close(self) -> None:
        """Leaves the consumer to its store."""
        if self.consumer.feeder is self:
            self.consumer.feeder = self.store
        self.lent.clear()
        self.broken.clear()
        self.consumer.core.unregister(self)
