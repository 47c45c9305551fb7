"""One queue at all workers of a container: to who manages it, it is one.

Theory of operation. Each worker has a queue of its own with items of its own, and consumers of any
worker get them; so what is declared, deleted, counted or moved is that at each. A replicated queue
is the cluster's: it is declared once, and its items are where its owner is.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from cogwork.amqp.errors import Condition
from cogwork.cli.management.manager import Manager
from cogwork.client import LinkRefused, NotFound, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.client import Client

__all__ = ("COUNTS", "OUTCOMES", "Declared", "SharedQueue")

Row = dict[str, Any]

OUTCOMES = ("moved", "refused", "unconfirmed")
COUNTS = {"MOVE": OUTCOMES, "REDRIVE": (*OUTCOMES, "strangers")}
"""What is told of items; strangers are those among the refused that are no dead letters."""

CREATED = 201
REPLICATED = "replicated"

SLICE = 10_000
"""Items moved by one request: some tenths of a second, so that Ctrl-C and replies are prompt."""

LEARN_S = 0.3
"""So long others have to tell that they keep a queue on disk, too, once they hear of it."""

ONE_CLUSTER = "workers are one cluster where [cluster] names primaries"

NOT_OWNED = "nobody owns it yet: it takes items once a majority of its replicas answers"

AGREE_S = 2.0
"""So long workers and replicas have that all have just been told to, however busy they are."""

LOOK_S = 0.1
"""How often they are asked."""


class Declared(NamedTuple):
    """What has come of a declaration.

    Attributes:
        is_new: Whether a worker did not have the queue before.
        durability: How it is kept.
        problem: What they say of it; None where nothing is wrong.
    """

    is_new: bool
    durability: str
    problem: str | None


class _Holder(NamedTuple):
    """A worker that has the queue."""

    name: str
    manager: Manager
    row: Row

    @property
    def owns_it(self) -> bool:
        """Whether a replicated queue has its items here."""
        return bool(self.row["owner"] == self.name)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another container has its items."""
        return bool(self.row["owner"]) and not self.owns_it


