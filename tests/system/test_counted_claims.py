"""Claims whose answer was lost: what their worker hears when it comes back, and what is true."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import cogwork

from .ledgers import row
from .meshes import linked, meshed
from .proxy import FaultyProxy
from .served import SETTLE_TIMEOUT_S, within
from .stories import QUICKLY, has_told, story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.client import Consumer

    from .meshes import Member

QUEUE, DEAD = "work/q", "queue/dead"
CONFIGURATION = """
[[queue]]
address = "{queue}"
durability = "{durability}"
in_doubt_timeout_s = {in_doubt_s}
dead_letter = "{dead}"
"""
LATER: dict[str, object] = {"x-opt-delivery-delay": 3_600_000}
VOTERS = '[cluster]\nvoters = ["a", "b", "c"]\n'


@dataclass
class Worker:
    """A client at one container, which may go to another one, with an item in its hands.

    Attributes:
        owner: Whose queue the item is from.
        before: Its way to the owner.
        behind: Its way to another container.
    """

    owner: Member
    before: FaultyProxy
    behind: FaultyProxy
    client: cogwork.Client
    items: Consumer
    item: cogwork.Item

    async def claim(self) -> asyncio.Task[None]:
        """Claim the item; the claim is on the owner's disk, and the answer is swallowed."""
        self.before.hold_replies()
        claim = asyncio.create_task(accepted(self.item))
        await asyncio.to_thread(
            within, SETTLE_TIMEOUT_S, lambda: depth(self.owner) == 0, "the claim was counted"
        )
        async with cogwork.connect(self.owner.url) as client:
            # What comes behind it is durable, so the claim is.
            await client.publish(QUEUE, cogwork.Message("later", annotations=LATER))
        assert not claim.done()
        return claim

    def lose_all_ways(self) -> None:
        for way in (self.before, self.behind):
            way.refuse(refuses=True)
            way.cut()

    def come_back_elsewhere(self) -> None:
        self.behind.refuse(refuses=False)


async def accepted(item: cogwork.Item) -> None:
    await item.accept()


def depth(member: Member) -> int:
    return row(member.served, QUEUE)["depth"]


async def worker(stack: AsyncExitStack, owner: Member, other: Member) -> Worker:
    async with cogwork.connect(owner.url) as client:
        await client.publish(QUEUE, "job")
    before = await stack.enter_async_context(FaultyProxy(owner.url))
    behind = await stack.enter_async_context(FaultyProxy(other.url))
    urls = [before.url, behind.url]
    client = await stack.enter_async_context(cogwork.connect(urls, retry=QUICKLY))
    items = await stack.enter_async_context(client.consume(QUEUE, credit=1))
    item = await anext(items)
    await has_told(client)
    return Worker(owner, before, behind, client, items, item)


@contextmanager
def queued(
    tmp_path: Path, durability: str, names: str = "ab", in_doubt_s: float = 60.0
) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        kept = f'data_dir = "{tmp_path}/{name}"\n' if durability != "memory" else ""
        return kept + (VOTERS if durability == "replicated" else "")

    configuration = CONFIGURATION.format(
        queue=QUEUE, durability=durability, dead=DEAD, in_doubt_s=in_doubt_s
    )
    edges = [(one, other) for one in names for other in names if one < other]
    with meshed(tmp_path, names, edges, configuration, head=head) as members:
        linked(members.values())
        yield members


def restart(owner: Member, others: dict[str, Member]) -> None:
    owner.start()
    within(SETTLE_TIMEOUT_S, owner.listens, f"{owner.id} listens")
    linked(others.values())


def test_a_counted_claim_is_confirmed_after_a_kill_through_another_container(
    tmp_path: Path,
) -> None:
    with queued(tmp_path, "disk") as members:

        @story
        async def told() -> None:
            async with AsyncExitStack() as stack:
                here = await worker(stack, members["a"], members["b"])
                claim = await here.claim()
                here.lose_all_ways()
                members["a"].kill()
                await asyncio.to_thread(restart, members["a"], members)
                here.come_back_elsewhere()
                await claim
                assert here.item.stage == "settled"
                assert await asyncio.to_thread(depth, members["a"]) == 1, "what is delayed"

        told()


