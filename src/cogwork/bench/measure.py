"""One measurement: workers over a route, a meter on the process between them, and a verdict.

What goes in must come out, `fan_out` times, once each and in order; a measurement that loses or
repeats anything says so in its `problems`, whatever its rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cogwork.bench.crew import Crew, Worker
from cogwork.bench.url import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.bench.jobs import Job, Report
    from cogwork.bench.usage import ProcessUsage

__all__ = ("Broker", "Result", "Route", "Transit", "measure", "measure_each")

_STALL_S: Final = 10.0
"""Silence after which what is missing is counted as lost."""

_LISTEN_S: Final = 0.1
_SETTLE_S: Final = 0.05
"""Lets the server come to rest before its counters are read."""

_MILLION: Final = 1_000_000


class Route(Protocol):
    """What stands between the senders and the receivers."""

    @property
    def receiver_url(self) -> str:
        """Where receivers connect to; empty: they listen."""

    def sender_url(self, port: int) -> str:
        """Return where senders connect to, when the receivers listen on `port`."""

    @property
    def usage(self) -> ProcessUsage | None:
        """The process to be measured; known once `sender_url` was called."""


@dataclass(frozen=True, slots=True)
class Broker:
    """The route through a server, or through linked ones.

    Attributes:
        receiver_url: Where receivers connect to.
        usage: The measured processes.
        ingress_url: Where senders connect to; empty: to the same server.
    """

    receiver_url: str
    usage: ProcessUsage | None = None
    ingress_url: str = ""

    def sender_url(self, _port: int) -> str:
        """Return where senders connect to."""
        return self.ingress_url or self.receiver_url


class Result(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a measurement found.

    Attributes:
        scenario: Its name.
        sent: Deliveries sent.
        delivered: Deliveries received, over all receivers.
        seconds: From the first one sent to the last one received.
        rate: Delivered a second.
        mb_per_s: Message bytes received a second, in 10^6.
        cpu_s: CPU seconds of the measured process; None: not measured.
        cpu_s_per_million: The same for a million delivered.
        idle_rss_bytes: Its memory with everything connected, before the first delivery.
        peak_rss_bytes: Its largest memory during the run.
        latencies_us: Percentile → microseconds.
        accepted: Outcomes, as for the three that follow.
        worker_cpu_s: The load generator's own CPU seconds.
        problems: What was lost, repeated or refused; empty: everything is right.
    """

    scenario: str = ""
    sent: int = 0
    delivered: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    mb_per_s: float = 0.0
    cpu_s: float | None = None
    cpu_s_per_million: float | None = None
    idle_rss_bytes: int | None = None
    peak_rss_bytes: int | None = None
    latencies_us: dict[str, float] = {}
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    modified: int = 0
    worker_cpu_s: float = 0.0
    problems: list[str] = []


@dataclass(slots=True)
class Transit:
    """What is measured.

    Attributes:
        receivers: Jobs that are ready before anything is sent. The `url` of these and of all
            others is filled in from the route, where they have none of their own.
        senders: Jobs that are timed.
        companions: Jobs that run meanwhile, and are told to finish at the end.
        fan_out: How many receivers get each delivery.
        is_ordered: Whether each receiver must get a producer's deliveries in order; where not,
            their number and their sum must still be right.
        seconds: How long to send, where the senders have no count.
        settle_s: How long everything comes to rest before anything is sent.
        progress: Told how far it is.
    """

    receivers: Sequence[Job]
    senders: Sequence[Job]
    companions: Sequence[Job] = ()
    fan_out: int = 1
    is_ordered: bool = True
    seconds: float = 0.0
    settle_s: float = _SETTLE_S
    progress: Callable[[int, int], None] | None = None


def measure(route: Route, transit: Transit) -> Result:
    """Run a measurement.

    Raises:
        PeerError: A worker failed, or nothing moved any more before all was sent.
    """
    return measure_each(route, transit)[0]


def measure_each(route: Route, transit: Transit) -> tuple[Result, list[Report], list[Report]]:
    """Run a measurement; also return what each sender and each receiver reported, in order.

    Raises:
        PeerError: A worker failed, or nothing moved any more before all was sent.
    """
    with Crew() as crew:
        run = _Run(crew, route, transit)
        run.hire()
        result = run.measure()
        return result, run.reports(run.senders), run.reports(run.receivers)


@dataclass(slots=True)
class _Counters:
    """The measured process at the start."""

    usage: ProcessUsage | None
    cpu_s: float = 0.0
    idle_rss_bytes: int = 0

    def start(self) -> None:
        if self.usage is not None:
            self.usage.reset_peak()
            self.idle_rss_bytes = self.usage.rss_bytes()
            self.cpu_s = self.usage.cpu_s()

    def fill(self, result: Result) -> None:
        if self.usage is None:
            return
        result.cpu_s = self.usage.cpu_s() - self.cpu_s
        result.idle_rss_bytes = self.idle_rss_bytes
        result.peak_rss_bytes = self.usage.peak_rss_bytes()


