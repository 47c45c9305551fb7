"""Queues on disk that are more than memory may hold: what they need last lies in page files.

Theory of operation. All queues on disk together keep `queue_memory_bytes` of messages in memory.
After a turn each queue that changed is looked at: one that has more than its part writes a run of
its last items to a page file, in a thread, and takes them out of memory once that is durable. Until
then, and until its journal says where they are, the log has them. What consumers come near is read,
in a thread, too. A page that cannot be read stops its queue: nothing is passed over.

A file whose items have all left it is still named by the journal: by the records from its newest
account on. It goes once an account is complete that began after that. So a queue with pages writes
one each time it has written much, which is little beside the pages: what is in them is named only.
And after a restart, as places are counted anew, it writes one before it gives up anything more.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from cogwork.config.limits import QUEUE_MEMORY_BYTES
from cogwork.container.journals.page_files import PageFiles

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Container
    from pathlib import Path

    from cogwork.container.journals.page_file import BlockPlace
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.journal import Journal
    from cogwork.dataplane.queue.pages import Page
    from cogwork.dataplane.queue.restoration import Checkpoint
    from cogwork.dataplane.queue.store import Store

__all__ = ("Pager", "Paging")

RUN_BYTES = 8 << 20
"""What is written as one file at most: some forty a second at full speed."""

RUN_SHARE = 16
"""A run is this part of what all queues have in memory, where that is less."""

ACCOUNT_BYTES = 128 << 20
"""So much of its changes a queue with pages writes before it writes an account."""

RETRY_S = 1.0
"""After a run could not be written."""

THREADS = 2
"""One reads while the other waits for what it has written."""

log = logging.getLogger("cogwork")

T = TypeVar("T")


class PagedQueue(Protocol):
    """What a pager asks of its queue: a `QueueJournal` has it."""

    address: str
    store: Store
    journal: Journal | None
    checkpoint: Checkpoint | None
    problem: str | None

    def fail(self, error: Exception) -> None:
        """Take and give nothing any more."""


class Paging:
    """What the pagers of all queues share. Owned by the journals.

    Attributes:
        memory_bytes: What all queues on disk together keep in memory.
    """

    def __init__(self, core: Core) -> None:
        """Begin without a directory: no queue is paged.

        Args:
            core: Sends what follows from a page that has come.
        """
        self.core = core
        self.memory_bytes = QUEUE_MEMORY_BYTES
        self._folder: Path | None = None
        self._large: set[Pager] = set()
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, folder: Path, groups: Container[int]) -> None:
        """Page from now on.

        Args:
            folder: Where page files are.
            groups: The queues that there are, by their numbers in the log: what others left goes.
        """
        self._folder = folder
        for each in folder.iterdir() if folder.is_dir() else ():
            if each.name.isdecimal() and int(each.name) not in groups:
                shutil.rmtree(each, ignore_errors=True)

    def files_of(self, group: int) -> PageFiles | None:
        """Return a queue's files; None where there is no directory."""
        return None if self._folder is None else PageFiles(self._folder, group)

    @property
    def run_bytes(self) -> int:
        """What is written as one file."""
        return min(RUN_BYTES, self.memory_bytes // RUN_SHARE)

    def part_bytes(self, pager: Pager, size_bytes: int) -> int:
        """Return what a queue may have in memory: an equal part of those that have much.

        Args:
            pager: The queue's.
            size_bytes: What it has.
        """
        least = 2 * self.run_bytes
        if size_bytes > least:
            self._large.add(pager)
        else:
            self._large.discard(pager)
        return max(least, self.memory_bytes // max(1, len(self._large)))

    def forget(self, pager: Pager) -> None:
        """Take note that a queue has gone."""
        self._large.discard(pager)

    def run(self, call: Callable[[], T]) -> Future[T]:
        """Make a call in a thread."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "pages")
        return asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        """Begin nothing any more, and wait for what was begun."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


class Pager:
    """One queue's way to its page files.

    Attributes:
        written_bytes: What its journal has written since its newest account began.
    """

    def __init__(self, paging: Paging, queue: PagedQueue, files: PageFiles) -> None:
        """Have a queue paged whose items have been restored.

        Args:
            paging: What all share.
            queue: The queue.
            files: Its files.
        """
        self.written_bytes = 0
        self._paging = paging
        self._queue = queue
        self._files = files
        self._pages = queue.store.items.pages
        self._pages.on_wanted = self._fetch
        self._pages.read = self._read
        self._places: dict[int, list[BlockPlace]] = {}
        self._retired: list[int] = []
        self._doomed: list[int] = []
        self._next = 1
        self._retry_s = 0.0
        self._has_told = False
        self._has_account = True

    def begin(self, named: Container[int], *, has_account: bool) -> None:
        """Take over what is in the directory.

        Args:
            named: The files that the journal names: others go at once.
            has_account: Whether all that the journal says of places is of this life.
        """
        self._has_account = has_account
        in_use = self._pages.files()
        numbers = self._files.numbers()
        self._next = max(numbers, default=0) + 1
        self._retired = [each for each in numbers if each in named and each not in in_use]
        self._files.remove(each for each in numbers if each not in named)

    # -- out of memory

    def look(self) -> bool:
        """Write what is too much; return whether the queue is to write an account."""
        store, queue = self._queue.store, self._queue
        if queue.journal is None or queue.journal.is_failed:
            return False
        items = store.items
        size_bytes = items.size_bytes - self._pages.size_bytes
        part_bytes = self._paging.part_bytes(self, size_bytes)
        is_too_much = size_bytes > part_bytes and store.audit_events is None
        if is_too_much and self._has_account:
            self._page_out()
        released = self._pages.released
        if released:
            self._retired += released
            for each in released:
                self._places.pop(each, None)
            released.clear()
        if queue.checkpoint is not None:
            return False
        if is_too_much and not self._has_account:
            return True
        if not (self._pages.count or self._retired):
            return False
        much_bytes = ACCOUNT_BYTES + 2 * size_bytes
        retired_bytes = len(self._retired) * self._paging.run_bytes
        is_over = self._retired and not items.depth
        return bool(is_over or self.written_bytes > much_bytes or retired_bytes > much_bytes)

    def _page_out(self) -> None:
        queue = self._queue
        if self._pages.is_writing or time.monotonic() < self._retry_s:
            return
        assert queue.journal is not None
        blocks = self._pages.gather(queue.journal, self._paging.run_bytes)
        if not blocks:
            return
        number, self._next = self._next, self._next + 1
        level, index = self._pages.run_level, self._pages.index()
        written = self._paging.run(partial(self._files.write, number, level, blocks, index))
        written.add_done_callback(partial(self._written, number))

    def _written(self, number: int, written: Future[list[BlockPlace]]) -> None:
        journal = self._queue.journal
        if written.cancelled() or journal is None:
            self._pages.give_up()
            self._files.remove([number])
            return
        error = written.exception()
        if error is not None:
            self._pages.give_up()
            self._retry_s = time.monotonic() + RETRY_S
            if not self._has_told:
                self._has_told = True
                log.warning(
                    "queue %r keeps in memory what cannot be written to its page files: %s",
                    self._queue.address,
                    error,
                )
            return
        self._has_told = False
        self._places[number] = written.result()
        self._pages.settle(number, journal)
        if number not in self._pages.files():  # all of it was given out meanwhile
            self._places.pop(number, None)
            self._files.remove([number])

    # -- back into memory

    def _place_of(self, page: Page) -> BlockPlace:
        places = self._places.get(page.file)
        if places is None:
            places = self._places[page.file] = self._files.open(page.file).blocks
        return places[page.block]

    def _read(self, page: Page) -> bytes:
        return self._files.read(page.file, self._place_of(page))

    def _fetch(self, page: Page) -> None:
        self._paging.run(partial(self._read, page)).add_done_callback(partial(self._fetched, page))

    def _fetched(self, page: Page, read: Future[bytes]) -> None:
        queue = self._queue
        if read.cancelled() or queue.journal is None or queue.problem is not None:
            return
        try:
            queue.store.page_in(page, read.result())
        except Exception as error:  # whatever it is: the queue has an item that nobody can read
            log.exception("queue %r stops: cannot read its page files", queue.address)
            queue.fail(error)
            queue.problem = f"stopped, as a message of it cannot be read: {error}"
        self._paging.core.flush()

    # -- files that nobody needs

    def account_begun(self) -> None:
        """Take note that an account begins: it names no file that has nothing any more."""
        self.written_bytes = 0
        self._doomed += self._retired
        self._retired = []

    def account_ended(self, is_durable: bool) -> None:
        """Remove what the account does not name, once that is durable."""
        doomed, self._doomed = self._doomed, []
        if is_durable:
            self._has_account = True
            self._files.remove(doomed)
        else:
            self._retired += doomed

    def delete(self, is_durable: bool) -> None:
        """Remove all files, as the queue is deleted for good."""
        self._paging.forget(self)
        if is_durable:
            self._files.remove_all()
