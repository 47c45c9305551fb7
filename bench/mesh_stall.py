"""One anycast consumer stops; its publisher must, and another address on the link must not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cogwork.bench.crew import Crew, Worker
from cogwork.bench.jobs import ConsumerJob, ProducerJob

if TYPE_CHECKING:
    from fleet import Fleet

__all__ = ("FASTER", "HELD", "stall")

HELD: Final = "sent beyond what the stopped one took"
FASTER: Final = "the other's messages a CPU-s, after against before"

_SAMPLE_S: Final = 4.0
_WARM_UP_S: Final = 2.0
_QUIET_S: Final = 1.0
_STOP_AT: Final = 500_000


def stall(fleet: Fleet, address: str) -> tuple[dict[str, float], float, list[str]]:
    """Measure the other address alone, then stop the first one's consumer and measure again.

    Returns:
        The figures, the other's rate at the end, and what was wrong.
    """
    with Crew() as crew:
        _, other = _pair(crew, fleet, f"{address}.other")
        other.tell("go")
        _listen(crew, _WARM_UP_S)
        before, _ = _measure(crew, fleet, other)
        consumer, sender = _pair(crew, fleet, f"{address}.stopped", _STOP_AT)
        sender.tell("go")
        seen = -1
        while seen != sender.sent:
            seen = sender.sent
            _listen(crew, _QUIET_S)
        after, rate = _measure(crew, fleet, other)
        problems = [] if consumer.report else ["the consumer was not served until it stopped"]
        held = seen - (consumer.report.delivered if consumer.report else 0)
        return {HELD: float(held), FASTER: after / before}, rate, problems


def _pair(crew: Crew, fleet: Fleet, address: str, count: int = 0) -> tuple[Worker, Worker]:
    """Hire a consumer at b, which stops after `count` messages, and a producer at a."""
    consumer = crew.hire(ConsumerJob(url=fleet["b"].url, addresses=[address], count=count))
    consumer.tell("go")
    return consumer, crew.hire(ProducerJob(url=fleet["a"].url, addresses=[address], settled=False))


def _measure(crew: Crew, fleet: Fleet, sender: Worker) -> tuple[float, float]:
    """Return what an address carries for each CPU second of the containers, and a second."""
    usage = fleet.usage
    started_s, cpu_s, sent = time.monotonic(), usage.cpu_s(), sender.sent
    _listen(crew, _SAMPLE_S)
    count = sender.sent - sent
    return count / (usage.cpu_s() - cpu_s), count / (time.monotonic() - started_s)


def _listen(crew: Crew, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        crew.listen(left_s)
