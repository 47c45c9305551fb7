"""The conformance kit of casts: an application cannot tell a nearcast from a broadcast.

class TestMine(CastConformance):
@asynccontextmanager
async def cast(self):
async with my_cast() as cast:
yield cast
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from cogwork.cast.cast import CogFailed
from cogwork.cast.cog import Cog
from cogwork.plugin.engine.batch import BATCH_BYTES_MAX
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin, Snapshot
from cogwork.plugin.engine.errors import BeyondEnd, Busy, InvalidAppend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from cogwork.cast.canonical import CanonicalBatch, CanonicalMessage
    from cogwork.cast.cast import Cast
    from cogwork.plugin.engine.contract import Start

__all__ = ("CastConformance", "Listener")


class Listener(Cog):
    """Keeps what it is given.

    Attributes:
        messages: The messages.
        caught_up: How many there were each time that it was told to have caught up.
        snapshots: What it was to begin with.
    """

    def __init__(self) -> None:
        self.messages: list[CanonicalMessage] = []
        self.caught_up: list[int] = []
        self.snapshots: list[Snapshot] = []

    @property
    def bodies(self) -> list[bytes]:
        """What was sent."""
        return [each.body for each in self.messages]

    def on_message(self, message: CanonicalMessage) -> None:
        """Keep it, if it is the next one."""
        if self.messages:
            assert message.offset == self.messages[-1].offset + 1
            assert message.time_ms >= self.messages[-1].time_ms
        self.messages.append(message)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it."""
        assert not self.messages
        self.snapshots.append(snapshot)

    def on_caught_up(self) -> None:
        """Keep how many there were."""
        self.caught_up.append(len(self.messages))


class Echo(Listener):
    """Answers each message with another one, up to a number of times."""

    def __init__(self, name: bytes, times: int) -> None:
        super().__init__()
        self.name = name
        self.times = times

    def on_message(self, message: CanonicalMessage) -> None:
        """Answer what does not come from itself."""
        super().on_message(message)
        if self.times and not message.body.startswith(self.name):
            self.times -= 1
            self.send(self.name + b" answers " + message.body[:20])


class Broken(Cog):
    """Does not like one message.

    Args:
        error: What it raises then.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def on_message(self, message: CanonicalMessage) -> None:
        """Raise."""
        if message.body == b"bad":
            raise self.error


class Mother(Listener):
    """Has children."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[Listener] = []

    def on_message(self, message: CanonicalMessage) -> None:
        """Add a cog for a message, and say so."""
        super().on_message(message)
        if message.body.startswith(b"birth"):
            for start in (Origin.FIRST, Origin.NEXT, FromOffset(message.offset)):
                self.children.append(Listener())
                self.cast.add(self.children[-1], start)
            self.send(b"a child", b"and another")


class Counter(Cog):
    """Counts by the batch."""

    count = 0

    def on_batch(self, batch: CanonicalBatch) -> None:
        """Count."""
        self.count += len(batch)


