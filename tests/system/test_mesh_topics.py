"""Topics over five containers, while containers and links fail and patterns change.

Containers are killed, stopped and started again; links are cut, closed, refused, stalled without a
word, and removed and added by management; subscribers come, go, bind and unbind: all by one seed.

In quiet periods every message is accepted, and every subscriber gets exactly one copy, in each
publisher's order. In the disturbed ones nothing comes twice or out of order, and what was answered
accepted reaches every subscriber that stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.client import ClientError, Retry

from .cables import BOTH, CONTROL, DATA, Cable, Cables
from .meshes import HEARTBEAT_S, Member, meshed
from .served import READY_TIMEOUT_S
from .topic_clients import NEWS, PATTERNS, Publisher, Subscriber

if TYPE_CHECKING:
    from pathlib import Path

Edge = tuple[str, str]

RING = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c3", "c4"), ("c4", "c0")]
CHORDS = [("c0", "c2"), ("c1", "c3")]
IDS = [f"c{number}" for number in range(5)]
SUBSCRIBERS = 20
CYCLES = int(os.environ.get("COGWORK_MESH_CYCLES", "1"))
DISTURBED_S = 4.0
REFUSED_S = 1.2
"""No longer, for then whoever dials in vain makes pauses that are longer than the one below."""

STALLED_S = 2.5
CONVERGED_S = 8 * HEARTBEAT_S
"""After it, containers that run know of each other again."""

QUIET_S = 1.0
SENT_MIN = 5
"""So many a quiet second, of 250 that were due, however busy the machine is with other things."""


class Story:
    """What happens, as a seed says."""

    def __init__(self, members: dict[str, Member], cables: Cables, seed: int) -> None:
        self.members = members
        self.cables = cables
        self.chance = random.Random(seed)
        self.publishers = [
            Publisher(member, random.Random(self.chance.random()), is_named=at % 2 == 1)
            for at, member in enumerate(members.values())
        ]
        self.subscribers: list[Subscriber] = []
        self.present: dict[Subscriber, asyncio.Task[None]] = {}
        self.quiet: list[tuple[float, float]] = []
        self.events: list[str] = []
        self.counts: Counter[str] = Counter()
        self._starting: set[str] = set()

    async def run(self) -> None:
        """Run all cycles."""
        tasks = [asyncio.create_task(each.run()) for each in self.publishers]
        try:
            for _ in range(CYCLES):
                await self._come_and_go()
                await self._be_quiet()
                await self._disturb()
            await self._come_and_go()
            await self._be_quiet()
        finally:
            for task in (*tasks, *self.present.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self.present.values(), return_exceptions=True)

    async def _come_and_go(self) -> None:
        """Let some subscribers leave, others come, and wait until they are known."""
        for subscriber, task in list(self.present.items()):
            leaves = self.chance.random() < 0.3
            if leaves or task.done():
                task.cancel()
                del self.present[subscriber]
        while len(self.present) < SUBSCRIBERS:
            member = self.chance.choice(list(self.members.values()))
            subscriber = Subscriber(member, self.chance.choice((*PATTERNS, NEWS)))
            self.subscribers.append(subscriber)
            self.present[subscriber] = asyncio.create_task(subscriber.run())
        async with asyncio.timeout(READY_TIMEOUT_S):
            while any(each.is_coming for each in self.present):
                await asyncio.sleep(0.02)
        await asyncio.sleep(CONVERGED_S)
        for subscriber in self.present:
            for each in subscriber.bindings:
                each.known_s = min(each.known_s, time.monotonic())

    async def _be_quiet(self) -> None:
        began_s = time.monotonic()
        await asyncio.sleep(QUIET_S)
        self.quiet.append((began_s, time.monotonic()))
        await asyncio.sleep(0.3)

    async def _disturb(self) -> None:
        """Do all kinds of things to containers, links and subscribers; all stand at the end."""
        until_s = time.monotonic() + DISTURBED_S
        # Each has a chance of its own: how long one takes changes nothing for the others.
        chances = [random.Random(self.chance.random()) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._disturb_containers(chances[0], until_s))
            group.create_task(self._disturb_links(chances[1], until_s))
            group.create_task(self._disturb_subscribers(chances[2], until_s))
        self.cables.heal()
        await self._restore_links()

    async def _disturb_containers(self, chance: random.Random, until_s: float) -> None:
        """Kill and stops containers, one after the other."""
        while time.monotonic() < until_s:
            member = chance.choice(list(self.members.values()))
            pause_s = chance.uniform(0.1, 1.5)
            if chance.random() < 0.5:
                self._note("kill", f"{member.id}, start it after {pause_s:.2f} s")
                member.kill()
                await asyncio.sleep(pause_s)
                await self._start(member)
            else:
                self._note("stop", f"{member.id} for {2 * pause_s:.2f} s")
                member.signal(signal.SIGSTOP)
                await asyncio.sleep(2 * pause_s)
                member.signal(signal.SIGCONT)
            await asyncio.sleep(chance.uniform(0.0, 0.8))

    async def _start(self, member: Member) -> None:
        """Start a container with its links whole.

        One that starts and reaches nobody takes messages for itself alone: that is promised only
        for the subscribers that the container knows.
        """
        self._starting.add(member.id)
        self.cables.heal(member.id)
        member.start()
        until_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < until_s:
            with contextlib.suppress(ClientError, OSError):
                async with cogwork.connect(member.url, retry=Retry(give_up_after_s=0.0)):
                    break
            await asyncio.sleep(0.02)
        self._starting.discard(member.id)

    async def _disturb_links(self, chance: random.Random, until_s: float) -> None:
        """Cut, refuses, stalls and removes links, several at a time."""
        async with asyncio.TaskGroup() as group:
            while time.monotonic() < until_s:
                one, other = chance.choice(RING + CHORDS)
                edge = (one, other) if chance.choice((True, False)) else (other, one)
                faults = (self._cut, self._refuse, self._stall, self._remove, self._isolate)
                does = chance.choice(faults)(edge, random.Random(chance.random()))
                if self._starting.isdisjoint(edge):
                    group.create_task(does)
                else:
                    does.close()
                await asyncio.sleep(chance.uniform(0.1, 0.9))

    async def _cut(self, edge: Edge, chance: random.Random) -> None:
        """Break one of a link's connections, or both; it may be dialled again at once."""
        roles = chance.choice(((DATA,), (CONTROL,), BOTH))
        is_reset = chance.random() < 0.5
        self._note("cut", f"{_named(edge)} {roles}, {'reset' if is_reset else 'closed'}")
        for cable in self.cables.between(*edge):
            cable.cut(roles, is_reset=is_reset)

    async def _refuse(self, edge: Edge, chance: random.Random) -> None:
        """Break a link, and let it not be dialled again for a while."""
        pause_s = chance.uniform(0.1, REFUSED_S)
        self._note("refuse", f"{_named(edge)} for {pause_s:.2f} s")
        await self._break(self.cables.between(*edge), pause_s)

    async def _isolate(self, edge: Edge, chance: random.Random) -> None:
        """Break all links of a container for a while, or let nothing pass on them."""
        container, is_silent = edge[0], chance.random() < 0.5
        pause_s = chance.uniform(0.1, STALLED_S if is_silent else REFUSED_S)
        how = "stalled" if is_silent else "refused"
        self._note("isolate", f"{container}, {how} for {pause_s:.2f} s")
        cables = [each for pair, each in self.cables.cables.items() if container in pair]
        if not is_silent:
            await self._break(cables, pause_s)
            return
        for cable in cables:
            cable.stall(BOTH, (True, False))
        await asyncio.sleep(pause_s)
        for cable in cables:
            cable.heal()

    async def _break(self, cables: list[Cable], pause_s: float) -> None:
        for cable in cables:
            cable.refuse()
            cable.cut(BOTH, is_reset=True)
        await asyncio.sleep(pause_s)
        for cable in cables:
            cable.heal()

    async def _stall(self, edge: Edge, chance: random.Random) -> None:
        """Let nothing pass on a link for a while, without a word, perhaps one way only."""
        roles = chance.choice(((DATA,), (CONTROL,), BOTH, BOTH))
        ways = chance.choice(((True,), (False,), (True, False), (True, False)))
        pause_s = chance.uniform(0.1, STALLED_S)
        self._note("stall", f"{_named(edge)} {roles} {ways} for {pause_s:.2f} s")
        near, far = self.cables.between(*edge)
        near.stall(roles, ways)
        far.stall(roles, [not each for each in ways])
        await asyncio.sleep(pause_s)
        for cable in (near, far):
            cable.heal()

    async def _remove(self, edge: Edge, chance: random.Random) -> None:
        """Remove a link at both ends, as people do, and add it again after a while."""
        pause_s = chance.uniform(0.1, REFUSED_S)
        self._note("remove", f"{_named(edge)} for {pause_s:.2f} s")
        both = (edge, edge[::-1])
        await asyncio.gather(*(self._change_link("DELETE", *each) for each in both))
        await asyncio.sleep(pause_s)
        await asyncio.gather(*(self._change_link("CREATE", *each) for each in both))

    async def _change_link(self, operation: str, near: str, far: str) -> None:
        """Add or remove a link where the container runs."""
        name = f"127.0.0.1:{self.cables.ports[near, far]}"
        retry = Retry(give_up_after_s=0.0)
        with contextlib.suppress(ClientError, OSError):
            async with cogwork.connect(self.members[near].url, retry=retry) as client:
                await client.manage(operation, {"type": "org.cogwork.link", "name": name})
                self.counts[f"link {operation}"] += 1

    async def _restore_links(self) -> None:
        """Add what could not be added while its container was dead or stopped."""
        for one, other in RING + CHORDS:
            await self._change_link("CREATE", one, other)
            await self._change_link("CREATE", other, one)

    async def _disturb_subscribers(self, chance: random.Random, until_s: float) -> None:
        """Bind and unbinds patterns on the way."""
        async with asyncio.TaskGroup() as group:
            while time.monotonic() < until_s:
                subscriber = chance.choice(list(self.present))
                self.counts["rebind"] += 1
                group.create_task(subscriber.rebind(chance.choice(PATTERNS)))
                await asyncio.sleep(chance.uniform(0.05, 0.3))

    def _note(self, kind: str, event: str) -> None:
        self.counts[kind] += 1
        self.events.append(f"{time.monotonic():.2f} {kind} {event}")


