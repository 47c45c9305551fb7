"""Replies that are kept under the key of their call, so that a repeated call runs nothing."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.message import MessageId
    from cogwork.rpc.serving.reply_sender import ReplySender

    Asker: TypeAlias = tuple[ReplySender, str | None, MessageId | None, Callable[[], object]]

__all__ = ("KeyedReplies",)

KEPT_MAX = 10_000
"""Replies that are kept at most; the oldest go first."""

WAITING_MAX = 100
"""Repeated calls that wait for one method's end; further ones hear nothing, and may come again."""

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of replies that are kept at most."""

KEPT_S = 600.0
"""How long a reply is kept: longer than anybody who repeats a call waits."""


class Kept:
    """One key.

    Attributes:
        reply: The reply; None while the method runs.
        waiting: Who else waits for it.
        since_s: When it came.
    """

    __slots__ = ("reply", "since_s", "waiting")

    def __init__(self, since_s: float) -> None:
        self.reply: bytes | None = None
        self.waiting: list[Asker] = []
        self.since_s = since_s


class KeyedReplies:
    """The last replies of a service, by key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Keep nothing yet.

        Args:
            clock: Returns seconds.
        """
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, key: tuple[str, str], asker: Asker) -> tuple[bool, bytes | None]:
        """Note a call.

        Args:
            key: The method, and the caller's key.
            asker: How the reply leaves, where it goes, what it is to name, and what settles the
                request then.

        Returns:
            Whether it is to be run, and the reply where there is one already. Neither: it runs,
            and the reply will be sent to this caller, too.
        """
        now_s = self._clock()
        self._drop_old(now_s)
        kept = self._kept.get(key)
        if kept is None:
            self._kept[key] = Kept(now_s)
            return True, None
        if kept.reply is None and len(kept.waiting) < WAITING_MAX:
            kept.waiting.append(asker)
        return False, kept.reply

    def finish(self, key: tuple[str, str], reply: bytes | None) -> list[Asker]:
        """Keep a reply, or, where there is none, forgets the key; return who else waits."""
        kept = self._kept.get(key)
        if kept is None:
            return []
        if reply is None:
            del self._kept[key]
        kept.reply = reply
        kept.since_s = self._clock()
        if reply is not None:
            self._size_bytes += len(reply)
            self._kept.move_to_end(key)
        waiting, kept.waiting = kept.waiting, []
        return waiting

    def _drop_old(self, now_s: float) -> None:
        for _ in range(len(self._kept)):
            key, kept = next(iter(self._kept.items()))
            is_full = len(self._kept) >= KEPT_MAX or self._size_bytes > KEPT_BYTES_MAX
            if kept.since_s >= now_s - KEPT_S and not is_full:
                return
            if kept.reply is None:  # it runs: there are no more of these than calls at once
                self._kept.move_to_end(key)
            else:
                self._size_bytes -= len(kept.reply)
                del self._kept[key]
