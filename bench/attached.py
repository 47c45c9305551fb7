"""What services and callers cost the container that they are attached to, in memory.

    python bench/attached.py [--services N] [--callers N] [--connections N]

A service has the three receiving links that serve calls: one of its own, one of its group, one for
all, each with credit for a hundred. A caller has a link from a dynamic address for replies, and one
to the null target that it sends by. They share a number of connections, with a session each; with
`--connections 0` each has a connection of its own. Nobody sends anything. The peers write frames
themselves, for what they cost is not looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cogwork
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import Attach, Begin, Flow, Open, Role, encode_performative
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Symbol
from cogwork.bench.servers.process import free_ports
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.management.manager import Manager
from cogwork.dataplane.encoding.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CREDIT = 100
GROUPS = 100
"""Services are in groups: there are a hundred times fewer kinds of them."""

TARGET_MB = 400
BATCH = 200
"""Clients that attach before their answers are waited for: a crowd, not a stampede."""

WAIT_S = 120.0


@dataclass
class Peer:
    """A connection, and what is attached on it."""

    socket: socket.socket
    links: int = 0
    answered: int = 0
    input: bytes = b""

    def frame(self, body: bytes) -> bytes:
        return struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body

    def begin(self, number: int) -> None:
        opening = Open(container_id=f"peer-{number}", max_frame_size=32768)
        begin = Begin(
            next_outgoing_id=0, incoming_window=1000, outgoing_window=1000, handle_max=65535
        )
        frames = [self.frame(encode_performative(each, encode)) for each in (opening, begin)]
        self.socket.sendall(AMQP_HEADER + b"".join(frames))

    def attach(self, name: str, role: Role, source: Source, target: Target) -> None:
        handle = self.links
        self.links += 1
        is_receiver = role == Role.RECEIVER
        attach = Attach(
            name=name,
            handle=handle,
            role=role,
            source=source,
            target=target,
            initial_delivery_count=None if is_receiver else 0,
        )
        frames = self.frame(encode_performative(attach, encode))
        if is_receiver:
            flow = Flow(
                next_incoming_id=0,
                incoming_window=1000,
                next_outgoing_id=0,
                outgoing_window=1000,
                handle=handle,
                delivery_count=0,
                link_credit=CREDIT,
            )
            frames += self.frame(encode_performative(flow, encode))
        self.socket.sendall(frames)

    def read(self) -> None:
        """Count the attaches that came; anything that closes is an error."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("a connection was closed")
        self.input += data
        at = 8 if self.input.startswith(b"AMQP") else 0
        while at + 8 <= len(self.input):
            size, offset = struct.unpack_from(">IB", self.input, at)
            if at + size > len(self.input):
                break
            code = self.input[at + offset * 4 + 2] if size > 8 else 0
            self.answered += code == 0x12
            if code in (0x16, 0x17, 0x18):
                raise SystemExit(f"refused: {self.input[at : at + size]!r}")
            at += size
        self.input = self.input[at:]


def service(peer: Peer, number: int) -> None:
    """Attach what a server of calls has."""
    group = f"nova/service{number % GROUPS}"
    addresses = {
        f"exclusive/{group}/host-{number}": "move",
        f"unicast/{group}": "move",
        f"broadcast/{group}": "copy",
    }
    for address, mode in addresses.items():
        source = Source(address=address, distribution_mode=Symbol(mode))
        peer.attach(f"{address}#{number}", Role.RECEIVER, source, Target(address="service"))


def caller(peer: Peer, number: int) -> None:
    """Attach what somebody who calls has."""
    source = Source(dynamic=True)
    peer.attach(f"replies-{number}", Role.RECEIVER, source, Target(address="caller"))
    peer.attach(f"calls-{number}", Role.SENDER, Source(address="caller"), Target(address=None))


