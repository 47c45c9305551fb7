"""What is told of a stream whose engine is away, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cogwork.nodes.stream.outage import LASTING_S, Outage
from cogwork.nodes.stream.sight import Sight
from cogwork.plugin.engine.contract import Bounds, Members
from cogwork.plugin.engine.errors import Unavailable

if TYPE_CHECKING:
    from cogwork.plugin.effects import Report

STREAM = "stream/orders"


def told(outage: Outage, *turns: tuple[float, str | None]) -> list[Report]:
    reports = [outage.turn(now_s, reason) for now_s, reason in turns]
    return [each for each in reports if each is not None]


def test_an_outage_is_shown_at_once_and_told_once_it_has_lasted() -> None:
    outage = Outage(STREAM, "orb")
    assert told(outage, (0.0, None), (1.0, "no server")) == []
    assert outage.problem is not None
    assert outage.problem.startswith("away since 20")
    assert outage.problem.endswith("Z: no server")
    (report,) = told(outage, *((1.0 + step, "no server") for step in range(60)))
    assert (report.is_warning, report.is_error) == (True, False)
    assert report.text == f"{STREAM} is {outage.problem}"
    assert report.kind == "streams on the engine orb are away"


def test_what_was_told_is_told_to_be_over_once() -> None:
    outage = Outage(STREAM, "orb")
    told(outage, (0.0, "no server"), (LASTING_S, "no server"))
    assert outage.is_open
    (report,) = told(outage, *((20.0 + step, None) for step in range(10)))
    assert (report.text, report.is_warning) == (f"{STREAM} is back after 20 s", False)
    assert not outage.is_open
    assert outage.problem is None


def test_what_was_over_at_once_is_not_told_of() -> None:
    outage = Outage(STREAM, "orb")
    assert told(outage, (0.0, "no leader"), *((1.0 + step, None) for step in range(10))) == []
    assert not outage.is_open


def test_a_server_that_comes_and_goes_is_told_of_once() -> None:
    outage = Outage(STREAM, "orb")
    turns = [(float(step), "no server" if step % 2 else None) for step in range(100)]
    assert [each.is_warning for each in told(outage, *turns)] == [True]
    (over,) = told(outage, *((100.0 + step, None) for step in range(10)))
    assert over.text == f"{STREAM} is back after 99 s"


def test_a_stream_that_has_no_leader_yet_is_opening_until_that_lasts() -> None:
    outage = Outage(STREAM, "raft")
    assert outage.state("no leader") == "opening"
    assert told(outage, (0.0, "no leader"), (1.0, "no leader")) == []
    assert (outage.state("no leader"), outage.problem) == ("opening", None)
    assert len(told(outage, (LASTING_S, "no leader"))) == 1
    assert outage.state("no leader") == "away"
    told(outage, (LASTING_S + 1, None))
    assert outage.state(None) == "open"
    told(outage, (LASTING_S + 2, "no leader"))
    assert outage.state("no leader") == "away", "it was open before"


class Silent:
    """An engine that says nothing by itself; asked, it has a server or none."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    async def members(self) -> Members:
        return Members(("box",), (), "box")

    async def bounds(self) -> Bounds:
        self.asked += 1
        if self.is_away:
            raise Unavailable("its server is away")
        return Bounds(0, 7)


def test_an_engine_that_does_not_tell_its_bounds_is_away_until_it_does() -> None:
    async def story() -> None:
        engine: Any = Silent()
        sight = Sight()
        sight.open(engine)
        await sight.look()
        assert (sight.bounds.next, sight.outage) == (7, None)
        assert not sight.is_due(1.0, is_quiet=True)
        engine.is_away = True
        await sight.look()
        assert sight.outage == "its server is away"
        assert sight.is_due(2.0, is_quiet=True), "it is asked until it is back"
        engine.is_away = False
        await sight.look()
        assert sight.outage is None

    asyncio.run(story())


def test_an_engine_that_hangs_is_asked_once_at_a_time() -> None:
    async def story() -> None:
        engine: Any = Silent()
        answers = asyncio.Event()
        told_bounds = engine.bounds

        async def late() -> Bounds:
            await answers.wait()
            found: Bounds = await told_bounds()
            return found

        engine.bounds = late
        sight = Sight()
        sight.open(engine)
        sight.show()
        assert sight.is_due(1.0, is_quiet=False)
        looking = asyncio.ensure_future(sight.look())
        await asyncio.sleep(0)
        assert not sight.is_due(2.0, is_quiet=False)
        answers.set()
        await looking
        assert sight.is_due(3.0, is_quiet=False)

    asyncio.run(story())
