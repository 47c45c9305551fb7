"""The store: messages kept for consumers, each confirmed by at most one attempt.

Theory of operation. A store is an outlet of an address, and the feeder of its consumers' links.
What it takes becomes an item in its `QueueState` (`Enqueue` says how) and is answered at once: for
memory, taken is accepted. Its `Dispatcher` gives the items to consumers, its `Settlement` learns what
becomes of them.

Whatever goes back, or sets others free, is only gathered while a batch is scanned; the store's wake-up
(a port of its own) comes at the batch's end and has it served in order, once. So an item that is
lost with a connection does not go to the next link of the same dying connection.

Python sees no message. What a queue's node has to know (the dead) it finds in `take_exceptions`
when `handler.on_batch(store)` is called.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.commits import Commits
from cython.cimports.cogwork.dataplane.queue.state import is_choked
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE, UNKNOWN
from cython.cimports.cogwork.dataplane.transport.shipment import RELEASED, fill_verdict

from cogwork.dataplane.queue.settlement import ABANDONED, LEFT_IN_DOUBT, REJECTED_BY_CONSUMER
from cogwork.dataplane.queue.state import DROPPED, EXCEEDED, EXPIRED, OVERACQUIRED

__all__ = (
    "ABANDONED",
    "DROPPED",
    "EXCEEDED",
    "EXPIRED",
    "KEEP_CODE",
    "LEFT_IN_DOUBT",
    "OVERACQUIRED",
    "REJECTED_BY_CONSUMER",
    "SETTLE_CODE",
    "SOURCE_HASH",
    "STALE_CODE",
    "UNKNOWN_CODE",
    "Store",
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

KEEP_CODE, SETTLE_CODE, STALE_CODE, UNKNOWN_CODE = KEEP, SETTLE, REFUSE, UNKNOWN
"""What `claim` and `resume` return, as Python names it."""


class Store(Enqueue):
    """A queue's messages in memory, and their way to consumers.

    Attributes:
        shard: This store's number among those of its queue; the first part of every tag.
        inlet: The address whose held messages go on when there is room again.
        near_inlet: The same for what comes from other containers; None where that is no other.
    """

    def __init__(
        self,
        core,
        shard: int = 0,
        *,
        priorities: int = 10,
        delays: bool = True,
        is_ordered: bool = False,
        deduplication_window_s: float = 0.0,
        deduplication_count: int = 100_000,
    ):
        """Makes an empty store.

        Args:
            core: The core it belongs to.
            shard: Its number among the stores of its queue.
            priorities: Levels told apart, 1 to 10.
            delays: Whether a message may ask to be delivered later.
            is_ordered: Whether each group-id goes to one consumer at a time.
            deduplication_window_s: How long a message-id is remembered; 0 remembers none.
            deduplication_count: How many message-ids are remembered.
        """
        self._begin_admission(
            priorities, delays, is_ordered, deduplication_window_s, deduplication_count
        )
        Settlement.__init__(self, core)
        self.shard = shard
        self.dispatcher = Dispatcher(self, shard)

    def reopen(self) -> None:
        """Goes on after there was no room on the disk."""
        for link in list(self.dispatcher.consumers):
            if link.credit:
                self.dispatcher.on_ready(link)
        self.schedule()

    def clear(self) -> None:
        """Forgets its items, and all that it knows of earlier ones: another store has them now.

        Nothing of that is written down; consumers stay, and of their claims nothing is known.
        """
        self.drop_all()
        self.commits = Commits()
        self._forget_arrivals()

    def close(self) -> None:
        """Takes the store out of use; what it held is gone with it."""
        for link in list(self.dispatcher.consumers):
            self.dispatcher.remove(link)
        Settlement.close(self)

    # -- consumers

    def hold_consumer(self, item):
        return self.dispatcher.hold(item.consumer)

    def add_consumer(
        self,
        link,
        marks_received: bool = False,
        is_browser: bool = False,
        is_far: bool = False,
    ) -> None:
        """Feeds a link from now on.

        Args:
            link: With its selector set, where it has one.
            marks_received: Whether its client says `received` for what its application has.
            is_browser: Whether it gets copies and leaves the items where they are.
            is_far: Whether it is another container's, and gets what none of this one's can take.
        """
        self.dispatcher.add(link, marks_received, is_browser, is_far)

    def remove_consumer(self, link, is_over: bool = True) -> None:
        """Feeds a link no more; what is out at it stays so until it is settled or detached.

        Args:
            link: One that was added.
            is_over: Whether its consumer has gone; False where another container's may still be
                there, and only the way to it is broken.
        """
        if is_over:
            self.dispatcher.drop_leases(link)
        self.dispatcher.remove(link)

    def end_consumer(self, link, code: int = 0, state: bytes = None) -> None:
        """Feed a link no more that its consumer ended in order.

        What is out at it gets its source's default outcome at once.

        Args:
            link: One that was added; it is detached next.
            code: The descriptor code of the outcome that the source names; 0 where it names none,
                and what is out goes back uncounted.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        fill_verdict(cython.address(verdict), code if code else RELEASED, state)
        self.dispatcher.end(link, cython.address(verdict), code != 0)

    def keep_consumer(self, link) -> int:
        """Feed a link no more that its consumer may resume; what is out at it stays so.

        Args:
            link: One that was added; `OutgoingLink.leave` comes next.

        Returns:
            What `end_kept` or `lose_kept` has to be called with; 0 where nothing is out at it.
        """
        return self.dispatcher.keep(link)

    def end_kept(self, serial: int, code: int = 0, state: bytes = None) -> None:
        """Give a kept link up as `end_consumer` does; what has been resumed stays where it is."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), code if code else RELEASED, state)
        self.dispatcher.end_kept(serial, cython.address(verdict), code != 0)

    def lose_kept(self, serial: int) -> None:
        """Give a kept link up whose connection was lost: what is out at it may be in doubt."""
        self.dispatcher.end_kept(serial, cython.NULL, False)

    def serial_of(self, link) -> int:
        """Returns what a consumer is known by to `take_back`; 0 where it is none."""
        return self.dispatcher.serial_of(link)

    def holders(self) -> list:
        """Lists the consumers: link, whether another container's, whether items are out at it."""
        return self.dispatcher.holders()

    def take_back(self, serial: int) -> None:
        """Gives back what a consumer of another container has not got before its link broke.

        Args:
            serial: Its number; what it has by its own account has been resumed by its next link.
        """
        self.dispatcher.take_back(serial)

    def leased_to(self) -> set:
        """Returns the numbers of the consumers for which `take_back` may find something."""
        return self.dispatcher.leased_to()

    def on_ready(self, link):
        return self.dispatcher.on_ready(link)

    def resume(self, link, tags: list, handed=(), is_there: bool = False) -> list:
        """Gives a consumer that came back the attempts that it still has.

        They are sent again on its link, under the same tags, as soon as it gives credit.

        Args:
            link: One of this store's consumers.
            tags: Delivery-tags that its client holds unsettled.
            handed: Those of them that its application certainly has, where the consumer is another
                container's; else all are.
            is_there: Whether the link has the items already, from another container's store. They
                are not sent again, and what is said of them comes by `claim`.

        Returns:
            For each tag KEEP_CODE where that attempt goes on, SETTLE_CODE where its claim was
            confirmed, STALE_CODE where there is a later one or another was confirmed, UNKNOWN_CODE
            where nothing is known of it.
        """
        answers: list = []
        for tag in tags:
            if len(tag) != 16 or int.from_bytes(tag[:4], "big") != self.shard:
                answers.append(UNKNOWN)
                continue
            number = int.from_bytes(tag[4:12], "big")
            attempt = int.from_bytes(tag[12:], "big")
            answers.append(self.dispatcher.resume(link, number, attempt, tag in handed, is_there))
        return answers

    # -- time and the end of a batch

    def tick(self, now_s: float) -> None:
        """Lets time pass: expires, delivers what was delayed, decides over what is in doubt.

        Args:
            now_s: The monotonic clock. What is to be sent goes out with the next flush.
        """
        self.ticked_s = now_s
        self.items.restore()
        self.expire(now_s)
        self.pass_time(now_s)
        if self.items.ripen(now_s) or self.dispatcher.is_unfinished or self.dispatcher.departed:
            self.dispatcher.is_unfinished = False
            self.schedule()
        if self.has_refused and is_choked(self):
            self.inlet.serve_dead_letters()
            if self.near_inlet is not None:
                self.near_inlet.serve_dead_letters()

    @property
    def is_idle(self) -> bool:
        """Says whether `tick` would do nothing, whenever it came."""
        return self.is_at_rest() and not (self.dispatcher.is_unfinished or self.dispatcher.departed)

    def on_batch(self, port) -> None:
        """Serves what was gathered in a batch; called by the core at the wake-up."""
        self.dispatcher.sweep_departed()
        self.dispatcher.serve()
        if self.has_refused and self.is_ready():
            self.has_refused = False
            if self.inlet is not None:
                self.inlet.serve_held()
                self.inlet.renew_credit()
            if self.near_inlet is not None:
                self.near_inlet.serve_held()
                self.near_inlet.renew_credit()
        if (self.exceptions or self.unsent) and self.handler is not None:
            self.handler.on_batch(self)

    def counts(self) -> dict:
        """Counts the items by where they stand, and what has happened so far."""
        return {
            **Settlement.counts(self),
            "consumers": len(self.dispatcher.consumers),
            "in": self.stored,
            "out": self.dispatcher.sent,
            "redelivered": self.dispatcher.redelivered,
            "refused": self.refused,
            "malformed": self.malformed,
            "duplicates": self.duplicates,
            "durable-in-memory": self.durable_in_memory,
        }
