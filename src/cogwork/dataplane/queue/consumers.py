"""Those whom a store feeds, and whose turn it is."""

import cython
from cython.cimports.cogwork.dataplane.queue.chain import clear

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Consumer:
    """One link that a store feeds, and what is out at it."""

    def __cinit__(self):
        clear(cython.address(self.state.in_flight))
        clear(cython.address(self.state.owned_groups))
        clear(cython.address(self.state.waiting_groups))
        self.state.owner = cython.cast(cython.p_void, self)
        self.resumed = []


class Round:
    """The consumers of one priority that may take something, in turn."""

    def __init__(self, priority: cython.int = 0):
        """Start with nobody."""
        self.priority = priority

    def enter(self, consumer):
        """Give a consumer the last place in the round."""
        if consumer.is_active:
            return 0
        consumer.is_active = True
        self.count += 1
        if self.turn is None:
            consumer.next = consumer.prev = self.turn = consumer
            return 0
        consumer.next = self.turn
        consumer.prev = self.turn.prev
        consumer.prev.next = consumer
        self.turn.prev = consumer
        return 0

    def leave(self, consumer):
        """Take a consumer out of the round until it is ready again."""
        if not consumer.is_active:
            return 0
        consumer.is_active = False
        self.count -= 1
        if self.turn is consumer:
            self.turn = consumer.next if self.count else None
        consumer.prev.next = consumer.next
        consumer.next.prev = consumer.prev
        consumer.next = consumer.prev = None
        return 0

    def next_ready(self):
        """Return the consumer whose turn it is, and pass the turn on; None where none can take.

        Those whose links are not ready leave the round.
        """
        consumer: Consumer
        while self.count > 0:
            consumer = self.turn
            if consumer.link.is_ready():
                self.turn = consumer.next
                return consumer
            self.leave(consumer)
        return None
