"""A queue's store with its publisher, and what comes out of it."""

from __future__ import annotations

import time
from typing import Any

import peers
from text_messages import message, text_of

from cogwork.amqp.outcomes import Received
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store

RECEIVED = Received(section_number=0, section_offset=0)


class Queue:
    """A store behind an address, with one publisher and as many consumers as a test asks for."""

    def __init__(self, **options: Any) -> None:
        self.core = Core()
        self.store = Store(self.core, 7, **options)
        self.store.handler = self
        self.store.keeps_dead = True
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.dead: list[tuple[str, str, bytes | None, int]] = []
        self.publisher = self.peer()
        self.link = self.publisher.publisher(self.entry)

    def peer(self, **options: int) -> peers.Peer:
        return peers.Peer(self.core, **options)

    def send(self, *texts: str, settled: bool = False, **sections: object) -> None:
        for text in texts:
            self.publisher.send(self.link, message(text, **sections), settled=settled)

    def on_batch(self, store: Store) -> None:
        self.dead += [
            (why, text_of(data), error, failures)
            for why, data, error, failures in store.take_exceptions()
        ]

    def later(self, seconds: float) -> None:
        self.store.tick(time.monotonic() + seconds)
        self.core.flush()

    def count(self, name: str) -> int:
        counted = self.store.counts()[name]
        assert isinstance(counted, int)
        return counted