class Crowd:
    """All peers."""

    def __init__(self, port: int, connections: int) -> None:
        self.port = port
        self.most = connections
        self.peers: list[Peer] = []
        self._selector = selectors.DefaultSelector()
        self._turn = 0

    def attach(self, kinds: Iterator[tuple[Callable[[Peer, int], object], int]]) -> None:
        """Attach services or callers, some at a time."""
        for count, (kind, number) in enumerate(kinds, start=1):
            kind(self._next(), number)
            if count % BATCH == 0:
                self.settle()
        self.settle()

    def _next(self) -> Peer:
        if self.most and len(self.peers) >= self.most:
            self._turn += 1
            return self.peers[self._turn % self.most]
        connection = socket.create_connection(("127.0.0.1", self.port))
        peer = Peer(connection)
        peer.begin(len(self.peers))
        self.peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)
        return peer

    def settle(self) -> None:
        """Wait until all attaches have been answered."""
        end_s = time.monotonic() + WAIT_S
        while any(peer.answered < peer.links for peer in self.peers):
            if time.monotonic() > end_s:
                raise SystemExit("attaches were not answered")
            for key, _ in self._selector.select(1):
                key.data.read()

    def leave(self) -> None:
        """Close all connections."""
        for peer in self.peers:
            self._selector.unregister(peer.socket)
            peer.socket.close()
        self.peers.clear()


def serve(folder: Path, connections: int) -> tuple[subprocess.Popen[bytes], int]:
    (port,) = free_ports(1)
    file = folder / "cogwork.toml"
    file.write_text(
        f"[[listen]]\nport = {port}\n[limits]\nconnections = {connections + 10}\n"
        "links_per_session = 65536\nidle_timeout_s = 3600\n"
    )
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "cogwork.cli.main", "serve", "--config", str(file)],
        stdout=log,
        stderr=log,
    )
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process, port
    raise SystemExit((folder / "log").read_text())


def measure(services: int, callers: int, connections: int) -> dict[str, object]:
    """Attach everybody and look at the container's memory; have them leave, and come again."""
    wanted = connections or services + callers
    _allow_files(wanted)
    with tempfile.TemporaryDirectory() as folder:
        process, port = serve(Path(folder), wanted)
        try:
            crowd = Crowd(port, connections)
            usage = ProcessUsage(process.pid)
            start_mb, start_s = usage.rss_bytes() / 1e6, usage.cpu_s()
            crowd.attach((service, number) for number in range(services))
            services_mb = usage.rss_bytes() / 1e6
            crowd.attach((caller, number) for number in range(callers))
            time.sleep(1)
            full_mb, full_s = usage.rss_bytes() / 1e6, usage.cpu_s()
            links = links_of(port)
            crowd.leave()
            crowd.attach((service, number) for number in range(services))
            crowd.attach((caller, number) for number in range(callers))
            again_mb = usage.rss_bytes() / 1e6
            crowd.leave()
        finally:
            process.terminate()
            process.wait()
    return {
        "case": "attached",
        "services": services,
        "callers": callers,
        "connections": wanted,
        "links": links,
        "start_mb": round(start_mb, 1),
        "resident_mb": round(full_mb, 1),
        "service_kb": round((services_mb - start_mb) * 1000 / max(services, 1), 2),
        "caller_kb": round((full_mb - services_mb) * 1000 / max(callers, 1), 2),
        "second_wave_mb": round(again_mb, 1),
        "cpu_s": round(full_s - start_s, 2),
        "target_mb": TARGET_MB,
        "meets_target": full_mb <= TARGET_MB,
    }


def links_of(port: int) -> int:
    """Ask the container how many links it has; the two that ask are not counted."""

    async def ask() -> int:
        async with cogwork.connect(f"amqp://127.0.0.1:{port}") as client:
            found = await Manager(client).get("READ", "container")
        return int(found["totals"]["links"]) - 2

    return asyncio.run(ask())


def _allow_files(count: int) -> None:
    """Raise the limit of open files, which the container takes after."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count + 100:
        raise SystemExit(f"{count} connections, of {hard} files that may be open")
    if soft < count + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, hard))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=10_000)
    parser.add_argument("--callers", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=200)
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.services, chosen.callers, chosen.connections)))


if __name__ == "__main__":
    main()