class SharedQueue:
    """Asks all workers about a queue."""

    def __init__(self, workers: Mapping[str, Client], address: str) -> None:
        """Ask nothing yet.

        Args:
            workers: A connection to each, by its id; to one, where the container is alone.
            address: The queue's.
        """
        is_alone = len(workers) == 1
        self._managers = {
            name: Manager(client, "" if is_alone else name) for name, client in workers.items()
        }
        self._address = address

    # -- the queue

    async def declare(self, options: Mapping[str, object]) -> Declared:
        """Make it where it is not there.

        Args:
            options: As in `[[queue]]`.

        Raises:
            LinkRefused: A worker does not have it so.
        """
        is_new = False
        rows: dict[str, Row] = {}
        for name, manager in self._managers.items():
            reply = await manager.ask("CREATE", "queue", self._address, body=options)
            is_new |= reply.properties["statusCode"] == CREATED
            row: Any = reply.body
            rows[name] = row
            if row["durability"] == REPLICATED:
                break  # so it is there at all of them
        durability = next(iter(rows.values()))["durability"]
        is_alone = len(self._managers) == 1 and durability != REPLICATED
        until_s = time.monotonic() + (LEARN_S if is_alone else AGREE_S)
        while any(map(_is_open, rows.values())) and time.monotonic() < until_s:
            await asyncio.sleep(LOOK_S)  # others may not have heard of it yet
            for name in rows:
                rows[name] = await self._managers[name].get("READ", "queue", self._address)
        problems = dict.fromkeys(row["problem"] for row in rows.values() if row["problem"])
        if not problems and any(map(_is_open, rows.values())):
            problems[NOT_OWNED] = None
        lacking = await self._lacking(until_s) if durability == REPLICATED else []
        if lacking:
            problems[f"not there at {', '.join(lacking)}: {ONE_CLUSTER}"] = None
        return Declared(is_new, durability, "; ".join(problems) or None)

    async def _lacking(self, until_s: float) -> list[str]:
        """List the workers that do not hear of a replicated queue: each may be its own cluster."""
        while True:
            lacking = [
                name
                for name, manager in self._managers.items()
                if await _row(manager, self._address) is None
            ]
            if not lacking or time.monotonic() >= until_s:
                return lacking
            await asyncio.sleep(LOOK_S)

    async def delete(self) -> None:
        """Give it up, or leave it everywhere as long as it is used anywhere.

        Raises:
            LinkRefused: It is in use, or not there.
        """
        try:
            found = await self._known()
        except NotFound as nowhere:
            await self._withdraw(nowhere)
            return
        if len(self._managers) > 1:
            for manager in self._managers.values():
                await self._demand_unused(manager)
        for holder in found[:1] if _is_replicated(found) else found:
            await holder.manager.ask("DELETE", "queue", self._address)

    async def _withdraw(self, nowhere: NotFound) -> None:
        """Give up what the cluster has declared and nobody can have: whoever is asked knows.

        Raises:
            NotFound: Nothing is declared, either.
        """
        manager = next(iter(self._managers.values()))
        try:
            await manager.ask("DELETE", "queue", self._address)
        except NotFound:
            raise nowhere from None

    async def _demand_unused(self, manager: Manager) -> None:
        try:
            row = await manager.get("READ", "address", self._address)
        except NotFound:
            return
        if row["senders"] or row["receivers"]:
            raise manager.refused(
                LinkRefused,
                self._address,
                Condition.PRECONDITION_FAILED,
                f"{self._address!r:.200} is in use by {row['senders']} senders, "
                f"{row['receivers']} receivers",
            )

    async def _known(self) -> list[_Holder]:
        """Find the workers that know it.

        Raises:
            NotFound: None does.
        """
        found = []
        for name, manager in self._managers.items():
            row = await _row(manager, self._address)
            if row is not None:
                found.append(_Holder(name, manager, row))
        if not found:
            description = f"there is no queue {self._address!r:.200}"
            raise NotFound("", Condition.NOT_FOUND, description)
        return found

    # -- its items

    async def _holders(self) -> list[_Holder]:
        """Find the workers that have items of it, or may say why nobody here has any.

        Raises:
            NotFound: None knows it.
        """
        found = await self._known()
        if _is_replicated(found):
            return [each for each in found if each.owns_it] or found[:1]
        return found

    async def peek(self, count: int) -> list[Row]:
        """Look at its first items, of one worker after another.

        Args:
            count: At how many, at most.

        Returns:
            What is known of each; `worker` says whose it is where there are several.
        """
        items: list[Row] = []
        for holder in await self._holders():
            whose = {"worker": holder.name} if len(self._managers) > 1 else {}
            seen = 0
            while len(items) < count:
                wanted = {"index": seen, "count": count - len(items)}
                page = await holder.manager.get("PEEK", "queue", self._address, wanted)
                if not page:
                    break
                seen += len(page)
                items += [{**item, **whose} for item in page]
        return items

    async def purge(self) -> int:
        """Drop all items that no consumer holds; return how many."""
        purged = 0
        for holder in await self._holders():
            purged += (await holder.manager.get("PURGE", "queue", self._address))["purged"]
        return purged

    async def transfer(
        self, operation: str, count: int | None, target: str | None = None
    ) -> dict[str, int]:
        """Have items moved, of one worker after another.

        Args:
            operation: `MOVE` or `REDRIVE`.
            count: How many at most; None is all.
            target: Where to, where the operation takes that.

        Returns:
            What has become of how many.
        """
        done = dict.fromkeys(COUNTS[operation], 0)
        found = await self._holders()
        filled = [each for each in found if each.row["depth"]] or found[:1]
        if target is not None and len(self._managers) > 1:
            await self._provide(target, filled)
        for holder in filled:
            left = None if count is None else count - _taken(done)
            if left == 0:
                break
            part = await self._transfer(holder, operation, left, target)
            done = {key: done[key] + part[key] for key in done}
        return done

    async def _transfer(
        self, holder: _Holder, operation: str, count: int | None, target: str | None
    ) -> dict[str, int]:
        """Have items of one worker moved; a second round would meet what was refused again."""
        done = dict.fromkeys(COUNTS[operation], 0)
        if holder.is_elsewhere:  # its owner counts, and goes once through what is there
            asked = {"target": target} if count is None else {"count": count, "target": target}
            told = await holder.manager.get(operation, "queue", self._address, asked)
            return {key: int(told[key]) for key in done}
        depth = max(holder.row["depth"], 1)  # asked at least once, it tells what is wrong
        left = depth if count is None else min(count, depth)
        while left > 0:
            size = min(left, SLICE)
            asked = {"count": size, "target": target}
            part = await holder.manager.get(operation, "queue", self._address, asked)
            done = {key: done[key] + part[key] for key in done}
            left -= size
            if _taken(part) < size:
                break
        return done

    async def _provide(self, target: str, holders: Sequence[_Holder]) -> None:
        """Declare the target where items are to move and only another worker has it yet."""
        try:
            rows = {name: await _row(each, target) for name, each in self._managers.items()}
        except PermissionDenied:
            return  # who may but send there may not make it, either
        there = next((row for row in rows.values() if row is not None), None)
        if there is None or there["durability"] == REPLICATED:
            return
        for holder in holders:
            if rows[holder.name] is None:
                options = {"durability": there["durability"]}
                await holder.manager.ask("CREATE", "queue", target, body=options)


def _is_replicated(found: Sequence[_Holder]) -> bool:
    return bool(found[0].row["durability"] == REPLICATED)


def _taken(done: Mapping[str, int]) -> int:
    """Count the items that were taken from a queue, whatever became of them."""
    return sum(done[key] for key in OUTCOMES)


async def _row(manager: Manager, address: str) -> Row | None:
    """Return what a worker knows of a queue; None where it knows none."""
    try:
        row: Row = await manager.get("READ", "queue", address)
    except NotFound:
        return None
    return row


def _is_open(row: Row) -> bool:
    """Return whether something may yet come of a queue that was declared."""
    return row["problem"] is not None or (row["durability"] == REPLICATED and row["owner"] is None)
