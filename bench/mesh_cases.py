"""The lines of the table "Linked containers": messages that cross, and what that costs.

CPU is that of all containers together. Where one container is the measure, it is a fresh one of
its own, with the same workers, straight before.
"""

from __future__ import annotations

import os
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from cases import CPU, P50_RATIO, Case, Figure, Sample, cpu_of, sample_of
from fleet import Edge, Fleet
from mesh_balance import balance
from mesh_faults import DIAMOND, HEARTBEAT_S, kill_transit, stop_transit
from mesh_replies import CONTROL, reply_addresses
from mesh_stall import FASTER, HELD, stall
from routes import RawRelay
from server import DEFAULT_COMMAND, Server

from cogwork.bench.jobs import ConsumerJob, ProducerJob
from cogwork.bench.measure import Broker, Result, Transit, measure
from cogwork.bench.scenarios import Load, run_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("MESH_CASES",)

_MILLION: Final = 1_000_000

PAIR: Final[tuple[Edge, ...]] = (("a", "b", 1),)
TRIANGLE: Final[tuple[Edge, ...]] = (("a", "b", 1), ("b", "c", 1), ("a", "c", 1))
RING_WITH_CHORDS: Final[tuple[Edge, ...]] = (
    *(("a", "b", 1), ("b", "c", 1), ("c", "d", 1), ("d", "e", 1), ("a", "e", 1)),
    *(("a", "c", 1), ("b", "d", 1)),
)

SHARE: Final = "delivered of sent, %"
ALONE: Final = "CPU, times one container's"
SKEW: Final = "a share's largest distance from ideal, %"
MEDIAN: Final = "until messages flow again, median, ms"
LONGEST: Final = "the longest of these, ms"


def _token() -> str:
    """Return a word that no other run uses in its addresses."""
    return f"{os.getpid():x}{time.monotonic_ns() & 0xFFFFFFF:x}"


def _across(scenario: str, load: Load) -> Callable[[Fleet], Sample]:
    """The producer at one container, the consumer at the other."""

    def run(fleet: Fleet) -> Sample:
        result = run_scenario(scenario, fleet.route("a", "b"), load)
        share = 100 * result.delivered / result.sent
        return sample_of(result, {CPU: result.cpu_s_per_million or 0.0, SHARE: share})

    return run


def _round_trip(fleet: Fleet) -> Sample:
    """Caller and service each at a container of its own: six hops, as through two relays."""
    load = Load(count=20_000)
    ours = run_scenario("request-reply", fleet.route("b", "a"), load)
    with RawRelay(hops=2) as relay:
        theirs = run_scenario("request-reply", relay, load)
    ours_us, theirs_us = ours.latencies_us["p50"], theirs.latencies_us["p50"]
    sample = sample_of(ours, {P50_RATIO: ours_us / theirs_us})
    sample.relay = {"p50 µs": theirs_us, "our p50 µs": ours_us}
    sample.problems += theirs.problems
    return sample


