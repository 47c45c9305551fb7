"""Held output against a model: bytes leave in order, and none before its barrier is released."""

from __future__ import annotations

import random
import socket

import pytest

from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.wire import Wire

SEEDS = 200
STEPS = 300


class Owner:
    """Lets the test close."""

    def __init__(self) -> None:
        self.is_broken = False

    def on_violation(self, condition: str, description: str) -> None:  # the contract's
        self.is_broken = True


class Peer:
    """A wire, what it was given, and what has come out of it."""

    def __init__(self, core: Core, *, is_socket: bool) -> None:
        self.owner = Owner()
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.far.setblocking(False)
        fd = self.near.fileno() if is_socket else -1
        self.wire = Wire(core, self.owner, 65536, fd)  # type: ignore[arg-type]  # enough of one
        self.written = b""
        self.received = b""
        self.holds: list[tuple[int, int]] = []

    def close(self) -> None:
        self.near.close()
        self.far.close()

    def write(self, data: bytes) -> None:
        self.wire.write(data)
        self.written += data

    def hold(self, barrier: int) -> None:
        self.wire.hold_output()
        if not self.holds or self.holds[-1][1] != barrier:
            self.holds.append((len(self.written), barrier))

    def allowed(self, released: int) -> int:
        """How much may have come out."""
        return next((at for at, barrier in self.holds if barrier > released), len(self.written))

    def receive(self, size: int) -> None:
        if self.wire.fd < 0:
            self.received += self.wire.take_output(size)
            return
        try:
            self.received += self.far.recv(size)
        except BlockingIOError:
            return


def step(chance: random.Random, core: Core, peers: list[Peer], closed: list[int]) -> None:
    peer = chance.choice(peers)
    match chance.randrange(8):
        case 0 | 1:
            peer.write(chance.randbytes(chance.choice((1, 20, 3000))))
        case 2:
            peer.hold(core.open_barrier)
        case 3:
            closed.append(core.close_barrier())
        case 4 if closed:
            core.release(chance.choice(closed))
        case 5:
            core.flush()
        case 6:
            peer.receive(chance.choice((1, 100, 100_000)))
        case 7 if peer.wire.blocked:
            peer.wire.on_writable()
        case _ if chance.random() < 0.1:
            core.hold_output()
            for each in peers:
                each.hold(core.open_barrier)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_bytes_leave_in_order_and_none_before_its_barrier(seed: int) -> None:
    chance = random.Random(seed)
    core = Core()
    core.congested_at_bytes = chance.choice((100, 1 << 20))
    peers = [Peer(core, is_socket=at % 2 == 0) for at in range(3)]
    closed: list[int] = []
    for _ in range(STEPS):
        step(chance, core, peers, closed)
        for peer in peers:
            allowed = peer.allowed(core.released_barrier)
            if peer.wire.fd < 0:
                assert peer.wire.sendable_bytes == allowed - len(peer.received)
            assert len(peer.received) <= allowed
            assert peer.written.startswith(peer.received)
    finish(chance, core, peers)


def finish(chance: random.Random, core: Core, peers: list[Peer]) -> None:
    """Release all, and let all out; or fail, and what was held never comes out."""
    fails = chance.random() < 0.5
    expected = [
        peer.written[: peer.allowed(core.released_barrier)] if fails else peer.written
        for peer in peers
    ]
    held = [peer.allowed(core.released_barrier) < len(peer.written) for peer in peers]
    if fails:
        core.break_off("cogwork:disk-failed", "the disk failed")
    else:
        core.release(core.close_barrier())
    for peer, whole, was_held in zip(peers, expected, held, strict=True):
        for _ in range(1_000):
            if len(peer.received) == len(whole):
                break
            peer.wire.on_writable()
            peer.receive(1 << 20)
        assert peer.received == whole
        if was_held:
            assert peer.owner.is_broken == fails
        peer.close()
    assert core.held_connections == 0
