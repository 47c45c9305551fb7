"""Switching rates: what was measured, and what a cluster could do with so much bandwidth.

Theory of operation. The model is that of the first estimates for such clusters. A broker takes
`capacity` messages a second and switches each of them to Q queues, so that its switching rate is
Q · capacity; B brokers, to which a root fans out, have B · Q · capacity. Inside (ISR) nothing else
limits it. Outside (XSR) a broker's network does: at most bandwidth / message size leave it in a
second, so the largest practical Q is that divided by the capacity; B has the same limit, as the
root sends to B brokers. Where a network is less efficient, only a share of its bandwidth counts:
outside, towards clients, for Q, and inside the cluster for B. The cluster is 1 + B. TM is thousand
million, wd a working day of 8 hours.

The estimates assume 10,000 messages a second of 1000 bytes, or more realistically 25,000 of 250.
What was measured takes the place of the assumed capacity: messages that came in a second, at the
broker that fans out.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from cogwork.pipeline.analytics.errors import AnalyticsError

__all__ = ("ASSUMED", "Capacity", "Run", "capacities", "limit_of", "parse_bandwidth", "tm_per_wd")

WORKING_DAY_S: Final = 8 * 3600
TM: Final = 1e9

ASSUMED: Final = {1000: 10_000.0, 250: 25_000.0}
"""Messages a second that the estimates assume of a broker, by the size of messages in bytes."""

SHARES: Final = ((1.0, 1.0), (0.3, 1.0), (0.3, 0.3))
"""How much of the bandwidth can be used outside and inside: the cases of the estimates."""

UNITS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(slots=True)
class Run:
    """What `cogwork bench isr` or `xsr` measured once; its fields in `stream/$telemetry`."""

    bench: str
    time_us: int
    brokers: int
    queues: int
    size_bytes: int
    seconds: float
    messages_in: int
    messages: int
    rate: float
    single_rate: float | None
    efficiency: float | None
    wanted_brokers: int
    wanted_queues: int
    by_broker: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def estimate(self) -> float:
        """What the document's model says for as many brokers and queues as were asked for."""
        capacity = ASSUMED.get(self.size_bytes, ASSUMED[1000] * 1000 / self.size_bytes)
        return self.wanted_brokers * self.wanted_queues * capacity

    def as_dict(self) -> dict[str, Any]:
        """Return it with what follows from it."""
        return {
            **asdict(self),
            "tm_per_wd": tm_per_wd(self.rate),
            "estimated_rate": self.estimate,
            "estimated_tm_per_wd": tm_per_wd(self.estimate),
        }


@dataclass(slots=True)
class Capacity:
    """How large fan-out and cluster may be.

    Attributes:
        source: `document` or `measured`.
        size_bytes: The size of messages.
        capacity: Messages that a broker takes a second.
        outside: The part of the bandwidth that can be used towards clients.
        inside: The part that can be used between brokers.
        network_rate: Messages that can leave a broker for clients a second.
        q_exact: The largest fan-out, as it is computed.
        q: The same as a whole number: the nearest, at least one.
        brokers: The most brokers below a root, in the same way.
        cluster_size: These and the root.
        xsr: Messages a second that the whole cluster sends to clients.
        tm_per_wd: The same in thousand millions for a working day.
    """

    source: str
    size_bytes: int
    capacity: float
    outside: float
    inside: float
    network_rate: float
    q_exact: float
    q: int
    brokers: int
    cluster_size: int
    xsr: float
    tm_per_wd: float


def tm_per_wd(rate: float) -> float:
    """Turn messages a second into thousand millions for a working day."""
    return rate * WORKING_DAY_S / TM


def limit_of(
    source: str,
    size_bytes: int,
    capacity: float,
    bandwidth_bit_s: float,
    shares: tuple[float, float] = (1.0, 1.0),
) -> Capacity:
    """Return how large fan-out and cluster may be.

    Args:
        source: Where the capacity is from.
        size_bytes: The size of messages.
        capacity: Messages that a broker takes a second.
        bandwidth_bit_s: The bandwidth of a broker's network.
        shares: The parts of it that can be used: towards clients, between brokers.
    """
    outside, inside = shares
    whole = bandwidth_bit_s / 8 / size_bytes
    q_exact = whole * outside / capacity
    q = max(1, round(q_exact))
    brokers = max(1, round(whole * inside / capacity))
    xsr = brokers * q * capacity
    return Capacity(
        source,
        size_bytes,
        capacity,
        outside,
        inside,
        whole * outside,
        q_exact,
        q,
        brokers,
        cluster_size=brokers + 1,
        xsr=xsr,
        tm_per_wd=tm_per_wd(xsr),
    )


def capacities(runs: list[Run], bandwidth_bit_s: float) -> list[Capacity]:
    """Set the document's limits beside those that follow from measured capacities."""
    found = [
        limit_of("document", size, capacity, bandwidth_bit_s, shares)
        for size, capacity in ASSUMED.items()
        for shares in SHARES
    ]
    newest: dict[int, Run] = {}
    for run in sorted(runs, key=lambda run: (run.time_us, run.queues)):
        if run.bench == "xsr" and run.seconds > 0 and run.messages_in:
            newest[run.size_bytes] = run
    for size, run in sorted(newest.items(), reverse=True):
        capacity = run.messages_in / run.seconds
        found += [
            limit_of("measured", size, capacity, bandwidth_bit_s, shares) for shares in SHARES
        ]
    return found


def parse_bandwidth(text: str) -> float:
    """Read `1Gbit`, `100 Mbit/s`, `125MB`; return bits a second.

    Raises:
        AnalyticsError: It is not written like that.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtKMGT]?)(bit|b|B)(/s|ps)?\s*", text)
    if match is None or float(match[1]) <= 0:
        raise AnalyticsError(f"{text!r} is no bandwidth such as 1Gbit, 100Mbit or 125MB")
    bits = 8 if match[3] == "B" else 1
    return float(match[1]) * UNITS[match[2].lower()] * bits