def _topic(fleet: Fleet) -> Sample:
    """Four subscribers and a publisher at each container; everyone gets everything."""
    prefix = f"topic/bench.{_token()}"
    urls = [member.url for member in fleet.members.values()]
    subscribers = [
        ConsumerJob(url=url, addresses=[f"{prefix}.#"] * 4, connections=4, producers=len(urls))
        for url in urls
    ]
    publishers = [
        ProducerJob(url=url, addresses=[f"{prefix}.{at}"], first_number=at, count=_MILLION // 5)
        for at, url in enumerate(urls)
    ]
    transit = Transit(subscribers, publishers, fan_out=4 * len(urls))
    result = measure(fleet.route("a", "b"), transit)
    return sample_of(result, {CPU: result.cpu_s_per_million or 0.0})


def _work(route: Broker, posting: Sequence[str], taking: dict[str, int]) -> Result:
    """Post at some URLs, and take at others; all of one queue."""
    address = f"work/bench.{_token()}"
    consumers = [
        ConsumerJob(
            url=url,
            addresses=[address] * count,
            connections=count,
            producers=len(posting),
        )
        for url, count in taking.items()
    ]
    producers = [
        ProducerJob(
            url=url,
            addresses=[address],
            first_number=at,
            settled=False,
            count=2 * _MILLION // len(posting),
        )
        for at, url in enumerate(posting)
    ]
    # What was lent and came back is delivered late: the queue keeps order as well as it can.
    return measure(route, Transit(consumers, producers, is_ordered=False))


def _queue(posting: str, taking: dict[str, int]) -> Callable[[Fleet], Sample]:
    """Work over three containers, and the same by the same workers at one.

    Args:
        posting: The containers where items are posted.
        taking: How many consumers each container has.
    """

    def run(fleet: Fleet) -> Sample:
        with Server(DEFAULT_COMMAND) as server:
            url = server.route.receiver_url
            alone = _work(server.route, [url] * len(posting), {url: sum(taking.values())})
        urls = {fleet[name].url: count for name, count in taking.items()}
        linked = _work(fleet.route("a", "b"), [fleet[name].url for name in posting], urls)
        ours, one = (cpu_of(each) / each.delivered * _MILLION for each in (linked, alone))
        sample = sample_of(linked, {ALONE: ours / one, CPU: ours})
        sample.relay = {"one container's CPU-s a million": one}
        sample.problems += alone.problems
        return sample

    return run


def _balance(speeds: tuple[int, ...]) -> Callable[[Fleet], Sample]:
    def run(fleet: Fleet) -> Sample:
        skew, problems = balance(fleet, f"work/bench.{_token()}", speeds)
        return Sample({SKEW: 100 * skew}, problems=problems)

    return run


def _recovery(disturb: Callable[[Fleet, str], list[float]]) -> Callable[[Fleet], Sample]:
    """Each run disturbs the transit container, several times where that is quick."""

    def run(fleet: Fleet) -> Sample:
        found_s = disturb(fleet, f"topic/bench.{_token()}")
        return Sample({MEDIAN: 1000 * median(found_s), LONGEST: 1000 * max(found_s)})

    return run


def _replies(fleet: Fleet) -> Sample:
    each_bytes, problems = reply_addresses(fleet, 10_000)
    return Sample({CONTROL: each_bytes}, problems=problems)


def _stall(fleet: Fleet) -> Sample:
    values, rate, problems = stall(fleet, f"anycast/bench.{_token()}")
    return Sample(values, rate=rate, problems=problems)


def _linked(edges: Sequence[Edge], configuration: str = "") -> Callable[[str], Fleet]:
    """Return what starts the containers; another server's command has no part in it."""
    return lambda _: Fleet(edges, configuration)


_DISTURBED: Final = _linked(DIAMOND, f"[mesh]\nheartbeat_s = {HEARTBEAT_S}\n")

MESH_CASES: Final[dict[str, Case]] = {
    "mesh-presettled": Case(
        "2 containers, 1→1 across, 100 B, presettled",
        (Figure(CPU, 0.4), Figure(SHARE, 100.0, is_floor=True)),
        _across("presettled", Load(count=16 * _MILLION)),
        _linked(PAIR),
    ),
    "mesh-unsettled": Case(
        "2 containers, 1→1 across, 100 B, unsettled",
        (Figure(CPU, 0.5), Figure(SHARE, 100.0, is_floor=True)),
        _across("unsettled", Load(count=16 * _MILLION)),
        _linked(PAIR),
    ),
    "mesh-request-reply": Case(
        "request/reply across 2 containers, 1 outstanding, six hops",
        (Figure(P50_RATIO, 1.8),),
        _round_trip,
        _linked(PAIR),
    ),
    "mesh-topic": Case(
        "topic, 5 containers in a ring with two chords, a publisher and 4 subscribers at each",
        (Figure(CPU, 0.6),),
        _topic,
        _linked(RING_WITH_CHORDS),
    ),
    "mesh-queue-local": Case(
        "work queue over 3 containers, posted at each, 4 consumers at each",
        (Figure(ALONE, 1.3),),
        _queue("abc", {"a": 4, "b": 4, "c": 4}),
        _linked(TRIANGLE),
    ),
    "mesh-queue-remote": Case(
        "work queue over 3 containers, posted at one, 6 consumers at each of the others",
        (Figure(ALONE, 3.0),),
        _queue("a", {"b": 6, "c": 6}),
        _linked(TRIANGLE),
    ),
    "mesh-balance": Case(
        "the same with 12 equally slow consumers, 4 at each container, posted at one",
        (Figure(SKEW, 10.0),),
        _balance((1, 1, 1)),
        _linked(TRIANGLE),
    ),
    "mesh-balance-speeds": Case(
        "the same, with consumers of speed 1:2:4",
        (Figure(SKEW, 10.0),),
        _balance((1, 2, 4)),
        _linked(TRIANGLE),
    ),
    "mesh-killed": Case(
        "transit container killed, of two ways",
        (Figure(MEDIAN, 100.0), Figure(LONGEST, 100.0)),
        _recovery(partial(kill_transit, times=5)),
        _DISTURBED,
    ),
    "mesh-stopped": Case(
        "transit container stopped (SIGSTOP), of two ways, heartbeat 1 s",
        (Figure(MEDIAN, 4000.0), Figure(LONGEST, 4000.0)),
        _recovery(partial(stop_transit, times=2)),
        _DISTURBED,
    ),
    "mesh-replies": Case(
        "10,000 reply addresses at one container, callers at the other",
        (Figure(CONTROL, 0.1),),
        _replies,
        _linked(PAIR),
    ),
    "mesh-stall": Case(
        "an anycast consumer stops, another address goes on over the same link",
        (Figure(HELD, 10_000.0), Figure(FASTER, 0.8, is_floor=True)),
        _stall,
        _linked(PAIR),
    ),
}
