"""Times puts of an etcd of three members until three watchers have them, one at each member.

    python bench/etcd_delay.py watch HOST:PORT COUNT
    python bench/etcd_delay.py put HOST:PORT RATE COUNT

are the processes that do it; `timed` runs them. They speak etcd's own protocol, gRPC, and spell its
few messages themselves: no client library for Python is kept well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import grpc

from cogwork.bench.servers.etcd import EtcdServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("served_etcd", "timed")

MEMBERS = 3
KEY = b"delay"
SIZE_BYTES = 100

MARK = b"\x00sent at\xff"
"""Comes before the time in each value, and nowhere else in what a watcher is sent."""

KEY_FIELD, VALUE_FIELD = 1, 2
CREATE_FIELD = 1
"""Fields of `PutRequest` and `WatchCreateRequest`, and the latter in `WatchRequest`."""


def _field(number: int, octets: bytes) -> bytes:
    """Spell a field of Protocol Buffers that has less than 128 octets."""
    return bytes((number << 3 | 2, len(octets))) + octets


def watch(target: str, count: int) -> None:
    """Say that it watches; after so many puts, how many nanoseconds each has taken."""
    channel = grpc.insecure_channel(target)
    call = channel.stream_stream(
        "/etcdserverpb.Watch/Watch", request_serializer=bytes, response_deserializer=bytes
    )
    ended = threading.Event()

    def requests() -> Iterator[bytes]:
        yield _field(CREATE_FIELD, _field(KEY_FIELD, KEY))
        ended.wait()

    answers = call(requests())
    next(answers)
    print("watching", flush=True)
    delays_ns: list[int] = []
    while len(delays_ns) < count:
        answer = next(answers)
        now_ns = time.monotonic_ns()
        sent = answer.split(MARK)[1:]
        delays_ns += [now_ns - int.from_bytes(each[:8], "big") for each in sent]
    print(json.dumps(delays_ns), flush=True)
    ended.set()


def put(target: str, rate: int, count: int) -> None:
    """Put so many a second, and wait for all answers."""
    channel = grpc.insecure_channel(target)
    call = channel.unary_unary(
        "/etcdserverpb.KV/Put", request_serializer=bytes, response_deserializer=bytes
    )
    under_way = []
    start_s = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, start_s + number / rate - time.monotonic()))
        value = MARK + time.monotonic_ns().to_bytes(8, "big")
        value += bytes(SIZE_BYTES - len(value))
        under_way.append(call.future(_field(KEY_FIELD, KEY) + _field(VALUE_FIELD, value)))
    for each in under_way:
        each.result()


@contextmanager
def served_etcd() -> Iterator[list[EtcdServer]]:
    """Run the members.

    Raises:
        Missing: There is no etcd here.
    """
    with TemporaryDirectory() as folder:
        members = EtcdServer.cluster(Path(folder), MEMBERS)
        try:
            for member in members:
                member.launch()
            for member in members:
                member.wait()
            yield members
        finally:
            for member in members:
                member.kill()


def timed(members: list[EtcdServer], rate: int, seconds: float) -> list[float]:
    """Put for some time at the first member; return the seconds from each put to each watcher."""
    count = round(rate * seconds)
    targets = [f"127.0.0.1:{member.port}" for member in members]
    watchers = [_started("watch", target, count) for target in targets]
    for watcher in watchers:
        assert watcher.stdout is not None
        watcher.stdout.readline()
    _started("put", targets[0], rate, count).communicate()
    found = [json.loads(watcher.communicate()[0]) for watcher in watchers]
    return [delay_ns / 1e9 for each in found for delay_ns in each]


def _started(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def main() -> None:
    """Run one of the processes."""
    match sys.argv[1:]:
        case ["watch", target, count]:
            watch(target, int(count))
        case ["put", target, rate, count]:
            put(target, int(rate), int(count))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
