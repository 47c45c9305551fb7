"""Drives any number of wires in one process: compiled steps, with epoll around them."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.frames import parse_frame_header
from cogwork.amqp.performatives import decode_performative
from cogwork.bench.stream import MAX_FRAME_SIZE, farewell
from cogwork.bench.url import PeerError
from cogwork.bench.wire import BLOCKED, BUSY, FAILED, IDLE, OVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.bench.peer import Peer
    from cogwork.bench.wire import Wire

__all__ = ("Crowd",)

_RECEIVE_TIMEOUT_US: Final = 50_000
"""How long a lone wire's read may block, before it looks at the clock again."""


class Crowd:
    """Some wires and their sockets."""

    def __init__(self, pairs: Sequence[tuple[Peer, Wire]]) -> None:
        """Take over the peers' sockets.

        Args:
            pairs: Each connection and the role that works on it.
        """
        self._wires = {peer.fd: (peer, wire) for peer, wire in pairs}
        self._busy = set(self._wires)
        self._epoll = select.epoll()
        self._is_lone = len(pairs) == 1 and not pairs[0][0].is_tls
        for peer, _ in pairs:
            self._prepare(peer)

    def run(self, slice_s: float) -> bool:
        """Work for about `slice_s` seconds; return whether all wires are over.

        Raises:
            PeerError: A wire failed.
        """
        if self._is_lone:
            ((peer, wire),) = self._wires.values()
            return self._note(peer.fd, wire, wire.run(slice_s))
        until_s = time.monotonic() + slice_s
        while self._wires and (left_s := until_s - time.monotonic()) > 0:
            self._wait(0 if self._busy else left_s)
            for fd in list(self._busy):
                peer, wire = self._wires[fd]
                self._note(fd, wire, _step_tls(peer, wire) if peer.is_tls else wire.step())
        return not self._wires

    def _prepare(self, peer: Peer) -> None:
        if self._is_lone:
            peer.socket.settimeout(None)
            timeout = struct.pack("ll", 0, _RECEIVE_TIMEOUT_US)
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        else:
            peer.socket.setblocking(False)
            self._epoll.register(peer.fd, select.EPOLLIN)

    def _wait(self, timeout_s: float) -> None:
        for fd, _ in self._epoll.poll(timeout_s):
            self._epoll.modify(fd, select.EPOLLIN)
            self._busy.add(fd)

    def _note(self, fd: int, wire: Wire, status: int) -> bool:
        """Decide when the wire is served next; return whether it is over."""
        if status == FAILED:
            raise _fault_of(wire)
        if self._is_lone:
            return status == OVER
        if status != BUSY:
            self._busy.discard(fd)
        if status == BLOCKED:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
        elif status == OVER:
            self._epoll.unregister(fd)
            del self._wires[fd]
        return status == OVER


def _step_tls(peer: Peer, wire: Wire) -> int:
    """One step of a wire whose bytes go through Python's ssl."""
    is_flushed = _push(peer.socket, wire)
    has_moved = _pull(peer.socket, wire)
    if wire.status in {OVER, FAILED}:
        return wire.status
    if not is_flushed:
        return BLOCKED
    return BUSY if has_moved or wire.output() else IDLE


def _push(tls: socket.socket, wire: Wire) -> bool:
    """Send one block; return whether the socket took all of it."""
    output = wire.output()
    try:
        while output:
            size = tls.send(output)
            wire.note_sent(size)
            output = output[size:]
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    except OSError as error:
        raise PeerError(f"the connection was lost: {error}") from None
    return True


def _pull(tls: socket.socket, wire: Wire) -> bool:
    """Read once; return whether anything came."""
    room = wire.room()
    if not room:
        wire.note_received(0)
        return True
    try:
        size = tls.recv_into(room)
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    except OSError as error:
        raise PeerError(f"the connection was lost: {error}") from None
    if size == 0:
        raise PeerError("the peer closed the connection")
    wire.note_received(size)
    return True


def _fault_of(wire: Wire) -> PeerError:
    """Words what a failed wire knows."""
    octets = wire.farewell
    if not octets:
        return PeerError(wire.fault)
    try:
        header = parse_frame_header(octets, max_frame_size=MAX_FRAME_SIZE)
        return farewell(decode_performative(octets, header.data_offset)[0])
    except ProtocolError:
        return PeerError(wire.fault)
