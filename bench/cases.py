"""The lines of the table "Speed and memory": what each runs, and what it must reach.

A figure that is a ratio compares the server with the raw relay in the same run: the same
generator, the same bytes, the same credit, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from routes import RawRelay, TlsRelay
from server import Server

from cogwork.bench.scenarios import Load, run_scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from cogwork.bench.measure import Result

__all__ = ("CASES", "CPU", "P50_RATIO", "Case", "Figure", "Sample", "cpu_of", "sample_of")

_MILLION: Final = 1_000_000
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a case, and its limit.

    Attributes:
        name: What it is, with its unit.
        must: The limit.
        is_floor: Whether the figure must be at least, not at most, the limit.
    """

    name: str
    must: float
    is_floor: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a value is within the limit."""
        return value >= self.must if self.is_floor else value <= self.must


@dataclass(slots=True)
class Sample:
    """What one run of a case found.

    Attributes:
        values: The value of each figure, by its name.
        rate: What the server delivered a second.
        relay: The raw relay's figures of the same run.
        problems: What was wrong; a sample with problems counts for nothing.
    """

    values: dict[str, float]
    rate: float = 0.0
    relay: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the table.

    Attributes:
        title: What is measured.
        figures: Its numbers.
        run: Runs it once, through what `place` makes.
        place: Starts the server, given the command for it; or the servers.
    """

    title: str
    figures: tuple[Figure, ...]
    run: Callable[[Any], Sample]
    place: Callable[[str], AbstractContextManager[Any]] = Server


CPU: Final = "CPU-s a million"
RATIO: Final = "CPU, times the raw relay's"
GROWTH: Final = "peak memory above idle, MiB"


def cpu_of(result: Result) -> float:
    """Return the measured process's CPU seconds; the raw relay may be too quick for the clock."""
    return max(result.cpu_s or 0.0, 0.01)


def sample_of(result: Result, values: dict[str, float]) -> Sample:
    return Sample(values, rate=result.rate, problems=result.problems)


def _relayed(scenario: str, load: Load) -> Result:
    with RawRelay() as relay:
        return run_scenario(scenario, relay, load)


def _add_relay(sample: Sample, broker: Result, relay: Result) -> Sample:
    sample.values[RATIO] = cpu_of(broker) / broker.delivered / (cpu_of(relay) / relay.delivered)
    sample.relay = {CPU: cpu_of(relay) / relay.delivered * _MILLION, "rate": relay.rate}
    sample.problems += relay.problems
    return sample


def _flow(scenario: str, load: Load) -> Callable[[Server], Sample]:
    """One producer, one consumer, through the server and then through the raw relay."""

    def run(server: Server) -> Sample:
        broker = run_scenario(scenario, server.route, load)
        sample = sample_of(broker, {CPU: broker.cpu_s_per_million or 0.0})
        return _add_relay(sample, broker, _relayed(scenario, load))

    return run


def _through(scenario: str, load: Load) -> Callable[[Server], Sample]:
    """Through the server alone."""

    def run(server: Server) -> Sample:
        result = run_scenario(scenario, server.route, load)
        growth = ((result.peak_rss_bytes or 0) - (result.idle_rss_bytes or 0)) / _MIB
        return sample_of(result, {CPU: result.cpu_s_per_million or 0.0, GROWTH: growth})

    return run


def _tls(server: Server) -> Sample:
    certificates = server.certificates
    load = Load(
        count=3_000_000,
        ca_file=str(certificates.authority),
        certificate_file=str(certificates.server),
    )
    broker = run_scenario("presettled", server.tls_route, load)
    with TlsRelay(certificates.server, certificates.authority) as relay:
        relayed = run_scenario("presettled", relay, load)
    return _add_relay(sample_of(broker, {CPU: broker.cpu_s_per_million or 0.0}), broker, relayed)


ROUTED: Final = "CPU-s a million routed"


def _topic(subscriptions_per_s: float) -> Callable[[Server], Sample]:
    load = Load(count=_MILLION, credit=1000, subscriptions_per_s=subscriptions_per_s)

    def run(server: Server) -> Sample:
        result = run_scenario("topic", server.route, load)
        return sample_of(result, {ROUTED: cpu_of(result) / result.sent * _MILLION})

    return run


P50_RATIO: Final = "p50, times the raw relay's"


