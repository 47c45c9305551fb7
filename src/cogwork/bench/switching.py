"""How much brokers switch: into sinks inside (ISR), and to clients outside (XSR).

Theory of operation. The internal switching rate is what a faucet gets through brokers into queues
that discard it: a faucet for each broker, with a connection for each of Q sinks, and every message
is confirmed by the broker. The external one is what leaves the brokers: one faucet publishes to a
topic at the first broker, and Q subscribers at each of the others get every message.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from cogwork.bench.jobs import ConsumerJob, ProducerJob
from cogwork.bench.measure import Broker, Transit, measure_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.bench.jobs import Report

__all__ = ("SHAPES", "SIZES_BYTES", "OfBroker", "Shape", "Switched", "measure_isr", "measure_xsr")

WORKING_DAY_S: Final = 8 * 3600
"""The document counts in working days of eight hours."""

THOUSAND_MILLION: Final = 1e9

LINKED_S: Final = 1.0
"""Within it the first broker knows of the subscribers at the others."""


class Shape(NamedTuple):
    """How many brokers, and how many queues or clients at each."""

    brokers: int
    queues: int


SHAPES: Final = (Shape(7, 12), Shape(3, 4))
"""The document's: for the internal rate, and for the external one."""

SIZES_BYTES: Final = (1000, 250)


class OfBroker(msgspec.Struct, kw_only=True):
    """One broker's part.

    Attributes:
        url: Where it listens, without a password.
        messages: What it switched.
        rate: The same a second.
    """

    url: str
    messages: int
    rate: float


class Switched(msgspec.Struct, kw_only=True):
    """One run, as it is printed and appended to the telemetry.

    Attributes:
        kind: What kind of record it is.
        bench: Which rate was measured.
        time_us: When the run ended, in microseconds since 1970.
        document: The shape that the document asks for.
        brokers: How many brokers switched here; for the external rate without the first one.
        queues: Sinks, or clients, at each of them.
        size_bytes: The body's size.
        seconds: From the first message to the last one.
        messages_in: What the faucets sent.
        messages: What was switched.
        rate: The same a second: the switching rate.
        ratio: Messages switched for each one sent.
        mb_per_s: Bytes of bodies switched a second, in 10^6.
        tm_per_wd: The rate in thousand millions for a working day.
        by_broker: Each broker's part.
        single_rate: The rate of one broker alone, with as many queues.
        efficiency: The rate for what as many brokers would have switched alone.
        problems: What was lost, repeated or refused; empty: everything is right.
    """

    kind: Literal["bench"] = "bench"
    bench: Literal["isr", "xsr"]
    time_us: int
    document: dict[str, int]
    brokers: int
    queues: int
    size_bytes: int
    seconds: float
    messages_in: int
    messages: int
    rate: float
    ratio: float
    mb_per_s: float
    tm_per_wd: float
    by_broker: list[OfBroker]
    single_rate: float
    efficiency: float
    problems: list[str]


def measure_isr(
    urls: Sequence[str], shape: Shape, size_bytes: int, seconds: float, ca_file: str | None = None
) -> Switched:
    """Measure what faucets get into sinks, at one broker and then at all of them at once.

    Args:
        urls: The brokers'; as many are used as the shape says.
        shape: The document's.
        size_bytes: The body's size.
        seconds: How long to send.
        ca_file: For TLS, the certificates to trust.

    Raises:
        PeerError: It could not be carried out.
    """
    used = urls[: shape.brokers]

    def run(some: Sequence[str]) -> _Run:
        token = _token()
        faucets = [
            ProducerJob(
                url=url,
                addresses=[f"sink/isr.{token}.{index}" for index in range(shape.queues)],
                size_bytes=size_bytes,
                settled=False,
                ca_file=ca_file,
                name="faucet",
            )
            for url in some
        ]
        transit = Transit([], faucets, seconds=seconds)
        result, senders, _ = measure_each(Broker(some[0]), transit)
        return _Run(result.seconds, result.sent, senders, result.problems)

    single = run(used[:1])
    runs = (single, run(used) if used[1:] else single)
    return _switched("isr", used, shape, size_bytes, runs)


def measure_xsr(
    urls: Sequence[str], shape: Shape, size_bytes: int, seconds: float, ca_file: str | None = None
) -> Switched:
    """Measure what one faucet at the first broker gets to clients of the others.

    Args:
        urls: The brokers', linked with each other; one alone is faucet's and clients' broker.
        shape: The document's.
        size_bytes: The body's size.
        seconds: How long to send.
        ca_file: For TLS, the certificates to trust.

    Raises:
        PeerError: It could not be carried out.
    """
    used = urls[1 : shape.brokers + 1] or urls[:1]

    def run(some: Sequence[str]) -> _Run:
        address = f"topic/xsr.{_token()}"
        clients = [
            ConsumerJob(
                url=url,
                addresses=[address] * shape.queues,
                connections=shape.queues,
                ca_file=ca_file,
                name="client",
            )
            for url in some
        ]
        faucet = ProducerJob(
            url=urls[0], addresses=[address], size_bytes=size_bytes, ca_file=ca_file, name="faucet"
        )
        fan_out = len(some) * shape.queues
        transit = Transit(clients, [faucet], fan_out=fan_out, seconds=seconds, settle_s=LINKED_S)
        result, _, receivers = measure_each(Broker(urls[0]), transit)
        return _Run(result.seconds, result.sent, receivers, result.problems)

    single = run(urls[:1])
    runs = (single, run(used) if urls[1:] else single)
    return _switched("xsr", used, shape, size_bytes, runs)


class _Run(NamedTuple):
    """What came of one run: how long it took, what went in, and what each broker switched."""

    seconds: float
    sent: int
    reports: list[Report]
    problems: list[str]

    @property
    def counts(self) -> list[int]:
        return [each.delivered or each.sent for each in self.reports]


def _switched(
    bench: Literal["isr", "xsr"],
    urls: Sequence[str],
    shape: Shape,
    size_bytes: int,
    runs: tuple[_Run, _Run],
) -> Switched:
    """Sum up two runs: at one broker, and at all of them."""
    single, run = runs
    messages = sum(run.counts)
    rate = messages / run.seconds
    single_rate = sum(single.counts) / single.seconds
    return Switched(
        bench=bench,
        time_us=time.time_ns() // 1000,
        document=shape._asdict(),
        brokers=len(urls),
        queues=shape.queues,
        size_bytes=size_bytes,
        seconds=round(run.seconds, 3),
        messages_in=run.sent,
        messages=messages,
        rate=round(rate, 1),
        ratio=round(messages / max(run.sent, 1), 3),
        mb_per_s=round(rate * size_bytes / 1e6, 3),
        tm_per_wd=round(rate * WORKING_DAY_S / THOUSAND_MILLION, 3),
        by_broker=[
            OfBroker(url=_public(url), messages=count, rate=round(count / run.seconds, 1))
            for url, count in zip(urls, run.counts, strict=True)
        ],
        single_rate=round(single_rate, 1),
        efficiency=round(rate / (single_rate * len(urls)), 3),
        problems=list(dict.fromkeys((*single.problems, *run.problems))),
    )


def _public(url: str) -> str:
    """Leave name and password out."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _token() -> str:
    """Return a word that no other run uses in its addresses."""
    return f"{os.getpid():x}{time.monotonic_ns() & 0xFFFFFFF:x}"