def _named(edge: Edge) -> str:
    return "-".join(edge)


@pytest.mark.soak
@pytest.mark.timeout(120 + 30 * CYCLES)
def test_a_topic_survives_what_happens_to_containers(tmp_path: Path) -> None:
    """The whole promise, in one story."""
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    with Cables() as cables, meshed(tmp_path, IDS, RING + CHORDS, lay=cables.lay) as members:
        story = Story(members, cables, seed)
        asyncio.run(story.run())
        for role, count in cables.cuts().items():
            story.counts[f"{role or 'new'} connection cut"] += count
    sys.stdout.write("\n".join(story.events) + "\n")
    _tell(story)
    _check_copies(story)
    _check_quiet(story)
    _check_accepted(story)


def _tell(story: Story) -> None:
    """Say what happened, for whoever looks at a failure or at a long run."""
    problems = Counter(each.problem for each in story.subscribers if each.problem)
    for problem, count in problems.items():
        sys.stdout.write(f"{count} subscribers: {problem}\n")
    sys.stdout.write(f"{dict(story.counts)}\n")


def _check_copies(story: Story) -> None:
    """No copy comes twice, or before an earlier one of its publisher, or to whom never asked."""
    sent = {each.member.id: each.sent for each in story.publishers}
    for subscriber in story.subscribers:
        last: dict[str, int] = {}
        for publisher, number in subscriber.got:
            assert number > last.get(publisher, -1), (
                f"{subscriber.pattern} at {subscriber.member.id}: {number} of {publisher} "
                f"after {last[publisher]}"
            )
            last[publisher] = number
            assert subscriber.may_have(sent[publisher][number].subject)


