"""The orb without an event loop, its retention, and how cogs come and go within it."""

import asyncio

import pytest

from cogwork import Cog, CogFailed, Orb, nearcast
from cogwork.cast import CanonicalBatch, CanonicalMessage
from cogwork.cast.conformance import Echo, Listener
from cogwork.cast.orb import UNDER_WAY_BYTES_MAX
from cogwork.plugin.engine.contract import FromOffset, Origin, Snapshot
from cogwork.plugin.engine.errors import Busy, Truncated, Unavailable
from cogwork.plugin.engine.retention import Retention


def test_it_works_without_an_event_loop() -> None:
    orb = Orb()
    listener = Listener()
    orb.add(Echo(b"echo", times=1))
    orb.add(listener)
    orb.send(b"a", b"b")
    assert listener.bodies == [b"a", b"b", b"echo answers a"]
    assert {each.producer for each in listener.messages} == {orb.producer}


def test_no_cog_is_called_while_it_is_called() -> None:
    class Nested(Cog):
        depth = 0
        deepest = 0

        def on_message(self, message: CanonicalMessage) -> None:
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            if message.offset < 10:
                self.send(b"again")
            self.depth -= 1

    orb = Orb()
    cogs = [Nested(), Nested()]
    for cog in cogs:
        orb.add(cog)
    orb.send(b"x")
    assert [cog.deepest for cog in cogs] == [1, 1]


def test_a_cog_that_answers_history_joins_before_its_answers() -> None:
    orb = Orb()
    first = Listener()
    orb.add(first)
    orb.send(b"a")
    orb.send(b"b")
    late = Echo(b"late", times=2)
    orb.add(late)
    assert late.bodies == [b"a", b"b", b"late answers a", b"late answers b"]
    assert late.caught_up == [2]
    assert first.messages == late.messages


def test_what_is_too_old_is_not_there_for_late_cogs() -> None:
    orb = Orb(Retention(records=3))
    for i in range(10):
        orb.send(b"%d" % i)
    late, too_late = Listener(), Listener()
    orb.add(late)
    assert late.bodies == [b"7", b"8", b"9"]
    orb.add(too_late, FromOffset(6))
    with pytest.raises(CogFailed) as caught:
        asyncio.run(orb.sync())
    assert isinstance(caught.value.__cause__, Truncated)


def test_retention_by_octets_and_age() -> None:
    now_ms = 0
    orb = Orb(Retention(size_bytes=5000), lambda: now_ms)
    for _ in range(100):
        orb.send(bytes(600))
    few = Listener()
    orb.add(few)
    assert 4 <= len(few.messages) <= 5
    orb = Orb(Retention(age_s=60), lambda: now_ms)
    for _ in range(4):
        orb.send(b"x")
        now_ms += 30_000
    young = Listener()
    orb.add(young)
    assert [each.offset for each in young.messages] == [2, 3]


def test_who_is_taken_out_by_another_cog_is_not_given_the_batch() -> None:
    class Murderer(Cog):
        def on_message(self, message: CanonicalMessage) -> None:
            self.cast.remove(victim)

    orb = Orb()
    victim, witness = Listener(), Listener()
    for cog in (Murderer(), victim, witness):
        orb.add(cog)
    orb.send(b"x")
    assert (victim.bodies, witness.bodies) == ([], [b"x"])


def test_cogs_that_make_each_other_more_and_more_work_are_refused() -> None:
    class Doubling(Cog):
        refused = 0

        def on_batch(self, batch: CanonicalBatch) -> None:
            try:
                self.send(bytes(100_000))
                self.send(bytes(100_000))
            except Busy:
                self.refused += 1
                if self.refused > 100:
                    self.cast.remove(self)

    async def test() -> None:
        async with nearcast() as cast:
            cog = Doubling()
            cast.add(cog)
            cast.send(b"x")
            await cast.sync()
            assert cog.refused > 100

    asyncio.run(test())
    assert UNDER_WAY_BYTES_MAX >= 1 << 20


def test_nothing_is_sent_through_a_closed_cast() -> None:
    async def test() -> None:
        listener = Listener()
        async with nearcast() as cast:
            cast.add(listener, Origin.NEXT)
        with pytest.raises(Unavailable):
            cast.send(b"x")
        assert listener.messages == []

    asyncio.run(test())


def test_leaving_tells_of_a_failure_unless_there_is_a_worse_one() -> None:
    class Broken(Cog):
        def on_message(self, message: CanonicalMessage) -> None:
            raise ArithmeticError

    async def test(body_fails: bool) -> None:
        async with nearcast() as cast:
            cast.add(Broken())
            cast.send(b"x")
            if body_fails:
                raise KeyError

    with pytest.raises(CogFailed, match="Broken failed"):
        asyncio.run(test(body_fails=False))
    with pytest.raises(KeyError):
        asyncio.run(test(body_fails=True))


@pytest.mark.parametrize("method", ["on_batch", "on_caught_up", "on_snapshot"])
def test_a_cog_that_exits_wherever_it_is_called_is_out(method: str) -> None:
    class Exiting(Listener):
        pass

    def leave(*_: object) -> None:
        raise SystemExit(3)

    async def test() -> None:
        setattr(Exiting, method, leave)
        async with nearcast() as cast:
            cast.send(b"early")
            await cast.save_snapshot(Snapshot(1, b"state"))
            cog = Exiting()
            cast.add(cog, Origin.SNAPSHOT)
            cast.send(b"late")
            with pytest.raises(CogFailed, match=r"SystemExit\(3\)"):
                await cast.sync()
            assert cog not in cast

    asyncio.run(test())


def test_ctrl_c_in_a_cog_is_for_the_program() -> None:
    class Interrupted(Cog):
        def on_message(self, message: CanonicalMessage) -> None:
            raise KeyboardInterrupt

    orb = Orb()
    orb.add(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        orb.send(b"x")
