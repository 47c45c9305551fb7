"""A browser session: a user, a connection of the user's own, and what was read by it."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.shared_queue import SharedQueue
from cogwork.client import ConnectError, Disconnected
from cogwork.console.errors import ContainerAway, SessionEnded, WrongForm
from cogwork.console.history import History

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from cogwork.client import Client

__all__ = ("Flash", "Session")

Row = dict[str, Any]

ANSWER_TIMEOUT_S = 8.0
PROBE_TIMEOUT_S = 0.3
"""Enough for a container that has just come back; a page does not wait for one that is away."""

SILENT = "the container does not answer"
LOST = "the connection to the container was lost"

ROWS_MAX = 100_000
KEPT_LEAST_S, KEPT_MOST_S = 1.0, 30.0
KEPT_RATIO = 50
"""A list that took a tenth of a second is read again after five: what sessions have open costs the
container at most about a fiftieth of its time each, but for lists that take longer than half a
second."""


class Flash(NamedTuple):
    """What the next page says once.

    Attributes:
        level: `done` or `problem`.
        text: What happened.
    """

    level: str
    text: str


class _Kept(NamedTuple):
    until_s: float
    rows: list[Row]


class Session:
    """One browser's.

    Attributes:
        token: What the cookie holds.
        form_token: What each form of this session holds, against forms of other sites.
        user: Who logged in; empty for nobody.
        client: The connection.
        history: Figures of the last minutes, for charts.
        began_s: When it began.
        used_s: When somebody last asked for a page.
    """

    def __init__(self, client: Client, user: str, clock: Callable[[], float]) -> None:
        """Begin with a connection that stands.

        Args:
            client: The connection.
            user: Who logged in; empty for nobody.
            clock: Tells the time.
        """
        self.token = secrets.token_urlsafe(32)
        self.form_token = secrets.token_urlsafe(32)
        self.user = user
        self.client = client
        self.history = History(clock)
        self.began_s = self.used_s = clock()
        self._clock = clock
        self._manager = Manager(client)
        self._flashes: list[Flash] = []
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._changes = 0
        self._tasks: set[asyncio.Task[list[Row]]] = set()
        self._reading: dict[tuple[str, ...], asyncio.Lock] = {}

    def demand_form(self, fields: Mapping[str, str]) -> None:
        """Check that a form is one of this session's.

        Raises:
            WrongForm: It is not.
        """
        given = fields.get("form_token", "")
        if not hmac.compare_digest(given.encode(), self.form_token.encode()):
            raise WrongForm("the form is out of date: load the page again")

    # -- what the next page says

    def flash(self, level: str, text: str) -> None:
        """Have the next page say something.

        Args:
            level: `done` or `problem`.
            text: What.
        """
        self._flashes.append(Flash(level, text))

    def take_flashes(self) -> list[Flash]:
        """Return what there is to be said, once."""
        flashes, self._flashes = self._flashes, []
        return flashes

    # -- the container

    @asynccontextmanager
    async def reaching(self, timeout_s: float = ANSWER_TIMEOUT_S) -> AsyncIterator[Client]:
        """Do something with the connection.

        Args:
            timeout_s: How long that may take.

        Yields:
            The connection, if it stands.

        Raises:
            ContainerAway: It does not stand, or the container did not answer in time.
            SessionEnded: The container does not take this user any more.
        """
        if not self.client.is_connected:
            await self._probe()
        try:
            async with asyncio.timeout(timeout_s):
                yield self.client
        except Disconnected as error:
            await self._probe()
            raise ContainerAway(LOST) from error
        except TimeoutError as error:
            raise ContainerAway(SILENT) from error

    async def _probe(self) -> None:
        """Find out whether the client still connects again.

        Raises:
            ContainerAway: It does, and there is no connection yet.
            SessionEnded: It does not.
        """
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await self._manager.ask("GET-MGMT-NODES", "")
        except Disconnected as error:
            raise SessionEnded(str(error)) from error
        except TimeoutError as error:
            raise ContainerAway(SILENT) from error

    async def get(self, operation: str, kind: str, name: str = "", **properties: object) -> Any:  # noqa: ANN401  # whatever the operation answers
        """Have something done; return the reply's body.

        Args:
            operation: What.
            kind: The type of entity.
            name: Which one.
            **properties: What else the operation takes.

        Raises:
            LinkRefused: It was not done.
        """
        async with self.reaching():
            return await self._manager.get(operation, kind, name, properties)

    async def change(self, operation: str, kind: str, name: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401  # whatever the operation answers
        """Have something changed.

        Args:
            operation: What.
            kind: The type of entity.
            name: Which one.
            body: What else the operation takes.

        Raises:
            LinkRefused: It was not done.
        """
        async with self.reaching():
            return (await self._manager.ask(operation, kind, name, body=body)).body

    @asynccontextmanager
    async def queue(self, address: str) -> AsyncIterator[SharedQueue]:
        """Do something with a queue."""
        async with self.reaching() as client:
            yield SharedQueue({"": client}, address)

    async def rows(self, kind: str, attributes: Sequence[str]) -> list[Row]:
        """Read all entities of a type, or return what was read a moment ago.

        Args:
            kind: Their type.
            attributes: Which of their attributes.
        """
        key = (kind, *attributes)
        async with self._reading.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and self._clock() < kept.until_s:
                return kept.rows
            began_s, changes = time.perf_counter(), self._changes
            async with self.reaching(timeout_s=2 * ANSWER_TIMEOUT_S):
                rows, _ = await self._manager.rows(kind, attributes, ROWS_MAX)
            took_s = time.perf_counter() - began_s
            keep_s = min(max(KEPT_LEAST_S, KEPT_RATIO * took_s), KEPT_MOST_S)
            if changes == self._changes:
                self._kept[key] = _Kept(self._clock() + keep_s, rows)
            return rows

    async def rows_soon(
        self, kind: str, attributes: Sequence[str], wait_s: float | None
    ) -> list[Row] | None:
        """Read the same, or return None where that takes long; whoever asks next gets it.

        Args:
            kind: Their type.
            attributes: Which of their attributes.
            wait_s: How long to wait; None for as long as it takes.
        """
        reading = asyncio.create_task(self.rows(kind, attributes))
        self._tasks.add(reading)
        reading.add_done_callback(self._note_read)
        done, _ = await asyncio.wait({reading}, timeout=wait_s)
        return reading.result() if done else None

    def _note_read(self, reading: asyncio.Task[list[Row]]) -> None:
        """Let go of a task; what is wrong is told to whoever asks next."""
        self._tasks.discard(reading)
        if not reading.cancelled():
            reading.exception()

    async def close(self) -> None:
        """Close the connection."""
        for each in list(self._tasks):
            each.cancel()
        with suppress(ConnectError):
            await self.client.close()

    def forget(self) -> None:
        """Have lists read again, those too that are being read: something has changed."""
        self._changes += 1
        self._kept.clear()