def _check_quiet(story: Story) -> None:
    """While nothing happens every message is accepted, and there are many."""
    for began_s, ended_s in story.quiet:
        for publisher in story.publishers:
            sent = [each for each in publisher.sent if began_s <= each.sent_s <= ended_s]
            assert len(sent) >= SENT_MIN, f"{publisher.member.id} hardly sent"
            refused = [each for each in sent if not each.is_accepted]
            assert refused == [], f"not accepted while nothing happened: {refused[:3]}"


def _check_accepted(story: Story) -> None:
    """What was accepted has come to every subscriber that was known then and stayed."""
    checked = 0
    for subscriber in story.subscribers:
        got = set(subscriber.got)
        for publisher in story.publishers:
            for message in publisher.sent:
                if message.is_accepted and subscriber.is_to_have(message):
                    checked += 1
                    assert (message.publisher, message.number) in got, (
                        f"{subscriber.bindings} at {subscriber.member.id} lacks {message}"
                    )
    sent = sum(len(each.sent) for each in story.publishers)
    accepted = sum(each.is_accepted for one in story.publishers for each in one.sent)
    copies = sum(len(each.got) for each in story.subscribers)
    sys.stdout.write(
        f"{sent} messages, {accepted} accepted, {copies} copies, {checked} of them had to come\n"
    )
    assert checked > 0
