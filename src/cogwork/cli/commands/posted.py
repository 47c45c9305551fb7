"""What `cogwork send` has posted: messages on their way, counted as their outcomes come."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from cogwork.client.publishing.outcome import OutcomeState, outcome_of

if TYPE_CHECKING:
    from cogwork.client import Publisher
    from cogwork.dataplane.client.dispatches import Post

__all__ = ("Posted", "Stalled")

PATIENCE_S = 3.0
"""After so long without an outcome, somebody at a terminal wants to know why nothing happens."""

NO_OUTCOME = "what was sent has no outcome yet"
NO_CONNECTION = "there is no connection"


class Stalled(TimeoutError):
    """For too long no message had an outcome."""


class Posted:
    """Messages that were posted one after another, and what became of them.

    Attributes:
        states: Counts the outcomes that have come, by their names.
        failure: Of the first message that was not accepted; None where all were.
    """

    def __init__(self, publisher: Publisher, no_credit: str, *, settled: bool) -> None:
        """Initialize it; it has posted nothing yet.

        Args:
            publisher: Open.
            no_credit: What is told of messages that wait for credit.
            settled: Whether nobody is asked for outcomes.
        """
        self.states: Counter[OutcomeState] = Counter()
        self.failure: Exception | None = None
        self._publisher = publisher
        self._no_credit = no_credit
        self._settled = settled
        self._under_way: set[Post] = set()
        self._ended: Exception | None = None
        self._time = asyncio.get_running_loop().time
        self._moved_s = self._time()
        self._all_done = asyncio.Event()

    def post(self, message: object) -> None:
        """Post one more."""
        post = self._publisher.post(message, settled=self._settled)
        if post.is_done:
            self._count(post)
        else:
            self._under_way.add(post)
            self._all_done.clear()
            post.on_done = self._note

    def _note(self, post: Post) -> None:
        """Take in that a message has an outcome, or never will, as its link has ended."""
        self._moved_s = self._time()
        self._under_way.discard(post)
        if post.failure is None:
            self._count(post)
        else:
            self._ended = post.failure
        if not self._under_way:
            self._all_done.set()

    def _count(self, post: Post) -> None:
        state = outcome_of(self._publisher.address, post.code, None).state
        self.states[state] += 1
        if state is not OutcomeState.ACCEPTED and self.failure is None:
            self.failure = post.error()

    async def settle(self, timeout_s: float | None) -> None:
        """Wait until all have their outcomes; say why, where none comes for a while.

        Args:
            timeout_s: How long none may come; None for as long as it takes.

        Raises:
            Stalled: None came for so long.
            CogworkError: The link has ended, or the connection.
        """
        has_told = False
        while self._under_way:
            quiet_s = self._time() - self._moved_s
            if timeout_s is not None and quiet_s >= timeout_s:
                raise Stalled(f"nothing was taken for {timeout_s:g} s: {self._reason}")
            if quiet_s >= PATIENCE_S and not has_told:
                has_told = True
                click.echo(f"cogwork: waiting: {self._reason}", err=True)
            limits = [None if has_told else PATIENCE_S, timeout_s]
            left_s = [limit_s - quiet_s for limit_s in limits if limit_s is not None]
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, default=None)):
                    await self._all_done.wait()
        if self._ended is not None:
            raise self._ended

    @property
    def _reason(self) -> str:
        if self._publisher.link is None:
            return NO_CONNECTION
        return self._no_credit if self._publisher.backlog else NO_OUTCOME

    def give_up(self) -> None:
        """Take back what was not sent; what was is in doubt, as nobody waits for it any more."""
        for post in self._under_way:
            post.on_done = None
            if not post.withdraw():
                self.states[OutcomeState.IN_DOUBT] += 1
        self._under_way.clear()
