"""A topic over five containers, while containers are killed, stopped and started again.

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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.client import ClientError, Retry

from .meshes import HEARTBEAT_S, Member, meshed

if TYPE_CHECKING:
    from pathlib import Path

RING = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c3", "c4"), ("c4", "c0")]
CHORDS = [("c0", "c2"), ("c1", "c3")]
IDS = [f"c{number}" for number in range(5)]
SUBSCRIBERS = 20
WORDS = ("red", "green", "blue")
PATTERNS = ("#", "red.#", "*.green", "blue.*", "*.*", "red.red", "#.blue", "green.#")
CYCLES = int(os.environ.get("COGWORK_MESH_CYCLES", "2"))
DISTURBED_S = 4.0
CONVERGED_S = 8 * HEARTBEAT_S
"""After it, containers that run know of each other again."""

QUIET_S = 1.0
PACE_S = 0.004
GRACE_S = 0.5
"""So long before its end a subscriber may have lost what was accepted."""


def matches(pattern: str, subject: str) -> bool:
    """Says what a pattern takes, in the simplest way."""
    return _takes(pattern.split("."), subject.split("."))


def _takes(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_takes(pattern[1:], words[at:]) for at in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _takes(pattern[1:], words[1:])


@dataclass(eq=False)
class Sent:
    """A message, and what became of it."""

    publisher: str
    number: int
    subject: str
    sent_s: float
    answered_s: float = 0.0
    is_accepted: bool = False
    problem: str = ""


@dataclass(eq=False)
class Publisher:
    """Sends one message after the other by one container, whatever happens to that."""

    member: Member
    chance: random.Random
    sent: list[Sent] = field(default_factory=list)

    async def run(self) -> None:
        """Publishes until it is cancelled."""
        while True:
            with contextlib.suppress(ClientError, OSError):
                await self._publish()
            await asyncio.sleep(0.05)

    async def _publish(self) -> None:
        retry = Retry(give_up_after_s=0.0)
        async with cogwork.connect(self.member.url, retry=retry) as mesh, mesh.publisher() as topic:
            while True:
                await self._send(topic)

    async def _send(self, topic: cogwork.Publisher) -> None:
        subject = ".".join(self.chance.choice(WORDS) for _ in range(2))
        message = Sent(self.member.id, len(self.sent), subject, time.monotonic())
        self.sent.append(message)
        try:
            await topic.send([message.publisher, message.number], to=f"topic/{subject}")
            message.is_accepted = True
        except ClientError as error:
            message.problem = repr(error)
            raise
        finally:
            message.answered_s = time.monotonic()
        await asyncio.sleep(PACE_S)


@dataclass(eq=False)
class Subscriber:
    """Takes what comes for as long as its container lives."""

    member: Member
    pattern: str
    known_s: float = float("inf")
    gone_s: float = float("inf")
    got: list[tuple[str, int]] = field(default_factory=list)

    async def run(self) -> None:
        """Subscribes until it is cancelled or its connection is lost."""
        try:
            async with (
                cogwork.connect(self.member.url, retry=Retry(give_up_after_s=0.0)) as mesh,
                mesh.subscribe(f"topic/{self.pattern}") as messages,
            ):
                async for message in messages:
                    publisher, number = message.body
                    self.got.append((publisher, number))
        except (ClientError, OSError):
            pass
        finally:
            self.gone_s = time.monotonic()


class Story:
    """What happens, as a seed says."""

    def __init__(self, members: dict[str, Member], seed: int) -> None:
        self.members = members
        self.chance = random.Random(seed)
        self.publishers = [
            Publisher(member, random.Random(self.chance.random())) for member in members.values()
        ]
        self.subscribers: list[Subscriber] = []
        self.present: dict[Subscriber, asyncio.Task[None]] = {}
        self.quiet: list[tuple[float, float]] = []
        self.events: list[str] = []

    async def run(self) -> None:
        """Runs all cycles."""
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
        """Lets some subscribers leave, others come, and waits until they are known."""
        for subscriber, task in list(self.present.items()):
            if task.done() or self.chance.random() < 0.3:
                task.cancel()
                del self.present[subscriber]
        while len(self.present) < SUBSCRIBERS:
            member = self.chance.choice(list(self.members.values()))
            subscriber = Subscriber(member, self.chance.choice(PATTERNS))
            self.subscribers.append(subscriber)
            self.present[subscriber] = asyncio.create_task(subscriber.run())
        await asyncio.sleep(CONVERGED_S)
        for subscriber in self.present:
            subscriber.known_s = min(subscriber.known_s, time.monotonic())

    async def _be_quiet(self) -> None:
        began_s = time.monotonic()
        await asyncio.sleep(QUIET_S)
        self.quiet.append((began_s, time.monotonic()))
        await asyncio.sleep(0.3)

    async def _disturb(self) -> None:
        """Kills and stops containers; all run again at the end."""
        until_s = time.monotonic() + DISTURBED_S
        while time.monotonic() < until_s:
            member = self.chance.choice(list(self.members.values()))
            pause_s = self.chance.uniform(0.1, 1.5)
            if self.chance.random() < 0.5:
                self._note(f"kill {member.id}, start it after {pause_s:.2f} s")
                member.kill()
                await asyncio.sleep(pause_s)
                member.start()
            else:
                self._note(f"stop {member.id} for {2 * pause_s:.2f} s")
                member.signal(signal.SIGSTOP)
                await asyncio.sleep(2 * pause_s)
                member.signal(signal.SIGCONT)
            await asyncio.sleep(self.chance.uniform(0.0, 0.8))

    def _note(self, event: str) -> None:
        self.events.append(f"{time.monotonic():.2f} {event}")


@pytest.mark.timeout(120 + 30 * CYCLES)
def test_a_topic_survives_what_happens_to_containers(tmp_path: Path) -> None:
    """The whole promise, in one story."""
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    with meshed(tmp_path, IDS, RING + CHORDS) as members:
        story = Story(members, seed)
        asyncio.run(story.run())
    sys.stdout.write("\n".join(story.events) + "\n")
    _check_copies(story)
    _check_quiet(story)
    _check_accepted(story)


def _check_copies(story: Story) -> None:
    """No copy comes twice, or before one that was sent earlier by the same publisher."""
    for subscriber in story.subscribers:
        last: dict[str, int] = {}
        for publisher, number in subscriber.got:
            assert number > last.get(publisher, -1), (
                f"{subscriber.pattern} at {subscriber.member.id}: {number} of {publisher} "
                f"after {last[publisher]}"
            )
            last[publisher] = number


def _check_quiet(story: Story) -> None:
    """While nothing happens every message is accepted, and there are many."""
    for began_s, ended_s in story.quiet:
        for publisher in story.publishers:
            sent = [each for each in publisher.sent if began_s <= each.sent_s <= ended_s]
            assert len(sent) > QUIET_S / PACE_S / 20, f"{publisher.member.id} hardly sent"
            refused = [each for each in sent if not each.is_accepted]
            assert refused == [], f"not accepted while nothing happened: {refused[:3]}"


def _check_accepted(story: Story) -> None:
    """What was accepted has come to every subscriber that was known then and stayed."""
    checked = 0
    for subscriber in story.subscribers:
        got = set(subscriber.got)
        for publisher in story.publishers:
            for message in publisher.sent:
                if (
                    message.is_accepted
                    and message.sent_s >= subscriber.known_s
                    and message.answered_s <= subscriber.gone_s - GRACE_S
                    and matches(subscriber.pattern, message.subject)
                ):
                    checked += 1
                    assert (message.publisher, message.number) in got, (
                        f"{subscriber.pattern} at {subscriber.member.id} lacks {message}"
                    )
    sent = sum(len(each.sent) for each in story.publishers)
    accepted = sum(each.is_accepted for one in story.publishers for each in one.sent)
    sys.stdout.write(f"{sent} messages, {accepted} accepted, {checked} copies checked\n")
    assert checked > 0
