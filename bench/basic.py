"""AMQP 0-9-1, 1→1 through one queue: transient messages, by a client that costs next to nothing.

    python bench/basic.py [--count N] [--size OCTETS] [--runs N] [--beside] [--serve COMMAND]

The publisher writes frames that were encoded once, the consumer counts octets: every delivery of
the case is of the same size. So a compiled generator would measure nothing else. `--beside` runs
RabbitMQ (Debian's) with the same clients. Prints one line of JSON for each case; the exit code is 1
where one does not hold.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import tempfile
import time
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from server import DEFAULT_COMMAND, Server

from cogwork.amqp091.content import BasicProperties, Content, write_command
from cogwork.amqp091.frames import PROTOCOL_HEADER, FrameReader
from cogwork.amqp091.method import Method, decode_method
from cogwork.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConfirmSelect,
    ConfirmSelectOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    QueueDeclare,
    QueueDeclareOk,
)
from cogwork.bench.usage import ProcessUsage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.queues import SimpleQueue

TESTS = Path(__file__).parent.parent / "tests"

FRAME_MAX: Final = 131_072
QUEUE: Final = "bench"
TAG: Final = "consumer"
BATCH: Final = 500
WINDOW: Final = 1000
CONFIRM: Final = bytes(21)
CONFIRM_FIELDS: Final = struct.Struct(">7xIQ?x")
ACK: Final = 60 << 16 | 80
ACK_EVERY: Final = 100
READ_OCTETS: Final = 1 << 20


class Case(NamedTuple):
    """What is measured, and what it may cost."""

    name: str
    prefetch: int
    headers: int
    must_cpu_s: float
    is_durable: bool = False
    queue_type: str = "classic"


CASES: Final = (
    Case("transient, auto-ack", 0, 0, 1.0),
    Case("transient, auto-ack, 20 headers", 0, 20, 1.5),
    Case("transient, prefetch 1000, ack of 100", 1000, 0, 1.2),
    Case("durable, persistent, 1000 unconfirmed", 0, 0, 3.0, is_durable=True),
)


class DiskServer(Server):
    """A server that keeps durable queues."""

    head = 'data_dir = "{root}/data"\n'


class Client:
    """A blocking connection with one channel."""

    def __init__(self, port: int) -> None:
        """Connect as guest, and open a channel.

        Args:
            port: The broker's, on this machine.
        """
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader(FRAME_MAX)
        self.socket.sendall(PROTOCOL_HEADER)
        self.expect(ConnectionStart)
        response = b"\0guest\0guest"
        self.send(
            ConnectionStartOk(
                client_properties={}, mechanism="PLAIN", response=response, locale="en_US"
            ),
            0,
        )
        self.expect(ConnectionTune)
        self.send(ConnectionTuneOk(channel_max=1, frame_max=FRAME_MAX, heartbeat=0), 0)
        self.call(ConnectionOpen(virtual_host="/"), ConnectionOpenOk, 0)
        self.call(ChannelOpen(), ChannelOpenOk)

    def send(self, method: Method, channel: int = 1) -> None:
        """Send a method."""
        out = bytearray()
        write_command(out, channel, method, None, FRAME_MAX)
        self.socket.sendall(out)

    def expect(self, kind: type[Method]) -> None:
        """Read one method, which comes alone."""
        while True:
            for frame in self._reader.feed(self.socket.recv(READ_OCTETS)):
                found = decode_method(frame.payload)
                if not isinstance(found, kind):
                    raise SystemExit(f"expected {kind.__name__}, got {found}")
                return

    def call(self, method: Method, answer: type[Method], channel: int = 1) -> None:
        """Send a method and wait for its answer."""
        self.send(method, channel)
        self.expect(answer)


def delivery_octets(size: int, properties: bytes) -> int:
    """Return how much one delivery takes on the wire."""
    method = 4 + 1 + len(TAG) + 8 + 1 + 1 + 1 + len(QUEUE)
    return 3 * 8 + method + 12 + len(properties) + size


def queue_of(case: Case) -> str:
    """Return the queue's name: all are of the same length."""
    return "stays" if case.is_durable else QUEUE


def content_of(case: Case, size: int) -> Content:
    headers: dict[str, object] = {
        f"header-{number}": f"value of {number}" for number in range(case.headers)
    }
    mode = 2 if case.is_durable else 1
    return Content.of(BasicProperties(delivery_mode=mode, headers=headers or None), bytes(size))


def declare(client: Client, case: Case) -> None:
    """Declare the queue of a case."""
    declared = QueueDeclare(
        queue=queue_of(case),
        durable=case.is_durable,
        arguments={"x-queue-type": case.queue_type},
    )
    client.call(declared, QueueDeclareOk)


def consume(port: int, case: Case, size: int, count: int, told: SimpleQueue[Any]) -> None:
    """Count deliveries by their octets; tell when the first and the last of them came."""
    client = Client(port)
    declare(client, case)
    if case.prefetch:
        client.call(BasicQos(prefetch_count=case.prefetch), BasicQosOk)
    client.call(
        BasicConsume(queue=queue_of(case), consumer_tag=TAG, no_ack=not case.prefetch),
        BasicConsumeOk,
    )
    told.put("ready")
    each = delivery_octets(size, content_of(case, size).property_octets)
    buffer = bytearray(READ_OCTETS)
    seen = acked = 0
    ack = bytearray()
    write_command(ack, 1, BasicAck(delivery_tag=0, multiple=True), None, FRAME_MAX)
    while seen < count * each:
        seen += client.socket.recv_into(buffer)
        while case.prefetch and seen // each - acked >= ACK_EVERY:
            acked += ACK_EVERY
            struct.pack_into(">Q", ack, 11, acked)
            client.socket.sendall(ack)
    if seen != count * each:
        raise SystemExit(f"{seen} octets came, {count * each} were expected")
    told.put(time.perf_counter())


