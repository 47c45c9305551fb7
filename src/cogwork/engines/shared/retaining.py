"""Has a stream give up now and then what retention does not keep; tells once where that fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError, reason_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("RETENTION_INTERVAL_S", "Retaining")

RETENTION_INTERVAL_S = 10.0


class Retaining:
    """A stream's retention at work, whatever was in its way before.

    Args:
        retain: Gives up what is not kept.
        is_away: Whether the server is known to be away, of which others tell.
        report: Takes what the operator should know.
        warn: Takes what the operator has to see to.
    """

    def __init__(
        self,
        retain: Callable[[], Awaitable[None]],
        is_away: Callable[[], bool],
        report: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self._retain = retain
        self._is_away = is_away
        self._report = report
        self._warn = warn
        self._fails = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """End it."""
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(RETENTION_INTERVAL_S)
            try:
                await self._retain()
            except ConsensusError as error:
                self._note_failure(reason_of(error))
            except Exception as error:  # a server's nonsense, too: it is tried again
                self._note_failure(repr(error))
            else:
                self._note_success()

    def _note_failure(self, reason: str) -> None:
        """Tell once that nothing is given up."""
        if not self._fails and not self._is_away():
            self._fails = True
            self._warn(
                "retention fails and the stream grows: "
                f"{reason.rstrip('.')}; retrying every {RETENTION_INTERVAL_S:g} s"
            )

    def _note_success(self) -> None:
        if self._fails:
            self._fails = False
            self._report("retention works again")
