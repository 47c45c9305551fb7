"""What each job means: how its connections are set up, driven and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from cogwork.amqp.performatives import Role as LinkRole
from cogwork.bench.churn import ChurnRole, IdleRole
from cogwork.bench.consumer import Consumer
from cogwork.bench.crowd import Crowd
from cogwork.bench.image import delivery, reply_head
from cogwork.bench.jobs import (
    ChurnJob,
    ConsumerJob,
    IdleJob,
    Job,
    ProducerJob,
    ReplierJob,
    Report,
    RequesterJob,
)
from cogwork.bench.listener import accept
from cogwork.bench.peer import Link, Peer, dial
from cogwork.bench.producer import Producer
from cogwork.bench.rpc import Replier, Requester
from cogwork.bench.url import PeerError, Url

if TYPE_CHECKING:
    import socket

__all__ = ("Role", "role_for")

_DIGEST_BITS: Final = 64

_FIRST_CREDIT_S: Final = 0.02
"""Enough for a process to grant its links their first credit before it says that it is ready."""


class Role(Protocol):
    """What the worker does with a job, from outside."""

    def prepare(self) -> None:
        """Connect and attach; the worker is then ready."""

    def start(self) -> None:
        """Called when all workers are ready."""

    def run(self, slice_s: float) -> bool:
        """Work for about `slice_s` seconds; return whether everything is done."""

    def finish(self) -> None:
        """End as soon as what was begun is complete."""

    def progress(self) -> tuple[int, int]:
        """Return how much was sent and received so far."""

    def report(self) -> Report:
        """Return what was done."""

    def close(self) -> None:
        """Close all connections."""


def role_for(job: Job, server: socket.socket | None) -> Role:
    """Return the role for a job.

    Args:
        job: What to do.
        server: Where a consumer or a replier takes its connections from; None: it connects.
    """
    match job:
        case ProducerJob():
            return _ProducerRole(job)
        case ConsumerJob():
            return _ConsumerRole(job, server)
        case RequesterJob():
            return _RequesterRole(job)
        case ReplierJob():
            return _ReplierRole(job, server)
        case ChurnJob():
            return ChurnRole(job)
        case IdleJob():
            return IdleRole(job)


def _wrap_digest(digest: int) -> int:
    """Keep a sum of digests in 64 bits, as the compiled roles do."""
    return digest % (1 << _DIGEST_BITS)


class _Connected:
    """What the roles share: peers, and the crowd that drives their wires."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []
        self.crowd: Crowd | None = None

    def dial(self, url: str, name: str, ca_file: str | None) -> Peer:
        peer = dial(Url.parse(url), f"{name}-{len(self.peers)}", ca_file)
        self.peers.append(peer)
        return peer

    def start(self) -> None:
        pass

    def run(self, slice_s: float) -> bool:
        assert self.crowd is not None
        return self.crowd.run(slice_s)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()


class _ProducerRole(_Connected):
    """One connection with a sending link for each address."""

    def __init__(self, job: ProducerJob) -> None:
        super().__init__()
        self._job = job
        self._wires: list[Producer] = []

    def prepare(self) -> None:
        job = self._job
        for index, address in enumerate(job.addresses):
            peer = self.dial(job.url, job.name, job.ca_file)
            link = peer.attach_sender(address, settled=job.settled)
            image = delivery(
                link.handle,
                job.size_bytes,
                peer.max_frame_size,
                settled=job.settled,
                to=job.subject,
            )
            wire = Producer(peer, link, image, job.first_number + index)
            if job.count:
                wire.aim(job.count)
            self._wires.append(wire)

    def start(self) -> None:
        self.crowd = Crowd(list(zip(self.peers, self._wires, strict=True)))

    def finish(self) -> None:
        for wire in self._wires:
            wire.aim(0)

    def progress(self) -> tuple[int, int]:
        return sum(wire.sent for wire in self._wires), 0

    def report(self) -> Report:
        wires = self._wires
        return Report(
            sent=sum(wire.sent for wire in wires),
            digest_out=_wrap_digest(sum(wire.digest for wire in wires)),
            accepted=sum(wire.accepted for wire in wires),
            released=sum(wire.released for wire in wires),
            rejected=sum(wire.rejected for wire in wires),
            modified=sum(wire.modified for wire in wires),
            first_ns=min(wire.first_ns for wire in wires),
            last_ns=max(wire.last_ns for wire in wires),
        )