def _round_trip(server: Server) -> Sample:
    load = Load(count=20_000)
    broker = run_scenario("request-reply", server.route, load)
    relay = _relayed("request-reply", load)
    ours_us, theirs_us = broker.latencies_us["p50"], relay.latencies_us["p50"]
    sample = sample_of(broker, {P50_RATIO: ours_us / theirs_us})
    sample.relay = {"p50 µs": theirs_us, "our p50 µs": ours_us}
    sample.problems += relay.problems
    return sample


EACH: Final = "CPU µs each"


def _each(scenario: str, load: Load) -> Callable[[Server], Sample]:
    def run(server: Server) -> Sample:
        result = run_scenario(scenario, server.route, load)
        return sample_of(result, {EACH: cpu_of(result) / result.sent * _MILLION})

    return run


def _large(server: Server) -> Sample:
    load = Load(count=20_000, size_bytes=100 * 1024)
    broker = run_scenario("large", server.route, load)
    growth = ((broker.peak_rss_bytes or 0) - (broker.idle_rss_bytes or 0)) / _MIB
    sample = sample_of(broker, {GROWTH: growth})
    return _add_relay(sample, broker, _relayed("large", load))


KIB: Final = "KiB each"


def _idle(server: Server) -> Sample:
    result = run_scenario("idle", server.route, Load(width=2000, credit=100))
    grown = (result.peak_rss_bytes or 0) - (result.idle_rss_bytes or 0)
    return Sample({KIB: grown / result.sent / 1024}, problems=result.problems)


CASES: Final[dict[str, Case]] = {
    "presettled": Case(
        "1→1, 100 B, presettled, window 5,000",
        (Figure(CPU, 0.12), Figure(RATIO, 2.0)),
        _flow("presettled", Load(count=32 * _MILLION)),
    ),
    "unsettled": Case(
        "1→1, 100 B, unsettled, window 5,000",
        (Figure(CPU, 0.18), Figure(RATIO, 2.0)),
        _flow("unsettled", Load(count=32 * _MILLION)),
    ),
    "presettled-1k": Case(
        "1→1, 1 KiB, presettled",
        (Figure(CPU, 0.5),),
        _flow("presettled", Load(count=2 * _MILLION, size_bytes=1024)),
    ),
    "tls": Case("1→1, 100 B, presettled, over TLS", (Figure(RATIO, 3.0),), _tls),
    "multicast-4": Case(
        "multicast 1→4: four connections",
        (Figure(CPU, 0.08), Figure(GROWTH, 64.0)),
        _through("fan-out", Load(count=12 * _MILLION, width=4)),
    ),
    "multicast-256": Case(
        "multicast 1→256: 256 connections",
        (Figure(CPU, 0.08), Figure(GROWTH, 256.0)),
        _through("fan-out", Load(count=10 * _MILLION, width=256, credit=1000)),
    ),
    "multicast-10000": Case(
        "multicast 1→10,000: 100 connections with 100 links each",
        (Figure(CPU, 0.15), Figure(GROWTH, 256.0)),
        _through("fan-out", Load(count=10 * _MILLION, width=10_000, credit=1000)),
    ),
    "queue": Case(
        "queue in memory, 1→1, unsettled",
        (Figure(CPU, 0.35),),
        _through("queue", Load(count=3 * _MILLION)),
    ),
    "topic": Case(
        "topic, 10,000 subscriptions, 1 M distinct subjects, fan-out 3",
        (Figure(ROUTED, 1.0),),
        _topic(0.0),
    ),
    "topic-churn": Case(
        "the same, while 1,000 subscriptions a second come and go",
        (Figure(ROUTED, 1.5),),
        _topic(1000.0),
    ),
    "request-reply": Case(
        "request/reply, 1 outstanding, four hops", (Figure(P50_RATIO, 1.8),), _round_trip
    ),
    "request-reply-64": Case(
        "request/reply, 64 outstanding",
        (Figure(EACH, 4.0),),
        _each("request-reply", Load(count=500_000, width=64)),
    ),
    "large": Case("100 KiB bodies, unsettled", (Figure(RATIO, 2.0), Figure(GROWTH, 64.0)), _large),
    "connections": Case(
        "connect + attach + close, 8 at once",
        (Figure(EACH, 150.0),),
        _each("connections", Load(count=5000)),
    ),
    "idle": Case("an idle connection with a receiver, of 2,000", (Figure(KIB, 16.0),), _idle),
}
