"""The named measurements, as jobs for workers."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cogwork.bench.image import Subject
from cogwork.bench.jobs import (
    ChurnJob,
    ConsumerJob,
    IdleJob,
    ProducerJob,
    ReplierJob,
    RequesterJob,
)
from cogwork.bench.measure import Result, Route, Transit, measure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("SCENARIOS", "Load", "run_scenario")

_WORDS: Final = 3333
"""How many values each of the three words of a topic has: about ten thousand patterns in all."""

_OWN_CONNECTIONS: Final = 256
"""Up to so many subscribers have a connection each; more share a hundred."""

_SHARED_CONNECTIONS: Final = 100

_TOPIC_CONNECTIONS: Final = 10
"""A subject matches three patterns of ten thousand: few connections keep their writes large."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much of what.

    Attributes:
        count: Deliveries in all; 0: as many as go in `seconds`.
        seconds: How long to send, without a count.
        size_bytes: The body's size.
        credit: Each receiving link's window.
        width: Pairs, consumers, subscribers, requests under way, or connections at once.
        subscriptions_per_s: How many more come and go meanwhile, for `topic`.
        ca_file: For TLS, the certificates to trust.
        certificate_file: For receivers that listen under TLS: certificate and key.
        progress: Told how much was sent and delivered.
    """

    count: int = 0
    seconds: float = 5.0
    size_bytes: int = 100
    credit: int = 5000
    width: int = 0
    subscriptions_per_s: float = 0.0
    ca_file: str | None = None
    certificate_file: str | None = None
    progress: Callable[[int, int], None] | None = None

    def width_or(self, default: int) -> int:
        """Return the width, or the scenario's own."""
        return self.width or default

    def share(self, parts: int) -> int:
        """Return each part's count; 0 stays "until told"."""
        return max(1, self.count // parts) if self.count else 0

    @property
    def limit_s(self) -> float:
        """Returns how long to send; 0: the count decides."""
        return 0.0 if self.count else self.seconds


def run_scenario(name: str, route: Route, load: Load) -> Result:
    """Run the scenario `name`, one of SCENARIOS.

    Raises:
        KeyError: There is none of that name.
        PeerError: It could not be carried out.
    """
    result = SCENARIOS[name].run(route, load)
    result.scenario = name
    return result


@dataclass(frozen=True, slots=True)
class _Scenario:
    """A named measurement.

    Attributes:
        run: Carries it out.
        summary: What it measures, in a line.
    """

    run: Callable[[Route, Load], Result]
    summary: str


def _token() -> str:
    """Return a word that no other run uses in its addresses: nothing old is left in a queue."""
    return f"{os.getpid():x}{time.monotonic_ns() & 0xFFFFFFF:x}"


def _stream(route: Route, load: Load, addresses: list[str], *, settled: bool) -> Result:
    """One producer and one consumer for each address, each with a connection."""
    pairs = len(addresses)
    consumer = ConsumerJob(
        addresses=addresses,
        connections=pairs,
        producers=pairs,
        credit=load.credit,
        ca_file=load.ca_file,
        certificate_file=load.certificate_file,
        name="consumer",
    )
    producer = ProducerJob(
        addresses=list(addresses),
        size_bytes=load.size_bytes,
        settled=settled,
        count=load.share(pairs),
        ca_file=load.ca_file,
        name="producer",
    )
    return measure(
        route, Transit([consumer], [producer], seconds=load.limit_s, progress=load.progress)
    )


def _presettled(route: Route, load: Load) -> Result:
    return _stream(route, load, [f"bench.{_token()}"], settled=True)


def _unsettled(route: Route, load: Load) -> Result:
    return _stream(route, load, [f"bench.{_token()}"], settled=False)


def _pairs(route: Route, load: Load) -> Result:
    token = _token()
    addresses = [f"bench.{token}.{index}" for index in range(load.width_or(4))]
    return _stream(route, load, addresses, settled=True)


def _large(route: Route, load: Load) -> Result:
    size_bytes = max(load.size_bytes, 100 * 1024)
    return _unsettled(route, replace(load, size_bytes=size_bytes, credit=min(load.credit, 100)))


def _shared(route: Route, load: Load, address: str, consumers: int, fan_out: int) -> Result:
    """One producer, and a number of receivers of its address."""
    connections = consumers if consumers <= _OWN_CONNECTIONS else _SHARED_CONNECTIONS
    receiver = ConsumerJob(
        addresses=[address] * consumers,
        connections=connections,
        credit=load.credit,
        ca_file=load.ca_file,
        name="consumer",
    )
    producer = ProducerJob(
        addresses=[address],
        size_bytes=load.size_bytes,
        settled=fan_out > 1,
        count=load.share(fan_out),
        ca_file=load.ca_file,
        name="producer",
    )
    transit = Transit(
        [receiver], [producer], fan_out=fan_out, seconds=load.limit_s, progress=load.progress
    )
    return measure(route, transit)


def _fan_out(route: Route, load: Load) -> Result:
    width = load.width_or(4)
    return _shared(route, load, f"broadcast/bench.{_token()}", width, width)


def _queue(route: Route, load: Load) -> Result:
    return _shared(route, load, f"queue/bench.{_token()}", load.width_or(1), 1)


def _topic(route: Route, load: Load) -> Result:
    """Every message has a subject of its own, and matches three patterns out of ten thousand."""
    prefix = f"topic/bench.{_token()}."
    patterns = [
        prefix + before + f"{word:04}" + after
        for before, after in (("", ".#"), ("*.", ".#"), ("*.*.", ""))
        for word in range(_WORDS)
    ]
    receiver = ConsumerJob(
        addresses=patterns,
        connections=_TOPIC_CONNECTIONS,
        credit=load.credit,
        ca_file=load.ca_file,
        name="subscriber",
    )
    never = 1 << 62
    words = ((_WORDS, 1, never), (_WORDS, 1009, _WORDS), (_WORDS, 2003, never))
    producer = ProducerJob(
        addresses=[None],
        subject=Subject(prefix, words),
        size_bytes=load.size_bytes,
        count=load.count,
        ca_file=load.ca_file,
        name="publisher",
    )
    transit = Transit(
        [receiver],
        [producer],
        companions=_subscription_churn(load, prefix),
        fan_out=3,
        seconds=load.limit_s,
        progress=load.progress,
    )
    return measure(route, transit)


def _subscription_churn(load: Load, prefix: str) -> list[ChurnJob]:
    """Patterns that match nothing, since the counter is longer than any word."""
    if load.subscriptions_per_s <= 0:
        return []
    return [
        ChurnJob(
            what="subscription",
            address=prefix + "*.{}.#",
            width=10,
            rate=load.subscriptions_per_s,
            ca_file=load.ca_file,
            name="visitor",
        )
    ]


def _request_reply(route: Route, load: Load) -> Result:
    address = f"bench.{_token()}"
    replier = ReplierJob(address=address, credit=load.credit, ca_file=load.ca_file, name="service")
    requester = RequesterJob(
        address=address,
        size_bytes=load.size_bytes,
        depth=load.width_or(1),
        count=load.count,
        ca_file=load.ca_file,
        name="caller",
    )
    transit = Transit([replier], [requester], seconds=load.limit_s, progress=load.progress)
    return measure(route, transit)


def _connections(route: Route, load: Load) -> Result:
    return _churn(route, load, "connection")


def _links(route: Route, load: Load) -> Result:
    return _churn(route, load, "link")


def _churn(route: Route, load: Load, what: str) -> Result:
    job = ChurnJob(
        what="connection" if what == "connection" else "link",
        address=f"bench.{_token()}",
        width=load.width_or(8),
        count=load.count,
        ca_file=load.ca_file,
        name="churn",
    )
    return measure(route, Transit([], [job], seconds=load.limit_s, progress=load.progress))


def _idle(route: Route, load: Load) -> Result:
    """Memory: what the server has more at its peak than before, for each connection."""
    job = IdleJob(
        address=f"bench.{_token()}.{{}}",
        connections=load.width_or(2000),
        credit=load.credit,
        ca_file=load.ca_file,
        name="idle",
    )
    return measure(route, Transit([], [job], seconds=0.5, progress=load.progress))


SCENARIOS: Final[dict[str, _Scenario]] = {
    "presettled": _Scenario(_presettled, "one producer, one consumer, settled by the sender"),
    "unsettled": _Scenario(_unsettled, "one producer, one consumer, each delivery accepted"),
    "fan-out": _Scenario(_fan_out, "one producer, --consumers subscribers, multicast"),
    "pairs": _Scenario(_pairs, "--pairs producers, each with its own consumer"),
    "queue": _Scenario(_queue, "one producer, --consumers consumers, through a stored queue"),
    "topic": _Scenario(_topic, "10,000 wildcard subscriptions, every subject a new one, fan-out 3"),
    "request-reply": _Scenario(_request_reply, "--outstanding requests under way, a reply each"),
    "large": _Scenario(_large, "bodies of 100 KiB, unsettled"),
    "connections": _Scenario(_connections, "connect, authenticate, attach, close"),
    "links": _Scenario(_links, "attach and detach on one connection"),
    "idle": _Scenario(_idle, "memory for each connection that holds a receiver and does nothing"),
}