class _ConsumerRole(_Connected):
    """Receiving links, dealt out over connections; or the sink of another process."""

    def __init__(self, job: ConsumerJob, server: socket.socket | None) -> None:
        super().__init__()
        self._job = job
        self._server = server
        self._wires: list[Consumer] = []
        self._is_finishing = False

    def prepare(self) -> None:
        if self._server is None:
            for index in range(self._job.connections):
                job = self._job
                peer = self.dial(job.url, job.name, job.ca_file)
                self._add(peer, peer.attach_receivers(job.addresses[index :: job.connections]))
            self.crowd = Crowd(list(zip(self.peers, self._wires, strict=True)))
            self.crowd.run(_FIRST_CREDIT_S)

    def start(self) -> None:
        if self._server is None:
            return
        for _ in range(self._job.connections):
            peer = accept(self._server, self._job.certificate_file)
            self.peers.append(peer)
            self._add(peer, [peer.accept_link()[1]])
        self.crowd = Crowd(list(zip(self.peers, self._wires, strict=True)))

    def _add(self, peer: Peer, links: list[Link]) -> None:
        job = self._job
        wire = Consumer(peer, links, job.producers, job.credit, is_timed=job.is_timed)
        self._wires.append(wire)

    def run(self, slice_s: float) -> bool:
        return self._is_finishing or super().run(slice_s) or self._has_enough()

    def _has_enough(self) -> bool:
        return 0 < self._job.count <= self.progress()[1]

    def finish(self) -> None:
        self._is_finishing = True

    def progress(self) -> tuple[int, int]:
        return 0, sum(wire.delivered for wire in self._wires)

    def report(self) -> Report:
        wires = self._wires
        first_ns = [wire.first_ns for wire in wires if wire.delivered]
        return Report(
            delivered=sum(wire.delivered for wire in wires),
            digest_in=_wrap_digest(sum(wire.digest for wire in wires)),
            missing=sum(wire.missing for wire in wires),
            repeated=sum(wire.repeated for wire in wires),
            aborted=sum(wire.aborted for wire in wires),
            payload_bytes=sum(wire.payload_bytes for wire in wires),
            first_ns=min(first_ns, default=0),
            last_ns=max((wire.last_ns for wire in wires if wire.delivered), default=0),
            latencies_us=wires[0].latency.summary_us(),
        )


class _RequesterRole(_Connected):
    """One connection that sends requests and receives the replies."""

    def __init__(self, job: RequesterJob) -> None:
        super().__init__()
        self._job = job
        self._wire: Requester | None = None

    def prepare(self) -> None:
        job = self._job
        peer = self.dial(job.url, job.name, job.ca_file)
        link = peer.attach_sender(job.address, settled=job.settled)
        replies = peer.attach_dynamic()
        image = delivery(
            link.handle,
            job.size_bytes,
            peer.max_frame_size,
            settled=job.settled,
            to=job.address,
            reply_to=replies.address,
        )
        if len(image.frame_sizes) > 1:
            raise PeerError(f"a request of {job.size_bytes} bytes does not fit one frame")
        self._wire = Requester(peer, link, image, 0, replies, job.depth)
        if job.count:
            self._wire.aim(job.count)
        self.crowd = Crowd([(peer, self._wire)])

    def finish(self) -> None:
        assert self._wire is not None
        self._wire.aim(0)

    def progress(self) -> tuple[int, int]:
        return (self._wire.sent, self._wire.answered) if self._wire else (0, 0)

    def report(self) -> Report:
        wire = self._wire
        assert wire is not None
        return Report(
            sent=wire.sent,
            digest_out=wire.digest,
            delivered=wire.answered,
            digest_in=wire.reply_digest,
            first_ns=wire.first_ns,
            last_ns=wire.last_ns,
            latencies_us=wire.latency.summary_us(),
        )


class _ReplierRole(_Connected):
    """One connection that answers requests; or both links of a requester that connects to us."""

    def __init__(self, job: ReplierJob, server: socket.socket | None) -> None:
        super().__init__()
        self._job = job
        self._server = server
        self._wire: Replier | None = None
        self._is_finishing = False

    def prepare(self) -> None:
        job = self._job
        if self._server is None:
            peer = self.dial(job.url, job.name, job.ca_file)
            (requests,) = peer.attach_receivers([job.address])
            self._take(peer, requests, peer.attach_sender(None, settled=job.settled))
            self.run(_FIRST_CREDIT_S)

    def start(self) -> None:
        if self._server is not None:
            peer = accept(self._server, self._job.certificate_file)
            self.peers.append(peer)
            links = dict(peer.accept_link() for _ in range(2))
            self._take(peer, links[LinkRole.RECEIVER], links[LinkRole.SENDER])

    def _take(self, peer: Peer, requests: Link, replies: Link) -> None:
        image = reply_head(replies.handle, settled=self._job.settled)
        self._wire = Replier(peer, requests, image, replies, self._job.credit)
        self.crowd = Crowd([(peer, self._wire)])

    def run(self, slice_s: float) -> bool:
        return self._is_finishing or super().run(slice_s)

    def finish(self) -> None:
        self._is_finishing = True

    def progress(self) -> tuple[int, int]:
        return 0, self._wire.replied if self._wire else 0

    def report(self) -> Report:
        wire = self._wire
        if wire is None:
            return Report()
        return Report(
            delivered=wire.replied,
            digest_in=wire.digest,
            repeated=wire.repeated,
            first_ns=wire.first_ns,
            last_ns=wire.last_ns,
        )