def publish_confirmed(client: Client, message: bytes, count: int) -> None:
    """Have no more than so many messages unconfirmed."""
    client.call(ConfirmSelect(), ConfirmSelectOk)
    sent = confirmed = 0
    apart: set[int] = set()
    rest = b""
    while confirmed + len(apart) < count:
        room = min(WINDOW - (sent - confirmed - len(apart)), count - sent)
        if room >= WINDOW // 4 or room == count - sent > 0:
            client.socket.sendall(message * room)
            sent += room
        rest += client.socket.recv(READ_OCTETS)
        whole = len(rest) // len(CONFIRM) * len(CONFIRM)
        for kind, tag, is_multiple in CONFIRM_FIELDS.iter_unpack(rest[:whole]):
            if kind != ACK:
                raise SystemExit(f"message {tag} was refused")
            if is_multiple:
                confirmed, apart = tag, {each for each in apart if each > tag}
            elif tag == confirmed + 1:
                confirmed = tag
            else:
                apart.add(tag)
        rest = rest[whole:]


def publish(port: int, case: Case, size: int, count: int, told: SimpleQueue[Any]) -> None:
    """Write what was encoded once, again and again."""
    client = Client(port)
    out = bytearray()
    write_command(
        out, 1, BasicPublish(routing_key=queue_of(case)), content_of(case, size), FRAME_MAX
    )
    batch = bytes(out) * BATCH
    told.put(time.perf_counter())
    if case.is_durable:
        publish_confirmed(client, bytes(out), count)
    else:
        for _ in range(count // BATCH):
            client.socket.sendall(batch)
    # A broker may drop what it has not looked at yet of a connection that just ends.
    client.call(
        ChannelClose(reply_code=200, reply_text="", class_id=0, method_id=0), ChannelCloseOk
    )


def run(port: int, usage: ProcessUsage, case: Case, size: int, count: int) -> dict[str, float]:
    """Run one publisher and one consumer; return rate and CPU seconds a million."""
    context = get_context("spawn")
    told = context.SimpleQueue()
    arguments = (port, case, size, count, told)
    consumer = context.Process(target=consume, args=arguments)
    consumer.start()
    if told.get() != "ready":
        raise SystemExit("the consumer did not start")
    publisher = context.Process(target=publish, args=arguments)
    publisher.start()
    started_s = told.get()
    cpu_s = usage.cpu_s()
    ended_s = told.get()
    cpu_s = usage.cpu_s() - cpu_s
    publisher.join()
    consumer.join()
    return {
        "rate": round(count / (ended_s - started_s)),
        "cpu_s_per_million": round(cpu_s / count * 1e6, 3),
    }


@contextmanager
def rabbitmq() -> Iterator[tuple[int, ProcessUsage]]:
    """Run RabbitMQ; yield its port and its counters."""
    sys.path[:0] = [str(TESTS)]
    from rabbitmq import RabbitMq  # noqa: PLC0415  # of the tests

    with tempfile.TemporaryDirectory() as folder:
        broker = RabbitMq(Path(folder) / "rabbitmq")
        broker.start()
        try:
            pid = int((Path(folder) / "rabbitmq" / "pid").read_text())
            yield broker.port, ProcessUsage(pid)
        finally:
            broker.kill()


def median_of(found: list[dict[str, float]]) -> dict[str, float]:
    return {key: median(each[key] for each in found) for key in found[0]}


@click.command()
@click.option("--count", default=1_000_000, show_default=True, type=click.IntRange(BATCH))
@click.option("--size", default=100, show_default=True, type=click.IntRange(0))
@click.option("--runs", default=3, show_default=True, type=click.IntRange(1))
@click.option("--beside", is_flag=True, help="Measure RabbitMQ, too.")
@click.option("--serve", default=DEFAULT_COMMAND, show_default=True, help="{config}, {port}")
def main(count: int, size: int, runs: int, beside: bool, serve: str) -> None:
    """Measure every case, each broker started once."""
    count -= count % BATCH
    holds = True
    with DiskServer(serve) as server:
        ours = [
            median_of([run(server.port, server.usage, case, size, count) for _ in range(runs)])
            for case in CASES
        ]
    theirs: list[dict[str, float] | None] = [None] * len(CASES)
    if beside:
        with rabbitmq() as (port, usage):
            few = max(count // 5 // BATCH, 1) * BATCH
            theirs = [run(port, usage, case, size, few) for case in CASES]
    for case, found, other in zip(CASES, ours, theirs, strict=True):
        holds = holds and found["cpu_s_per_million"] <= case.must_cpu_s
        line = {
            "case": f"basic, 1→1, {size} B, {case.name}",
            **found,
            "must_cpu_s_per_million": case.must_cpu_s,
            "holds": found["cpu_s_per_million"] <= case.must_cpu_s,
            **({} if other is None else {"rabbitmq": other}),
        }
        print(json.dumps(line, ensure_ascii=False))
    sys.exit(not holds)


if __name__ == "__main__":
    main()