def test_a_counted_claim_is_in_doubt_while_its_queue_cannot_be_asked(tmp_path: Path) -> None:
    with queued(tmp_path, "disk", in_doubt_s=1.0) as members:

        @story
        async def told() -> None:
            async with AsyncExitStack() as stack:
                here = await worker(stack, members["a"], members["b"])
                claim = await here.claim()
                here.before.refuse(refuses=True)
                members["a"].kill()
                here.before.cut()
                with pytest.raises(cogwork.InDoubt) as caught:
                    await claim
                assert (caught.value.items, caught.value.stale) == ([here.item], [])
                assert here.item.stage == "in-doubt"
                with pytest.raises(cogwork.InDoubt):
                    await here.item.accept()
                await asyncio.to_thread(restart, members["a"], members)
                async with cogwork.connect(members["a"].url) as client:
                    await client.publish(QUEUE, "next")
                following = await anext(here.items)
                assert following.body == "next", "what was counted does not come again"
                await following.accept()

        told()


def test_what_was_forgotten_with_its_queue_is_in_doubt(tmp_path: Path) -> None:
    with queued(tmp_path, "memory") as members:

        @story
        async def told() -> None:
            async with AsyncExitStack() as stack:
                here = await worker(stack, members["a"], members["b"])
                claim = await here.claim()
                here.lose_all_ways()
                members["a"].kill()
                await asyncio.to_thread(restart, members["a"], members)
                here.come_back_elsewhere()
                with pytest.raises(cogwork.InDoubt):
                    await claim

        told()


def test_what_somebody_else_has_is_stale_after_a_kill(tmp_path: Path) -> None:
    with queued(tmp_path, "disk", in_doubt_s=0.5) as members:
        # Another one gets the item only where the queue redelivers.
        for member in members.values():
            member.configuration = member.configuration.replace(
                "[[queue]]", '[[queue]]\nin_doubt = "redeliver"'
            )
            member.kill()
            member.start()
        linked(members.values())

        @story
        async def told() -> None:
            async with AsyncExitStack() as stack:
                here = await worker(stack, members["a"], members["b"])
                here.lose_all_ways()
                members["a"].kill()
                await asyncio.to_thread(restart, members["a"], members)
                client = await stack.enter_async_context(cogwork.connect(members["a"].url))
                theirs = await stack.enter_async_context(client.consume(QUEUE, credit=1))
                again = await anext(theirs)
                assert (again.body, again.delivery_count) == ("job", 1)
                here.come_back_elsewhere()
                with pytest.raises(cogwork.StaleAttempt) as caught:
                    await here.item.accept()
                assert caught.value.items == [here.item]
                await again.accept()

        told()


def test_a_counted_claim_is_confirmed_by_the_next_owner(tmp_path: Path) -> None:
    with queued(tmp_path, "replicated", "abc") as members:
        within(SETTLE_TIMEOUT_S, lambda: owner_of(members, "a") is not None, "there is an owner")
        owner = owner_of(members, "a")
        assert owner is not None
        left = {name: each for name, each in members.items() if name != owner}
        other = next(iter(left))

        @story
        async def told() -> None:
            async with AsyncExitStack() as stack:
                here = await worker(stack, members[owner], members[other])
                claim = await here.claim()
                here.lose_all_ways()
                members[owner].kill()
                await asyncio.to_thread(
                    within,
                    SETTLE_TIMEOUT_S,
                    lambda: owner_of(left, other) in left,
                    "another one owns the queue",
                )
                here.come_back_elsewhere()
                await claim

        told()
        following = owner_of(left, other)
        assert following is not None
        assert depth(left[following]) == 1, "what is delayed"


def owner_of(members: dict[str, Member], at: str) -> str | None:
    """Who owns the queue, as one of the containers knows it."""
    found = json.loads(members[at].served.run("queue", "list", members[at].url, "--json"))
    owners = [each["owner"] for each in found if each["address"] == QUEUE]
    return owners[0] if owners else None