@dataclass(slots=True)
class _Run:
    """One measurement under way."""

    crew: Crew
    route: Route
    transit: Transit
    receivers: list[Worker] = field(default_factory=list)
    senders: list[Worker] = field(default_factory=list)
    companions: list[Worker] = field(default_factory=list)
    moved: tuple[int, int] = (0, 0)
    moved_s: float = 0.0

    def hire(self) -> None:
        """Start the workers, the receivers first: they give the credit."""
        for job in self.transit.receivers:
            worker = self.crew.hire(_with_url(job, self.route.receiver_url))
            worker.tell("go")
            self.receivers.append(worker)
        port = self.receivers[0].port if self.receivers else 0
        url = self.route.sender_url(port)
        self.senders = [self.crew.hire(_with_url(job, url)) for job in self.transit.senders]
        self.companions = [self.crew.hire(_with_url(job, url)) for job in self.transit.companions]

    def measure(self) -> Result:
        time.sleep(self.transit.settle_s)
        counters = _Counters(self.route.usage)
        counters.start()
        for worker in self.senders + self.companions:
            worker.tell("go")
        is_complete = self._drive()
        self._end(self.companions)
        result = Result()
        counters.fill(result)
        self._end(self.receivers)
        self._sum_up(result)
        _judge(result, self.reports(self.senders), self.reports(self.receivers), self.transit)
        if not is_complete:
            result.problems.append(f"nothing arrived any more for {_STALL_S:g} s")
        return result

    def _drive(self) -> bool:
        """Wait until all was sent and received; return whether it was."""
        started_s = self.moved_s = time.monotonic()
        is_finishing = self.transit.seconds <= 0
        while not self._is_complete():
            self.crew.listen(_LISTEN_S)
            now_s = time.monotonic()
            if not is_finishing and now_s - started_s >= self.transit.seconds:
                is_finishing = True
                for worker in self.senders:
                    worker.tell("finish")
            if self._note_progress(now_s) >= _STALL_S:
                return self._give_up()
        return True

    def _note_progress(self, now_s: float) -> float:
        """Return for how long nothing has moved."""
        moved = (
            sum(worker.sent for worker in self.senders),
            sum(worker.delivered for worker in self.receivers or self.senders),
        )
        if moved != self.moved:
            self.moved, self.moved_s = moved, now_s
            if self.transit.progress is not None:
                self.transit.progress(*moved)
        return now_s - self.moved_s

    def _give_up(self) -> bool:
        if all(worker.report for worker in self.senders):
            return False
        sent, delivered = self.moved
        raise PeerError(
            f"nothing moved for {_STALL_S:g} s; sent so far: {sent}, delivered: {delivered}"
        )

    def _is_complete(self) -> bool:
        reports = self.reports(self.senders)
        if len(reports) < len(self.senders):
            return False
        expected = sum(map(_passed, reports)) * self.transit.fan_out
        return not self.receivers or sum(each.delivered for each in self.receivers) >= expected

    def _end(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.tell("finish")
        deadline_s = time.monotonic() + _STALL_S
        while not all(worker.report for worker in workers):
            self.crew.listen(_LISTEN_S)
            if time.monotonic() > deadline_s:
                raise PeerError("a worker did not finish")

    def reports(self, workers: list[Worker]) -> list[Report]:
        """Return what workers reported, in their order."""
        return [worker.report for worker in workers if worker.report is not None]

    def _sum_up(self, result: Result) -> None:
        senders, receivers = self.reports(self.senders), self.reports(self.receivers)
        takers = receivers or senders
        result.sent = sum(report.sent for report in senders)
        result.delivered = sum(report.delivered for report in takers) or result.sent
        first_ns = min(report.first_ns for report in senders)
        last_ns = max([report.last_ns for report in takers] + [senders[0].first_ns])
        result.seconds = max(last_ns - first_ns, 1) / 1e9
        result.rate = result.delivered / result.seconds
        result.mb_per_s = sum(report.payload_bytes for report in takers) / result.seconds / 1e6
        for outcome in ("accepted", "released", "rejected", "modified"):
            setattr(result, outcome, sum(getattr(report, outcome) for report in senders))
        result.latencies_us = next(
            (r.latencies_us for r in senders + receivers if r.latencies_us), {}
        )
        everyone = self.reports(self.senders + self.receivers + self.companions)
        result.worker_cpu_s = sum(report.cpu_s for report in everyone)
        if result.cpu_s is not None and result.delivered:
            result.cpu_s_per_million = result.cpu_s / result.delivered * _MILLION


def _with_url(job: Job, url: str) -> Job:
    return job if job.url else msgspec.structs.replace(job, url=url)


def _passed(report: Report) -> int:
    """Return how many deliveries should arrive somewhere."""
    return report.sent - report.released - report.rejected - report.modified


def _judge(
    result: Result, senders: list[Report], receivers: list[Report], transit: Transit
) -> None:
    """Add a line for each thing that is wrong."""
    problems = result.problems
    if any(each.digest_in and each.digest_in != each.digest_out for each in senders):
        problems.append("the replies are not those to the requests")
    if result.released or result.rejected or result.modified:
        problems.append(
            f"not accepted: {result.released} released, {result.rejected} rejected, "
            f"{result.modified} modified"
        )
    if not receivers:
        return
    expected = sum(map(_passed, senders)) * transit.fan_out
    if result.delivered < expected:
        problems.append(f"lost: {expected - result.delivered} of {expected}")
    elif result.delivered > expected:
        problems.append(f"too many: {result.delivered - expected} more than {expected}")
    repeated = sum(report.repeated for report in receivers)
    if repeated and transit.is_ordered:
        problems.append(f"twice or out of order: {repeated}")
    if aborted := sum(report.aborted for report in receivers):
        problems.append(f"aborted: {aborted}")
    if not problems and not _is_same_sum(senders, receivers, transit.fan_out):
        problems.append("the right number arrived, but not each one once")


def _is_same_sum(senders: list[Report], receivers: list[Report], fan_out: int) -> bool:
    out = sum(report.digest_out for report in senders) * fan_out
    return (out - sum(report.digest_in for report in receivers)) % (1 << 64) == 0
