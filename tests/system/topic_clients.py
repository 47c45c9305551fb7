"""Publishers and subscribers of topics: they note what was sent and came, and what has to come."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import cogwork
from cogwork.client import ClientError, Retry

if TYPE_CHECKING:
    import random

    from .meshes import Member

WORDS = ("red", "green", "blue")
NEWS = "news"
"""The subject of an address without wildcards, `broadcast/news`."""

SUBJECTS = [*(f"{one}.{other}" for one in WORDS for other in WORDS), NEWS]
PATTERNS = ("#", "red.#", "*.green", "blue.*", "*.*", "red.red", "#.blue", "green.#")
PACE_S = 0.004
GRACE_S = 0.5
"""So long before its end a subscriber may have lost what was accepted."""


def address_of(subject: str) -> str:
    """Return the address of a subject or a pattern."""
    return f"broadcast/{NEWS}" if subject == NEWS else f"topic/{subject}"


def matches(pattern: str, subject: str) -> bool:
    """Return what a pattern takes, in the simplest way."""
    if NEWS in (pattern, subject):
        return pattern == subject
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
    """Sends one message after the other by one container, whatever happens to that.

    One that is named has a link to each topic; else messages say themselves where they go.
    """

    member: Member
    chance: random.Random
    is_named: bool
    sent: list[Sent] = field(default_factory=list)

    async def run(self) -> None:
        """Publish until it is cancelled."""
        while True:
            with contextlib.suppress(ClientError, OSError):
                await self._publish()
            await asyncio.sleep(0.05)

    async def _publish(self) -> None:
        retry = Retry(give_up_after_s=0.0)
        addresses = [address_of(each) for each in SUBJECTS] if self.is_named else [None]
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(cogwork.connect(self.member.url, retry=retry))
            links = {
                address: await stack.enter_async_context(client.publisher(address))
                for address in addresses
            }
            while True:
                await self._send(links)

    async def _send(self, links: dict[str | None, cogwork.client.Publisher]) -> None:
        subject = self.chance.choice(SUBJECTS)
        address = address_of(subject)
        message = Sent(self.member.id, len(self.sent), subject, time.monotonic())
        self.sent.append(message)
        body: list[object] = [message.publisher, message.number]
        try:
            if self.is_named:
                await links[address].send(body)
            else:
                await links[None].send(body, to=address)
            message.is_accepted = True
        except ClientError as error:
            message.problem = repr(error)
            raise
        finally:
            message.answered_s = time.monotonic()
        await asyncio.sleep(PACE_S)


@dataclass(eq=False)
class Binding:
    """A pattern of a subscriber, from when everybody knows of it until it is given up."""

    pattern: str
    known_s: float = float("inf")
    ended_s: float = float("inf")


@dataclass(eq=False)
class Subscriber:
    """Takes what comes for as long as its container lives."""

    member: Member
    pattern: str
    gone_s: float = float("inf")
    problem: str = ""
    got: list[tuple[str, int]] = field(default_factory=list)
    messages: cogwork.client.Subscription | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.bindings = [Binding(self.pattern)]

    @property
    def is_coming(self) -> bool:
        """Whether it is neither there yet nor gone."""
        return self.messages is None and self.gone_s == float("inf")

    async def run(self) -> None:
        """Subscribe until it is cancelled or its connection is lost."""
        try:
            async with (
                cogwork.connect(self.member.url, retry=Retry(give_up_after_s=0.0)) as client,
                client.subscribe(address_of(self.pattern)) as messages,
            ):
                self.messages = messages
                async for message in messages:
                    publisher, number = cast("tuple[str, int]", message.body)
                    self.got.append((publisher, number))
        except (ClientError, OSError) as error:
            self.problem = repr(error)
        finally:
            self.gone_s = time.monotonic()
            self.messages = None

    async def rebind(self, pattern: str) -> None:
        """Bind a pattern that is not bound, or unbinds one that is; perhaps in vain."""
        async with self.turn:
            if self.messages is not None and self.pattern != NEWS:
                await self._rebind(self.messages, pattern)

    async def _rebind(self, messages: cogwork.client.Subscription, pattern: str) -> None:
        bound = [each for each in self.bindings if each.ended_s == float("inf")]
        with contextlib.suppress(ClientError, OSError):
            for each in bound:
                if each.pattern == pattern:
                    each.ended_s = time.monotonic()
                    await messages.unbind(pattern)
                    return
            # It counts from its first answer on; what is said meanwhile may be there or not.
            self.bindings.append(Binding(pattern, ended_s=0.0))
            await messages.bind(pattern)
            self.bindings.append(Binding(pattern))

    def is_to_have(self, message: Sent) -> bool:
        """Return whether a message that was accepted must have come."""
        return message.answered_s <= self.gone_s - GRACE_S and any(
            message.sent_s >= each.known_s
            and message.answered_s <= each.ended_s
            and matches(each.pattern, message.subject)
            for each in self.bindings
        )

    def may_have(self, subject: str) -> bool:
        """Return whether it has ever wanted such a message."""
        return any(matches(each.pattern, subject) for each in self.bindings)