class CastConformance:
    """Tests that any cast passes; pytest collects them from a subclass."""

    timeout_s: ClassVar[float] = 30.0

    def cast(self) -> AbstractAsyncContextManager[Cast]:
        """Make an empty cast."""
        raise NotImplementedError

    def run(self, test: Callable[[Cast], Awaitable[None]]) -> None:
        """Run a test on an event loop of its own."""

        async def limited() -> None:
            async with asyncio.timeout(self.timeout_s), self.cast() as cast:
                await test(cast)

        asyncio.run(limited())

    def test_everybody_is_given_everything_in_one_order(self) -> None:
        """What a cog sends itself, too."""

        async def test(cast: Cast) -> None:
            cogs = [Echo(b"%d" % i, times=5) for i in range(4)]
            for cog in cogs:
                cast.add(cog)
            cast.send(b"x", b"y")
            cast.send(b"z")
            await cast.sync()
            assert len(cogs[0].messages) == 3 + 4 * 5
            assert {body[:1] for body in cogs[0].bodies} == {bytes([each]) for each in b"0123xyz"}
            for cog in cogs:
                assert cog.messages == cogs[0].messages
            assert [each.offset for each in cogs[0].messages] == list(range(23))
            assert cogs[0].bodies[:2] == [b"x", b"y"]

        self.run(test)

    def test_nobody_hears_an_answer_before_the_question(self) -> None:
        """However deep it goes."""

        async def test(cast: Cast) -> None:
            ping, listener, pong = Echo(b"ping", 50), Listener(), Echo(b"pong", 50)
            for cog in (ping, listener, pong):
                cast.add(cog)
            cast.send(b"ping begins")
            await cast.sync()
            names = [body.split()[0] for body in listener.bodies]
            assert names == [b"ping", b"pong"] * 50 + [b"ping"]

        self.run(test)

    def test_what_is_sent_keeps_its_order(self) -> None:
        """One by one and together."""

        async def test(cast: Cast) -> None:
            listener, counter = Listener(), Counter()
            cast.add(listener)
            cast.add(counter)
            expected: list[bytes] = []
            for i in range(200):
                bodies = [b"%d.%d" % (i, j) for j in range(i % 5)]
                cast.send(*bodies)
                expected += bodies
            await cast.sync()
            assert listener.bodies == expected
            assert counter.count == len(expected)
            assert len({each.producer for each in listener.messages}) == 1
            assert listener.messages[0].time_ms > 1_500_000_000_000

        self.run(test)

    def test_octets_are_opaque(self) -> None:
        """Empty and large messages, too; what is too large is refused at once."""

        async def test(cast: Cast) -> None:
            listener = Listener()
            cast.add(listener)
            bodies = [b"", bytes(range(256)), b"", bytes(500_000)]
            for body in bodies:
                cast.send(body)
            try:
                cast.send(bytes(BATCH_BYTES_MAX))
            except InvalidAppend:
                bodies.append(b"refused")
                cast.send(b"refused")
            await cast.sync()
            assert listener.bodies == bodies
            assert bodies[-1] == b"refused"

        self.run(test)

    def test_a_late_cog_comes_to_the_state_it_would_have_had(self) -> None:
        """And is told once, after the last message there was."""

        async def test(cast: Cast) -> None:
            early, late = Listener(), Listener()
            cast.add(early)
            await cast.sync()
            for i in range(100):
                cast.send(b"%d" % i)
            await cast.sync()
            cast.add(late)
            await cast.sync()
            assert late.messages == early.messages
            cast.send(b"live")
            await cast.sync()
            assert late.messages == early.messages
            assert len(late.messages) == 101
            assert (early.caught_up, late.caught_up) == ([0], [100])

        self.run(test)

    def test_a_cog_may_begin_elsewhere(self) -> None:
        """At an offset, at a time, with the last message, the next one, or a snapshot."""

        async def test(cast: Cast) -> None:
            first = Listener()
            cast.add(first)
            for body in (b"a", b"b", b"c"):
                cast.send(body)
                await cast.sync()
                await asyncio.sleep(0.01)
            await cast.save_snapshot(Snapshot(2, b"ab"))
            cases: dict[Start, list[bytes]] = {
                Origin.LAST: [b"c", b"d"],
                Origin.NEXT: [b"d"],
                FromOffset(1): [b"b", b"c", b"d"],
                FromOffset(3): [b"d"],
                FromTime(first.messages[1].time_ms): [b"b", b"c", b"d"],
                FromTime(0): [b"a", b"b", b"c", b"d"],
                FromTime(1 << 42): [b"d"],
                Origin.SNAPSHOT: [b"c", b"d"],
            }
            cogs = {start: Listener() for start in cases}
            for start, cog in cogs.items():
                cast.add(cog, start)
            await cast.sync()
            for start, cog in cogs.items():
                assert cog.caught_up == [len(cases[start]) - 1]
            cast.send(b"d")
            await cast.sync()
            assert {start: cog.bodies for start, cog in cogs.items()} == cases
            assert cogs[Origin.SNAPSHOT].snapshots == [Snapshot(2, b"ab")]
            assert cogs[FromOffset(1)].snapshots == []

        self.run(test)

    def test_a_cog_that_cannot_begin_is_told_of(self) -> None:
        """By the next `sync`."""

        async def test(cast: Cast) -> None:
            cog = Listener()
            cast.add(cog, FromOffset(10))
            failed = await _failure(cast)
            assert failed.cog is cog
            assert isinstance(failed.__cause__, BeyondEnd)
            cast.send(b"x")
            await cast.sync()
            assert cog.messages == []

        self.run(test)

    def test_a_cog_that_fails_is_out_and_the_others_go_on(self) -> None:
        """It is told once."""
        self._run_with_one_that_raises(ArithmeticError("I never could"))

    def test_a_cog_that_exits_is_out_and_the_program_goes_on(self) -> None:
        """To exit is for the program, not for one of its cogs."""
        self._run_with_one_that_raises(SystemExit(3))

    def _run_with_one_that_raises(self, error: BaseException) -> None:
        async def test(cast: Cast) -> None:
            cogs = [Listener(), Broken(error), Listener()]
            for cog in cogs:
                cast.add(cog)
            cast.send(b"good")
            await cast.sync()
            cast.send(b"bad")
            cast.send(b"better")
            failed = await _failure(cast)
            assert failed.cog is cogs[1]
            assert failed.__cause__ is error
            await cast.sync()
            for cog in (cogs[0], cogs[2]):
                assert isinstance(cog, Listener)
                assert cog.bodies == [b"good", b"bad", b"better"]

        self.run(test)

    def test_a_cog_that_is_taken_out_is_given_nothing_more(self) -> None:
        """The others are."""

        async def test(cast: Cast) -> None:
            staying, leaving = Listener(), Listener()
            cast.add(staying)
            cast.add(leaving)
            cast.send(b"one")
            await cast.sync()
            cast.remove(leaving)
            cast.send(b"two")
            await cast.sync()
            assert (staying.bodies, leaving.bodies) == ([b"one", b"two"], [b"one"])
            cast.remove(staying)
            cast.send(b"three")
            await cast.sync()
            assert staying.bodies == [b"one", b"two"]

        self.run(test)

    def test_a_cog_may_add_others(self) -> None:
        """While it is pushed to, with more under way."""

        async def test(cast: Cast) -> None:
            mother = Mother()
            cast.add(mother)
            cast.send(b"before")
            cast.send(b"birth")
            cast.send(b"after")
            await cast.sync()
            cast.send(b"end")
            await cast.sync()
            first, following, from_offset = mother.children
            assert sorted(mother.bodies) == sorted(
                [b"before", b"birth", b"after", b"a child", b"and another", b"end"]
            )
            assert first.messages == mother.messages
            assert from_offset.messages == mother.messages[1:]
            assert following.messages == mother.messages[-len(following.messages) :]
            assert [len(child.caught_up) for child in mother.children] == [1, 1, 1]

        self.run(test)

    def test_cogs_that_never_stop_leave_others_their_turn(self) -> None:
        """An answer to each answer must not hold up the event loop."""

        async def test(cast: Cast) -> None:
            cogs = [Echo(b"ping", 1 << 60), Echo(b"pong", 1 << 60)]
            for cog in cogs:
                cast.add(cog)
            cast.send(b"begin")
            for _ in range(20):
                await asyncio.sleep(0.001)
            for cog in cogs:
                cog.times = 0
            await cast.sync()
            assert len(cogs[0].messages) > 3
            assert cogs[0].messages == cogs[1].messages

        self.run(test)

    def test_what_is_too_much_is_refused(self) -> None:
        """Nothing that was not refused is lost, and after `sync` there is room."""

        async def test(cast: Cast) -> None:
            counter, listener = Counter(), Listener()
            cast.add(counter)
            cast.add(listener)
            sent = 0
            for i in range(300):
                try:
                    cast.send(b"%06d" % i + bytes(100_000))
                    sent += 1
                except Busy:
                    await cast.sync()
                    cast.send(b"%06d" % i + bytes(100_000))
                    sent += 1
            await cast.sync()
            assert counter.count == sent == 300
            assert [body[:6] for body in listener.bodies] == [b"%06d" % i for i in range(300)]

        self.run(test)


async def _failure(cast: Cast) -> CogFailed:
    try:
        await cast.sync()
    except CogFailed as failed:
        return failed
    raise AssertionError("nobody says that a cog has failed")
