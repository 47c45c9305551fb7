"""A store with a journal, whose records a test keeps, and makes another store of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import peers
from text_messages import text_of

from cogwork.amqp.message import Data, Sections, encode_sections
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.audit_events import AuditEvents
from cogwork.dataplane.queue.journal import Journal
from cogwork.dataplane.queue.journal_image import JournalImage
from cogwork.dataplane.queue.restoration import Checkpoint, restore
from cogwork.dataplane.queue.store import Store

if TYPE_CHECKING:
    from cogwork.dataplane.queue.restoration import PageSources


class KeptQueue:
    """A store behind an address, with one publisher, and all that its journal wrote.

    Attributes:
        records: What went to the log, turn by turn.
        dead: What died.
        dead_dead_letters: What the store said of it.
        accepts_dead: Whether dead letters are accepted at once.
        redelivers: Whether what is in doubt is delivered again.
    """

    def __init__(
        self,
        image: JournalImage | None = None,
        *,
        accepts_dead: bool = True,
        redelivers: bool = False,
        is_audited: bool = False,
        waits_for_all: bool = True,
        delivers_ahead: bool = False,
        core: Core | None = None,
        files: PageSources | None = None,
        **options: Any,
    ) -> None:
        self.files = files
        self.dead: list[str] = []
        self.dead_letters: list[tuple[int, str, bytes, bytes | None, int, int]] = []
        self.accepts_dead = accepts_dead
        self.core = core or Core()
        self.options = options
        self.store = Store(self.core, 7, **options)  # whatever a test needs
        self.store.handler = self
        self.store.redelivers_in_doubt = self.redelivers = redelivers
        self.store.keeps_dead = True
        self.store.waits_for_all = waits_for_all
        self.store.delivers_ahead = delivers_ahead
        self.seen_max = 100 if "deduplication_window_s" in options else 0
        first = JournalImage(self.seen_max) if image is None else image
        self.journal = Journal(self.core, first.sequence_max, self.seen_max, first.seen)
        self.journal.held_partitions = first.held_partitions
        self.store.journal = self.journal
        if is_audited:
            self.store.audit_events = AuditEvents(self.store.items, self.store.shard)
        restore(self.store, first, files)
        if is_audited:
            self.journal.gathered(0)
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.records: list[bytes] = []
        self.birth_base = 0
        self.publisher = self.peer()
        self.link = self.publisher.publisher(self.entry)

    def peer(self) -> peers.Peer:
        return peers.Peer(self.core)

    def message(self, text: str, **sections: Any) -> bytes:
        return encode_sections(Sections(body=Data([text.encode()]), **sections))

    def send(self, *texts: str, **sections: object) -> None:
        for text in texts:
            self.publisher.send(self.link, self.message(text, **sections))

    def on_batch(self, store: Store) -> None:
        dead_letters = store.take_dead(1000)
        self.dead_letters += dead_letters
        self.dead += [text_of(message) for _, _, message, *_ in dead_letters]
        if self.accepts_dead:
            store.moved([number for number, *_ in dead_letters])

    def commit(self) -> None:
        """End a turn, and have it durable at once."""
        self.records += self.journal.take()
        self.core.release(self.core.close_barrier())

    def image(self, count: int | None = None) -> JournalImage:
        """What the first turns' records add up to."""
        image = JournalImage(self.seen_max)
        image.birth_base = self.birth_base
        for each in self.records[:count]:
            image.apply(each)
        return image

    def restarted(self, *, flushes: bool = True) -> Self:
        """Another store, of what this one wrote; its records begin with these."""
        if flushes:
            self.commit()
        again = type(self)(
            self.image(),
            accepts_dead=self.accepts_dead,
            redelivers=self.redelivers,
            waits_for_all=self.store.waits_for_all,
            delivers_ahead=self.store.delivers_ahead,
            files=self.files,
            **self.options,
        )
        again.records = list(self.records)
        again.birth_base = self.birth_base
        return again

    def checkpointed(self, part_bytes: int = 100) -> Self:
        """The same, with its records written anew."""
        self.commit()
        checkpoint = Checkpoint(self.store)
        self.birth_base = checkpoint.birth_base
        self.records = []
        while not checkpoint.is_finished:
            self.records.append(checkpoint.next_part(part_bytes))
        return self

    def count(self, name: str) -> int:
        counted = self.store.counts()[name]
        assert isinstance(counted, int)
        return counted

    def texts(self) -> list[str]:
        return [text_of(data) for data, _ in self.store.peek(1000)]

    def facts(self) -> list[dict[str, str | int | float | None]]:
        return [facts for _, facts in self.store.peek(1000)]
