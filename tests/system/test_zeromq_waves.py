"""Short-lived clients in waves: when they have gone, so has everything that they cost.

`COGWORK_ZEROMQ_CLIENTS` says how many there are in all; 10,000 in `make soak`.
"""

from __future__ import annotations

import json
import os
import resource
import time
from typing import TYPE_CHECKING

import pytest
import zmq

from .served import within
from .zeromq_mesh import Client, Gateway, gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = int(os.environ.get("COGWORK_ZEROMQ_CLIENTS", "1500"))
WAVE = 500
BODY = json.dumps({"text": "x" * 100}).encode()

SPARE_DESCRIPTORS = 4
"""A status command, and what it asks for."""

SPARE_KIB = 16 * 1024
"""Twice the growth at which the container gives memory back to the system."""

WARM_UP = 3
"""Waves after which the allocator has what a wave needs for a moment."""


@pytest.fixture(autouse=True)
def _many_descriptors() -> Iterator[None]:
    """Let the clients of one wave, and the container's ends, have their descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_clients_in_waves_leave_nothing_behind(tmp_path: Path) -> None:
    with gateway(tmp_path / "container", "lease_s = 6\nsessions = 5000\n") as running:
        service = running.client(name="service")
        service.register("echo", window=1000)
        for _ in range(WARM_UP):
            wave(running, service)
        settle(running, service)
        before = running.container.resident_kib(), settled_descriptors(running)
        for _ in range(CLIENTS // WAVE):
            wave(running, service)
        settle(running, service)
        assert settled_descriptors(running) <= before[1] + SPARE_DESCRIPTORS
        remains_small(running, before[0] + SPARE_KIB)
        assert running.status()["sessions_begun"] >= CLIENTS
        assert running.status()["dropped"] == 0


def wave(running: Gateway, service: Client) -> None:
    """Have many clients at once call once each; a tenth of them leave without a word."""
    context = zmq.Context(io_threads=1)
    context.max_sockets = 2 * WAVE
    sockets = [context.socket(zmq.DEALER) for _ in range(WAVE)]
    for each in sockets:
        each.linger = 1000
        each.rcvtimeo = 20_000
        each.connect(running.kinds["roundrobin"])
        each.send_multipart([b"COG1", b"HELLO", b"", b"{}"])
    ids = [json.loads(each.recv_multipart()[3])["session"].encode() for each in sockets]
    for each, identity in zip(sockets, ids, strict=True):
        each.send_multipart([b"COG1", b"CALL", identity, b'{"id": 1, "to": "echo"}', BODY])
    for _ in sockets:
        service.serve_one(lambda request: request.body)
    for at, (each, identity) in enumerate(zip(sockets, ids, strict=True)):
        frames = each.recv_multipart()
        assert frames[1] == b"RESULT", frames
        if at % 10:
            each.send_multipart([b"COG1", b"BYE", identity, b"{}"])
        each.close()
    context.term()


def settle(running: Gateway, service: Client) -> None:
    """Wait until all that have gone are forgotten; the service says that it has not."""

    def is_alone() -> bool:
        service.ask("PING", {})
        status = running.status()
        kept = [status[name] for name in ("sessions", "registrations", "under_way", "outstanding")]
        return kept == [1, 1, 0, 0]

    within(30, is_alone, "only the service is left")


def remains_small(running: Gateway, limit_kib: int) -> None:
    """Wait until the container has given back what the last wave has left.

    It asks its allocator as it grows, which may be while sessions are there, and 20 s later again.
    """
    try:
        within(60, lambda: running.container.resident_kib() <= limit_kib, "memory is given back")
    except AssertionError as error:
        sizes = f"{running.container.resident_kib()} KiB, and {limit_kib} at most are expected"
        raise AssertionError(f"{error}: {sizes}") from None


def settled_descriptors(running: Gateway) -> int:
    """Count descriptors once their number does not fall any more."""
    deadline_s = time.monotonic() + 20
    last = running.descriptors()
    while time.monotonic() < deadline_s:
        time.sleep(0.5)
        now = running.descriptors()
        if now >= last:
            return now
        last = now
    return last
