"""An honest client in a process of its own, and what it waits for while others attack.

Theory of operation. The client makes round trips without end. The first `QUIET_TRIPS` are made
before there is an attack; the others until the attack is over. Latencies are corrected for what a
client that waits leaves out: a trip that is late by many others counts as often as those would have
been late, or one long stall among many short trips would be no percentile at all.

A ratio of two latencies is a measure only on a machine that does nothing else. Tests hold the bound
of `Figures.check`, which a machine with other work can keep, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import cogwork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    Trip = Callable[[], Awaitable[None]]

__all__ = (
    "FLOOR_S",
    "RATIO_MAX",
    "Figures",
    "Honest",
    "beside",
    "gateway_url",
    "percentile",
    "undisturbed",
)

RATIO_MAX = 5.0
"""What the 99th percentile under attack may be of the quiet one."""

FLOOR_S = 1.0
"""What a test allows in any case: a machine that runs other tests is as late as that by itself."""

WARM_UP = 20
QUIET_TRIPS = 300
QUIET_LOGINS = 100
"""A login takes as long as a hundred messages: that is what a hash of a password is for."""

PAUSE_S = 0.002

START_S = 60.0

TESTS = Path(__file__).parents[1]


class Figures(NamedTuple):
    """What an honest client had to wait.

    Attributes:
        quiet_p99_s: Of a round trip, before the attack.
        attacked_p99_s: Of one during the attack.
        trips: How many it made during the attack.
        connect_s: To connect once more and send, at the end of the attack.
        connections: How many it had: one, unless it was cut off.
    """

    quiet_p99_s: float
    attacked_p99_s: float
    trips: int
    connect_s: float
    connections: int

    @property
    def ratio(self) -> float:
        """What the attack made of the latency."""
        return self.attacked_p99_s / self.quiet_p99_s

    def check(self, floor_s: float) -> None:
        """Raise `AssertionError` if the attack was to be noticed; print what was measured.

        Args:
            floor_s: What is allowed in any case.
        """
        most_s = max(RATIO_MAX * self.quiet_p99_s, floor_s)
        sys.stdout.write(
            f"honest client: p99 {1000 * self.quiet_p99_s:.2f} ms quiet, "
            f"{1000 * self.attacked_p99_s:.2f} ms under attack ({self.trips} round trips), "
            f"connected again in {1000 * self.connect_s:.0f} ms\n"
        )
        assert self.connections == 1, "it was cut off"
        assert self.attacked_p99_s <= most_s, self
        assert self.connect_s <= most_s, self


class Honest:
    """The process of an honest client, which has measured its quiet latency."""

    def __init__(self, url: str, kind: str) -> None:
        """Start it.

        Args:
            url: Whom it connects to, and as whom.
            kind: What a round trip of it is, of `KINDS`.

        Raises:
            AssertionError: It does not get as far as to be quiet.
        """
        # Passwords of tests are no secrets: they may be on a command line.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "system.honest", kind, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != b"quiet\n":
            self.kill()
            raise AssertionError(f"the honest client ended before the attack: {line!r}")

    def end(self) -> Figures:
        """Tell it that the attack is over; return what it measured."""
        try:
            output, _ = self._process.communicate(timeout=START_S)
        finally:
            self.kill()
        assert self._process.returncode == 0, "the honest client failed"
        return Figures(*json.loads(output))

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def beside(url: str, kind: str = "messages", *, floor_s: float = FLOOR_S) -> Iterator[None]:
    """Have an honest client go on beside a block, and check that it did not notice."""
    honest = Honest(url, kind)
    try:
        yield
    except BaseException:
        honest.kill()
        raise
    honest.end().check(floor_s)


@contextlib.asynccontextmanager
async def undisturbed(url: str, kind: str = "messages") -> AsyncIterator[None]:
    """Do the same where the container may be in this event loop."""
    honest = await asyncio.to_thread(Honest, url, kind)
    try:
        yield
    except BaseException:
        honest.kill()
        raise
    (await asyncio.to_thread(honest.end)).check(FLOOR_S)


def gateway_url(endpoint: str, keys: tuple[bytes, bytes, bytes]) -> str:
    """Return what an honest client of a ZeroMQ gateway takes for a URL."""
    return json.dumps([endpoint, *(each.decode() for each in keys)])


def percentile(took_s: list[float], share: float) -> float:
    """Return a percentile: the longest where there are too few."""
    return sorted(took_s)[min(int(len(took_s) * share), len(took_s) - 1)]


# -- the process


class Ways(NamedTuple):
    """What an honest client does.

    Attributes:
        trip: Makes a round trip.
        connect: Connects once more, does something, and leaves.
        connections: Counts its connections until now.
    """

    trip: Trip
    connect: Trip
    connections: Callable[[], int]


def ways(client: cogwork.Client, url: str, trip: Trip) -> Ways:
    """Return those of a client that speaks AMQP."""

    async def connect() -> None:
        async with cogwork.connect(url) as again, again.publisher("topic/honest") as publisher:
            await publisher.send(b"x")

    return Ways(trip, connect, lambda: client.connections)


@contextlib.asynccontextmanager
async def messages(url: str) -> AsyncIterator[Ways]:
    """Publish to itself."""
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/honest") as mine,
        client.publisher("topic/honest") as publisher,
    ):
        arrivals = aiter(mine)

        async def trip() -> None:
            await publisher.send(b"x")
            await anext(arrivals)

        yield ways(client, url, trip)


@contextlib.asynccontextmanager
async def calls(url: str) -> AsyncIterator[Ways]:
    """Call a service that is on a connection of its own."""

    async def handle(request: cogwork.Message) -> object:
        await asyncio.sleep(0)
        return request.body

    async with (
        cogwork.connect(url) as server,
        cogwork.connect(url) as client,
        server.serve("unicast/honest", handle),
    ):

        async def trip() -> None:
            assert (await client.request("unicast/honest", 1, timeout_s=20)).body == 1

        yield ways(client, url, trip)


@contextlib.asynccontextmanager
async def logins(url: str) -> AsyncIterator[Ways]:
    """Log in."""

    async def trip() -> None:
        async with cogwork.connect(url):
            pass

    async with cogwork.connect(url) as client:
        yield ways(client, url, trip)


@contextlib.asynccontextmanager
async def gateway(url: str) -> AsyncIterator[Ways]:
    """Call a service by the ZeroMQ gateway; the URL is as `gateway_url` makes it."""
    from .zeromq_mesh import session  # noqa: PLC0415  # no other kind needs pyzmq

    endpoint, *keys = json.loads(url)
    known = session.Keys(*(each.encode() for each in keys))
    service, caller = (session.Session(endpoint, keys=known) for _ in range(2))
    service.register("honest")

    async def trip() -> None:
        caller.send("CALL", {"id": 1, "to": "honest", "timeout_s": 20}, "x")
        service.serve_one(lambda request: request.body)
        assert caller.receive().body == "x"
        await asyncio.sleep(0)

    async def connect() -> None:
        again = session.Session(endpoint, keys=known)
        again.ask("PING", {})
        again.close()
        await asyncio.sleep(0)

    yield Ways(trip, connect, lambda: 1)
    for each in (service, caller):
        each.close()


KINDS: dict[str, Callable[[str], AbstractAsyncContextManager[Ways]]]
KINDS = {"messages": messages, "calls": calls, "logins": logins, "gateway": gateway}


class Latencies:
    """Those of one client's round trips."""

    def __init__(self, pause_s: float) -> None:
        """Have none yet; the client pauses so long between two of them."""
        self.took_s: list[float] = []
        self._pause_s = pause_s

    async def add(self, trip: Trip) -> None:
        """Make one more."""
        start_s = time.perf_counter()
        await trip()
        self.took_s.append(time.perf_counter() - start_s)
        await asyncio.sleep(self._pause_s)

    def p99_s(self, usual_s: float) -> float:
        """Return the 99th percentile; whose trips usually take so long is late more than once."""
        each_s = usual_s + self._pause_s
        corrected = [
            took_s - late * each_s
            for took_s in self.took_s
            for late in range(int(took_s / each_s) + 1)
        ]
        return percentile(corrected, 0.99)


async def measure(kind: str, url: str) -> Figures:
    """Make round trips until the standard input ends."""
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, is_over.set)
    async with KINDS[kind](url) as (trip, connect, connections):
        for _ in range(WARM_UP):
            await trip()
        quiet, attacked = Latencies(PAUSE_S), Latencies(PAUSE_S)
        while len(quiet.took_s) < (QUIET_LOGINS if kind == "logins" else QUIET_TRIPS):
            await quiet.add(trip)
        say("quiet")
        while not is_over.is_set() or not attacked.took_s:
            await attacked.add(trip)
        start_s = time.perf_counter()
        await connect()
        connect_s = time.perf_counter() - start_s
        usual_s = median(quiet.took_s)
        return Figures(
            quiet.p99_s(usual_s),
            attacked.p99_s(usual_s),
            len(attacked.took_s),
            connect_s,
            connections(),
        )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    say(json.dumps(asyncio.run(measure(*sys.argv[1:]))))
