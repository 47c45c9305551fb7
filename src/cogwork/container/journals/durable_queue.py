"""A queue whose changes are written down: what its log gives back, and what goes there."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from cogwork.container.journals.records import Begin
from cogwork.dataplane.queue.journal import Journal
from cogwork.dataplane.queue.journal_image import JournalImage
from cogwork.dataplane.queue.restoration import Checkpoint, restore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.journals.page_files import PageFiles
    from cogwork.container.journals.paging import Pager
    from cogwork.container.journals.records import Replayed
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.store import Store

__all__ = ("DurableQueue",)


class DurableQueue(ABC):
    """One queue, whatever its log is.

    Attributes:
        vhost: The queue's virtual host.
        address: Its address.
        options: By which it is declared again.
        store: Its items.
        journal: What its store writes to; None while it does not.
        checkpoint: What goes through its items, to write them anew; None while nothing does.
        problem: Why it does not work; None while nothing is wrong.
        files: What it has beyond memory; None where all of it is in memory.
        pager: What writes and reads them; None where nothing does.
    """

    def __init__(
        self, vhost: str, address: str, options: Mapping[str, object], store: Store
    ) -> None:
        self.vhost = vhost
        self.address = address
        self.options = options
        self.store = store
        self.journal: Journal | None = None
        self.checkpoint: Checkpoint | None = None
        self.problem: str | None = None
        self.files: PageFiles | None = None
        self.pager: Pager | None = None

    @property
    def seen_max(self) -> int:
        """How many message-ids it remembers; 0 where it remembers none."""
        count = self.options.get("deduplication_count")
        has_window = bool(self.options.get("deduplication_window_s"))
        return count if has_window and isinstance(count, int) else 0

    def fill(self, replayed: Replayed | None, core: Core, note: Callable[[], None]) -> Journal:
        """Give the store what was written of it, and a journal for what is to come.

        Args:
            replayed: What its log says; None where it says nothing yet.
            core: Whose output is held.
            note: Called once when the journal has something to take.
        """
        image = JournalImage(self.seen_max) if replayed is None else replayed.image
        if replayed is None:
            image.birth_base = secrets.randbits(31)
        journal = Journal(core, image.sequence_max, self.seen_max, image.seen)
        journal.held_partitions = image.held_partitions
        journal.on_dirty = note
        self.journal = self.store.journal = journal
        restore(self.store, image, self.files)
        if self.store.audit_events is not None:
            journal.gathered(0)
        return journal

    def begin(self, checkpoint: Checkpoint | None = None) -> bytes:
        """Return the payload of the record that an account begins with."""
        account = checkpoint or Checkpoint(self.store)
        options = dict(self.options)
        return Begin(
            self.vhost, self.address, self.store.shard, account.birth_base, options
        ).encode()

    @property
    def is_busy(self) -> bool:
        """Whether so much of it is under way that what comes now is better written together."""
        return False

    @property
    def has_backlog(self) -> bool:
        """Whether records wait until there is room for them where they go."""
        return False

    @abstractmethod
    def write(self, kind: int, payload: bytes) -> None:
        """Have a record written, behind all before it."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """Take and give nothing: what it did cannot be written, nor anything behind it."""
