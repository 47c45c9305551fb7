"""Connections, links and subscriptions that come and go, and connections that only stay.

The octets are encoded once; from an answer only the size and the code of each frame are read. So
the process spends its time in system calls, and the peer is what is measured.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.frames import (
    AMQP_HEADER,
    FRAME_HEADER_BYTES,
    PROTOCOL_HEADER_BYTES,
    SASL_HEADER,
    FrameType,
    encode_frame,
)
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    Performative,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.redirect import FORCE
from cogwork.amqp.sasl import ANONYMOUS, SaslInit, encode_sasl
from cogwork.amqp.terminus import Source
from cogwork.bench.histogram import Histogram
from cogwork.bench.jobs import ChurnJob, IdleJob, Report
from cogwork.bench.peer import TIMEOUT_S, WINDOW, Peer, dial, receiver_attach
from cogwork.bench.stream import MAX_FRAME_SIZE, farewell
from cogwork.bench.url import PeerError, UnreachableError, Url

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ("ChurnRole", "IdleRole")

_COUNTER: Final = "00000000"
"""What stands in encoded addresses where the counter goes."""

_CODE_AT: Final = FRAME_HEADER_BYTES + 2
"""Where a frame has its performative's code: behind 0x00 0x53."""

_HEARTBEAT: Final = encode_frame(0, b"")
_SASL_MECHANISMS: Final = 0x40
_SASL_OUTCOME: Final = 0x44
_ENDINGS: Final = frozenset({Detach.DESCRIPTOR, End.DESCRIPTOR, Close.DESCRIPTOR})


def _encode(*performatives: Performative) -> bytes:
    return b"".join(encode_frame(0, encode_performative(each)) for each in performatives)


def _attach(handle: int, address: str) -> bytes:
    source = Source(address=address.replace("{}", _COUNTER))
    return _encode(receiver_attach(handle, source, f"churn-{_COUNTER}"))


