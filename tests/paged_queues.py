"""A store with a journal and page files that a test keeps in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kept_queues import KeptQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.dataplane.queue.journal_image import JournalImage
    from cogwork.dataplane.queue.pages import Block, Page

RUN_BYTES = 1500
"""Some ten small messages."""


@dataclass
class PageSource:
    """A page file."""

    level: int
    blocks: Sequence[Block]
    index: bytes

    def read(self, block: int) -> bytes:
        return self.blocks[block].data


class Files(dict[int, PageSource]):
    """Those of one queue, by their numbers."""

    def open(self, number: int) -> PageSource:
        return self[number]


class PagedQueue(KeptQueue):
    """A queue some of whose items are on disk.

    Attributes:
        wanted: The pages that are to be fetched.
    """

    def __init__(self, image: JournalImage | None = None, **options: Any) -> None:
        options.setdefault("files", Files())
        super().__init__(image, **options)
        self.wanted: list[Page] = []
        self.pages = self.store.items.pages
        self.pages.on_wanted = self.wanted.append
        self.pages.read = self._read
        self._blocks: list[Block] = []
        self._has_account = image is None

    def _read(self, page: Page) -> bytes:
        assert isinstance(self.files, Files)
        return self.files[page.file].read(page.block)

    def gather(self) -> bool:
        """Begin to write a run; say whether there is one."""
        if self.pages.is_writing:
            return False
        if not self._has_account:  # places are counted anew
            self.checkpointed()
            self._has_account = True
        self._blocks = self.pages.gather(self.journal, RUN_BYTES)
        return bool(self._blocks)

    def settle(self) -> None:
        """Have what is being written durable."""
        assert isinstance(self.files, Files)
        if self.pages.is_writing:
            number = len(self.files) + 1
            self.files[number] = PageSource(self.pages.run_level, self._blocks, self.pages.index())
            self.pages.settle(number, self.journal)

    def page_out(self) -> int:
        """Have all go to disk that may; return how many items are there."""
        while self.gather():
            self.settle()
        return self.pages.count

    def fetch(self, choose: Callable[[list[Page]], Page] = lambda pages: pages[0]) -> None:
        """Fetch what is wanted, until nothing is."""
        while self.wanted:
            page = choose(self.wanted)
            self.wanted.remove(page)
            self.store.page_in(page, self._read(page))
            self.core.flush()
