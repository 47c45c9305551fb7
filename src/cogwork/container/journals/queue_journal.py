"""A queue on disk, as a group of the write-ahead log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.journals.durable_queue import DurableQueue
from cogwork.container.journals.records import END
from cogwork.dataplane.queue.audit_events import AuditEvents
from cogwork.dataplane.queue.refusals import fault
from cogwork.dataplane.queue.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.journals.journals import QueueJournals
    from cogwork.container.journals.page_files import PageFiles
    from cogwork.container.journals.records import Replayed
    from cogwork.dataplane.core import Core

__all__ = ("QueueJournal", "StrandedQueue")


class QueueJournal(DurableQueue):
    """A queue on disk.

    Attributes:
        group: Its number in the log.
        begin_lsn: Where the newest complete account of it begins.
    """

    def __init__(
        self,
        owner: QueueJournals,
        name: tuple[str, str],
        options: Mapping[str, object],
        store: Store,
    ) -> None:
        super().__init__(*name, options, store)
        self.group = 0
        self.begin_lsn = 0
        self._owner = owner

    def write(self, kind: int, payload: bytes) -> None:
        """Have a record appended to the log."""
        if self.pager is not None:
            self.pager.written_bytes += len(payload)
        self._owner.append(self, kind, payload)

    def fail(self, error: Exception) -> None:
        """Stop, until a new start fills it from what is written."""
        self.problem = f"stopped by a fault, start the container anew: {error!r:.200}"
        self._owner.abandon(self)
        if self.journal is not None:
            self.journal.is_open = False
            self.journal.is_failed = True
            self.journal.failed_state = fault(self.problem)
            self.store.reopen()

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""
        self._owner.when_durable(call)

    def delete(self) -> None:
        """Give up all that it holds, for good."""
        self._owner.forget(self)


class StrandedQueue(QueueJournal):
    """A queue that is on disk and nowhere here, as it is written anew."""

    def __init__(
        self,
        owner: QueueJournals,
        group: int,
        replayed: Replayed,
        core: Core,
        files: PageFiles | None,
    ) -> None:
        begin = replayed.begin
        store = Store(core, begin.shard)
        store.keeps_dead = True
        if replayed.image.is_audited:
            store.audit_events = AuditEvents(store.items, begin.shard)
        super().__init__(owner, (begin.vhost, begin.address), begin.options, store)
        self.group = group
        self.files = files
        self.fill(replayed, core, lambda: None)  # its store does nothing that is to be written

    def write(self, kind: int, payload: bytes) -> None:
        """Have a record appended to the log; with the last one of its account it is done."""
        super().write(kind, payload)
        if kind == END:
            self.store.close()