class _Answers:
    """Reads a socket until the frames that were waited for have come."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._buffer = b""

    def header(self, wanted: bytes) -> None:
        """Wait for a protocol header."""
        self._fill(PROTOCOL_HEADER_BYTES)
        found, self._buffer = self._buffer[:PROTOCOL_HEADER_BYTES], self._buffer[8:]
        if found != wanted:
            raise PeerError(f"the protocol header is {found!r}, not {wanted!r}")

    def wait(self, code: int, count: int = 1) -> None:
        """Wait for `count` frames with this code; other harmless ones are passed over."""
        while count:
            self._fill(FRAME_HEADER_BYTES)
            size = int.from_bytes(self._buffer[:4], "big")
            self._fill(size)
            frame, self._buffer = self._buffer[:size], self._buffer[size:]
            found = frame[_CODE_AT] if size > _CODE_AT else 0
            if found in _ENDINGS and _has_error(frame, found, code):
                raise _ending(frame)
            if found == code:
                count -= 1

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            try:
                part = self.socket.recv(65536)
            except OSError as error:
                raise PeerError(f"the connection was lost: {error}") from None
            if not part:
                raise PeerError("the peer closed the connection")
            self._buffer += part


def _has_error(frame: bytes, found: int, wanted: int) -> bool:
    """Return whether an ending was not asked for, or say why it came."""
    return found != wanted or b"amqp:" in frame


def _ending(frame: bytes) -> PeerError:
    try:
        return farewell(decode_performative(frame, FRAME_HEADER_BYTES)[0])
    except ProtocolError as error:
        return PeerError(f"the peer broke the protocol: {error}")


class _ConnectionRounds:
    """Connect, authenticate, open, begin, attach, close: a number of connections in step."""

    def __init__(self, job: ChurnJob) -> None:
        self._url = Url.parse(job.url)
        if self._url.is_tls:
            raise PeerError("connections churn without TLS only: use amqp://")
        self._width = job.width
        sasl = SaslInit(mechanism=ANONYMOUS, initial_response=b"loadgen")
        self._init = encode_frame(0, encode_sasl(sasl), FrameType.SASL)
        opened = Open(
            container_id=job.name,
            hostname=self._url.hostname,
            max_frame_size=MAX_FRAME_SIZE,
            channel_max=0,
            properties={FORCE: True},
        )
        begun = Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW)
        self._open = AMQP_HEADER + _encode(opened, begun) + _attach(0, job.address)
        self._close = _encode(Close())

    def turn(self) -> int:
        """Do one round; return how many connections came and went."""
        peers = [self._connect() for _ in range(self._width)]
        self._exchange(peers, SASL_HEADER, self._read_mechanisms)
        self._exchange(peers, self._init, lambda answers: answers.wait(_SASL_OUTCOME))
        self._exchange(peers, self._open, self._read_attach)
        self._exchange(peers, self._close, self._read_close)
        return self._width

    def close(self) -> None:
        """Do nothing: no connection outlives its round."""

    def _connect(self) -> _Answers:
        try:
            return _Answers(self._url.connect(TIMEOUT_S))
        except OSError as error:
            where = self._url.place
            reason = error.strerror or str(error)
            raise UnreachableError(f"cannot connect to {where}: {reason}") from None

    @staticmethod
    def _exchange(peers: list[_Answers], octets: bytes, read: Callable[[_Answers], None]) -> None:
        for peer in peers:
            peer.socket.sendall(octets)
        for peer in peers:
            read(peer)

    @staticmethod
    def _read_mechanisms(answers: _Answers) -> None:
        answers.header(SASL_HEADER)
        answers.wait(_SASL_MECHANISMS)

    @staticmethod
    def _read_attach(answers: _Answers) -> None:
        answers.header(AMQP_HEADER)
        answers.wait(Attach.DESCRIPTOR)

    @staticmethod
    def _read_close(answers: _Answers) -> None:
        answers.wait(Close.DESCRIPTOR)
        answers.socket.close()


class _LinkRounds:
    """Attach and detach on one connection, a number of links in step."""

    def __init__(self, job: ChurnJob) -> None:
        self._peer = dial(Url.parse(job.url), job.name, job.ca_file)
        self._answers = _Answers(self._peer.socket)
        self._width = job.width
        self._turns = 0
        self._attaches = [_attach(handle, job.address) for handle in range(job.width)]
        detaches = (Detach(handle=handle, closed=True) for handle in range(job.width))
        self._detaches = _encode(*detaches)

    def turn(self) -> int:
        """Do one round; return how many links came and went."""
        first = self._turns * self._width
        self._turns += 1
        self._peer.write(
            b"".join(
                attach.replace(_COUNTER.encode(), b"%08d" % ((first + index) % 10**8))
                for index, attach in enumerate(self._attaches)
            )
        )
        self._answers.wait(Attach.DESCRIPTOR, self._width)
        self._peer.write(self._detaches)
        self._answers.wait(Detach.DESCRIPTOR, self._width)
        return self._width

    def close(self) -> None:
        """Close the connection."""
        self._peer.close()


class ChurnRole:
    """Rounds of what comes and goes, at a rate or as fast as they end."""

    def __init__(self, job: ChurnJob) -> None:
        self._job = job
        self._rounds: _ConnectionRounds | _LinkRounds | None = None
        self._count = 0
        self._target = job.count
        self._latency = Histogram()
        self._first_ns = self._last_ns = 0

    def prepare(self) -> None:
        """Connect, where one connection is enough."""
        is_connection = self._job.what == "connection"
        self._rounds = _ConnectionRounds(self._job) if is_connection else _LinkRounds(self._job)

    def start(self) -> None:
        """Take the time that the rate counts from."""
        self._first_ns = time.monotonic_ns()

    def run(self, slice_s: float) -> bool:
        """Do rounds until the slice is over."""
        until_ns = time.monotonic_ns() + int(slice_s * 1e9)
        while (now_ns := time.monotonic_ns()) < until_ns and not self._is_over():
            due_ns = self._due_ns()
            if due_ns > now_ns:
                time.sleep((min(due_ns, until_ns) - now_ns) / 1e9)
                continue
            self._turn(now_ns)
        return self._is_over()

    def finish(self) -> None:
        """End after the round under way."""
        self._target = max(self._count, 1)

    def progress(self) -> tuple[int, int]:
        """Return how many came and went."""
        return self._count, 0

    def report(self) -> Report:
        """Return the count, and how long a round took for each of its members."""
        return Report(
            sent=self._count,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            latencies_us=self._latency.summary_us(),
        )

    def close(self) -> None:
        """Close what is open."""
        if self._rounds is not None:
            self._rounds.close()

    def _is_over(self) -> bool:
        return 0 < self._target <= self._count

    def _due_ns(self) -> int:
        if self._job.rate <= 0:
            return 0
        return self._first_ns + int(self._count / self._job.rate * 1e9)

    def _turn(self, now_ns: int) -> None:
        assert self._rounds is not None
        self._count += self._rounds.turn()
        self._last_ns = time.monotonic_ns()
        self._latency.record(self._last_ns - now_ns)


class IdleRole:
    """Connections with a receiving link each, which get credit and nothing else."""

    def __init__(self, job: IdleJob) -> None:
        self._job = job
        self._peers: list[Peer] = []
        self._is_finishing = False
        self._beat_s = 0.0

    def prepare(self) -> None:
        """Do nothing: memory is measured from the start."""

    def start(self) -> None:
        """Open all connections."""
        url = Url.parse(self._job.url)
        for index in range(self._job.connections):
            peer = dial(url, f"{self._job.name}-{index}", self._job.ca_file)
            self._peers.append(peer)
            (link,) = peer.attach_receivers([self._job.address.format(index)])
            peer.send([self._credit(link.handle, link.delivery_count)])

    def run(self, slice_s: float) -> bool:
        """Wait, with heartbeats where the peer wants them (AMQP 1.0 §2.4.5)."""
        select.select([], [], [], slice_s)
        timeout_s = min((peer.idle_timeout_s for peer in self._peers), default=0.0)
        if timeout_s and time.monotonic() - self._beat_s > timeout_s / 2:
            self._beat_s = time.monotonic()
            for peer in self._peers:
                peer.write(_HEARTBEAT)
        return self._is_finishing

    def finish(self) -> None:
        """End with the slice under way."""
        self._is_finishing = True

    def progress(self) -> tuple[int, int]:
        """Return how many connections are held."""
        return len(self._peers), 0

    def report(self) -> Report:
        """Return how many connections are held."""
        return Report(sent=len(self._peers))

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers:
            peer.close()

    def _credit(self, handle: int, delivery_count: int) -> Flow:
        return Flow(
            next_incoming_id=0,
            incoming_window=WINDOW,
            next_outgoing_id=0,
            outgoing_window=WINDOW,
            handle=handle,
            delivery_count=delivery_count,
            link_credit=self._job.credit,
        )
