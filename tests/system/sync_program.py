"""Uses the synchronous mesh where it once waited for itself; writes what came of it.

A process of its own, as its threads would be waiting for good, and the tests with them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING
from unittest import mock

import cogwork
import cogwork.client.client
import cogwork.sync
from cogwork.rpc.calling.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.sync.rpc import PartIterator


class Page:
    """Holds a half-read reply, and itself: the garbage collector has to find it."""

    def __init__(self, client: cogwork.sync.Client) -> None:
        self.lines = iter(client.call_stream("book", "numbers", timeout_s=5))
        self.itself = self
        assert next(self.lines) == 0


def collected(url: str) -> object:
    """Collect half-read replies on the loop's thread and on this one; say where they ended."""
    ended_on: list[str] = []
    close = Parts.close

    def closed(parts: Parts) -> None:
        if not parts._is_over:
            ended_on.append(threading.current_thread().name)
        close(parts)

    gc.disable()
    mock.patch.object(Parts, "close", closed).start()
    with cogwork.sync.connect(url) as client, client.service("book") as service:

        @service.method
        def numbers() -> Iterator[int]:
            yield from range(10**9)

        Page(client)
        client._thread.loop.call_soon_threadsafe(gc.collect)
        client.publish("sink/page", 1)
        Page(client)
        gc.collect()
        client.publish("sink/page", 2)
        return ended_on


def dropped(url: str) -> object:
    """Drop a half-read reply with a lock that the loop's thread waits for."""
    lock, locked = threading.Lock(), threading.Event()

    def want() -> None:
        locked.set()
        with lock:
            pass

    with cogwork.sync.connect(url) as client, client.service("book") as service:

        @service.method
        def numbers() -> Iterator[int]:
            yield from range(10**9)

        lines = iter(client.call_stream("book", "numbers", timeout_s=5))
        assert next(lines) == 0
        with lock:
            client._thread.loop.call_soon_threadsafe(want)
            locked.wait()
            del lines
        client.publish("sink/page", 1)
    return "went on"


def on_its_own_thread(url: str) -> object:
    """Use the mesh in methods that run on its own thread."""
    with cogwork.sync.connect(url) as client, client.service("relay") as service:

        @service.method
        async def publish() -> None:
            client.publish("sink/relay", 1)

        @service.method
        async def close() -> None:
            client.close()

        @service.method
        def publish_plainly() -> int:
            client.publish("sink/relay", 1)
            return 1

        told = []
        for name in ("publish", "close"):
            try:
                client.call("relay", name, timeout_s=5)
            except cogwork.RemoteError as error:
                told.append(str(error))
        return [*told, client.call("relay", "publish_plainly", timeout_s=5)]


def forked(url: str) -> object:
    """Use the mesh in the child of a fork, then another one, then leave the `with`."""
    readable, writable = os.pipe()
    with cogwork.sync.connect(url) as client, client.service("book") as service:

        @service.method
        def numbers() -> Iterator[int]:
            yield from range(3)

        parts = client.call_stream("book", "numbers", timeout_s=5)
        lines = iter(parts)
        assert next(lines) == 0
        child = os.fork()
        if child == 0:
            _in_child(url, client, parts, writable)
        os.waitpid(child, 0)
        client.publish("sink/fork", 1)
        in_parent = list(lines)
    return [*json.loads(os.read(readable, 10_000)), in_parent]


def _in_child(url: str, client: cogwork.sync.Client, parts: PartIterator, writable: int) -> None:
    signal.alarm(20)  # nobody ends it, where it waits for good
    told = []
    try:
        try:
            client.publish("sink/fork", 1)
        except cogwork.Disconnected as error:
            told.append(str(error))
        parts.close()
        client.close()
        with cogwork.sync.connect(url) as own:
            own.publish("sink/fork", 1)
        told.append("connected again")
        os.write(writable, json.dumps(told).encode())
    finally:
        os._exit(0)


def closed_by_many(url: str) -> object:
    """Close meshes in several threads at once; say what was raised."""
    raised: list[str] = []
    close = cogwork.client.client.Client.close

    async def close_slowly(client: cogwork.client.client.Client) -> None:
        await close(client)
        await asyncio.sleep(0.1)  # so that the threads are surely in it at once

    def end(client: cogwork.sync.Client) -> None:
        try:
            client.close()
            client.publish("sink/closed", 1)
        except Exception as error:
            raised.append(f"{type(error).__name__}: {error}")

    mock.patch.object(cogwork.client.client.Client, "close", close_slowly).start()
    for _ in range(5):
        client = cogwork.sync.connect(url).__enter__()
        threads = [threading.Thread(target=end, args=(client,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
    return raised


PROGRAMS: dict[str, Callable[[str], object]] = {
    each.__name__: each for each in (collected, dropped, on_its_own_thread, forked, closed_by_many)
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2])))
