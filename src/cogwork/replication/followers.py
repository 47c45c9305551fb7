"""Those in a container who follow the replica there: they are told when there may be more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Followers",)


class Followers:
    """Of one replica."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """There are none yet.

        Args:
            report: Takes what the operator should know.
        """
        self._report = report
        self._more: list[asyncio.Future[None]] = []
        self._watches: dict[asyncio.Future[None], Callable[[], object]] = {}

    def more(self) -> asyncio.Future[None]:
        """Return what is done when there may be more, or nothing more ever."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._more = [each for each in self._more if not each.done()]
        self._more.append(more)
        return more

    def watch(self, on_more: Callable[[], object]) -> asyncio.Future[None]:
        """Have something called when there is more; return what is done when that is over.

        It is over, too, when what is returned is cancelled.
        """
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watches[over] = on_more
        over.add_done_callback(self._end)
        return over

    def wake(self) -> None:
        """Have them look again."""
        if self._more:
            followers, self._more = self._more, []
            for more in followers:
                if not more.done():
                    more.set_result(None)
        for over, on_more in list(self._watches.items()):
            try:
                on_more()
            except Exception as error:  # whoever reads must not hold up who writes
                self._report(f"a reader failed: {error!r}")
                self._end(over)

    def restart(self) -> None:
        """Have those who watch begin anew: much may have come."""
        for over in list(self._watches):
            self._end(over)

    def send_away(self) -> None:
        """Have them read elsewhere."""
        self.wake()
        self.restart()

    def _end(self, over: asyncio.Future[None]) -> None:
        self._watches.pop(over, None)
        if not over.done():
            over.set_result(None)
