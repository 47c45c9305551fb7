"""What a worker process is told, and what it reports: JSON, typed by msgspec."""

from __future__ import annotations

from typing import Literal

import msgspec

from cogwork.bench.image import Subject  # noqa: TC001  # msgspec reads the annotations

__all__ = (
    "ChurnJob",
    "ConsumerJob",
    "Event",
    "IdleJob",
    "Job",
    "ProducerJob",
    "ReplierJob",
    "Report",
    "RequesterJob",
    "Told",
)


class _Base(msgspec.Struct, tag_field="role", kw_only=True, frozen=True):
    """What all jobs have.

    Attributes:
        url: Where to connect to; empty: listen on a free port, and report it when ready.
        ca_file: For TLS, the certificates to trust.
        certificate_file: To listen under TLS: certificate and key.
        name: Starts the container ids.
    """

    url: str = ""
    ca_file: str | None = None
    certificate_file: str | None = None
    name: str = "loadgen"


class ProducerJob(_Base, tag="producer", frozen=True):
    """Send deliveries.

    Attributes:
        addresses: One for each connection; None is the anonymous relay.
        subject: Where each message goes, on the anonymous relay.
        size_bytes: The body's size.
        settled: Whether deliveries are sent settled.
        first_number: The first connection's producer number; the others follow.
        count: Deliveries of each connection; 0: until told to finish.
    """

    addresses: list[str | None]
    subject: Subject | None = None
    size_bytes: int = 100
    settled: bool = True
    first_number: int = 0
    count: int = 0


class ConsumerJob(_Base, tag="consumer", frozen=True):
    """Receive deliveries and check them.

    Attributes:
        addresses: One for each link.
        connections: Over how many connections the links are dealt out.
        producers: How many producers number their messages.
        credit: Each link's window.
        is_timed: Whether latencies are kept.
        count: Deliveries in all, or some more, after which it stays and reads nothing; 0: until
            told to finish.
    """

    addresses: list[str]
    connections: int = 1
    producers: int = 1
    credit: int = 5000
    is_timed: bool = False
    count: int = 0


class RequesterJob(_Base, tag="requester", frozen=True):
    """Send requests and wait for the replies.

    Attributes:
        address: The service.
        size_bytes: The body's size.
        depth: Requests under way.
        count: Requests in all; 0: until told to finish.
        settled: Whether requests are sent settled.
    """

    address: str
    size_bytes: int = 100
    depth: int = 1
    count: int = 0
    settled: bool = True


class ReplierJob(_Base, tag="replier", frozen=True):
    """Answer requests, until told to finish.

    Attributes:
        address: The service.
        credit: The window for requests.
        settled: Whether replies are sent settled.
    """

    address: str
    credit: int = 5000
    settled: bool = True


class ChurnJob(_Base, tag="churn", frozen=True):
    """Let connections, links or subscriptions come and go.

    Attributes:
        what: `connection`: connect, attach, close; `link`: attach and detach on one connection;
            `subscription`: the same with an address of its own each.
        address: The receiving links'; `{}` stands for a counter.
        width: How many at once.
        count: How many in all; 0: until told to finish.
        rate: How many a second at most; 0: as fast as possible.
    """

    what: Literal["connection", "link", "subscription"]
    address: str
    width: int = 8
    count: int = 0
    rate: float = 0.0


class IdleJob(_Base, tag="idle", frozen=True):
    """Hold connections that do nothing, each with a receiving link, until told to finish.

    Attributes:
        address: The links'; `{}` stands for a counter.
        connections: How many.
        credit: Each link's window.
    """

    address: str
    connections: int
    credit: int = 100


Job = ProducerJob | ConsumerJob | RequesterJob | ReplierJob | ChurnJob | IdleJob


class Report(msgspec.Struct, kw_only=True):
    """What a worker did; sums and percentiles over its connections.

    Attributes:
        sent: Deliveries, or requests, sent; for churn, how many came and went.
        digest_out: The sum of the scrambled sequence numbers sent.
        accepted: Outcomes, as for the three that follow.
        delivered: Deliveries, or replies, received.
        digest_in: The sum of the scrambled sequence numbers received.
        missing: Gaps in the sequence numbers, for each link and producer.
        repeated: Deliveries that came twice or out of order.
        aborted: Deliveries that were aborted.
        payload_bytes: Message bytes received.
        first_ns: When the first one was sent or received, on the monotonic clock.
        last_ns: When the last one was.
        latencies_us: Percentile → microseconds, where they were kept.
        cpu_s: The worker's own CPU time.
    """

    sent: int = 0
    digest_out: int = 0
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    modified: int = 0
    delivered: int = 0
    digest_in: int = 0
    missing: int = 0
    repeated: int = 0
    aborted: int = 0
    payload_bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    latencies_us: dict[str, float] = {}
    cpu_s: float = 0.0


class Event(msgspec.Struct, omit_defaults=True):
    """A line that a worker prints.

    Attributes:
        kind: `ready`, `progress`, `done` or `failed`.
        sent: How much was sent so far.
        delivered: How much was received so far.
        port: Where it listens.
        report: What it did, when done.
        message: What went wrong.
        condition: The AMQP error condition, where the peer named one.
    """

    kind: Literal["ready", "progress", "done", "failed"]
    sent: int = 0
    delivered: int = 0
    port: int = 0
    report: Report | None = None
    message: str = ""
    condition: str = ""


Told = Literal["go", "finish", "close"]
"""A line that a worker reads behind its job."""
