"""How long messages stay away when the container they pass is killed, or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from typing import TYPE_CHECKING, Final

import cogwork
from cogwork.bench.url import PeerError
from cogwork.client import ClientError

if TYPE_CHECKING:
    from fleet import Edge, Fleet, Member

__all__ = ("DIAMOND", "HEARTBEAT_S", "kill_transit", "stop_transit")

DIAMOND: Final[tuple[Edge, ...]] = (
    ("a", "b", 1),
    ("b", "d", 1),
    ("a", "c", 5),
    ("c", "d", 5),
)
"""From a to d there are two ways, and the one by b is preferred."""

_TRANSIT: Final = ("b", "c")

HEARTBEAT_S: Final = 1.0

_PACE_S: Final = 0.001
_CALM_S: Final = 0.5
_TIMEOUT_S: Final = 20.0
_IN_FLIGHT_S: Final = 0.005
"""A signal takes its time: what was sent so soon after it may still have passed."""


def kill_transit(fleet: Fleet, address: str, times: int) -> list[float]:
    """Kill the transit container; return how long nothing came, each time."""
    return [_disturb(fleet, f"{address}.{at}", signal.SIGKILL) for at in range(times)]


def stop_transit(fleet: Fleet, address: str, times: int) -> list[float]:
    """Stop the transit container; return how long nothing came, each time."""
    return [_disturb(fleet, f"{address}.{at}", signal.SIGSTOP) for at in range(times)]


def _disturb(fleet: Fleet, address: str, number: int) -> float:
    """Send the transit container a signal while messages pass it, and have it back afterwards.

    Raises:
        PeerError: No messages come, at first or any more.
    """
    try:
        return asyncio.run(_flow(fleet, address, number))
    finally:
        for name in _TRANSIT:
            _mend(fleet[name], number)
        fleet.wait_until_linked()
        time.sleep(_CALM_S)


def _mend(member: Member, number: int) -> None:
    if number == signal.SIGSTOP:
        member.signal(signal.SIGCONT)
    elif not member.is_alive:
        member.start()


def _sent_to(fleet: Fleet) -> dict[str, int]:
    """Return how many messages a has sent to each of its neighbours."""
    rows = fleet["a"].ask("QUERY", "org.cogwork.link")
    return {row["neighbour"]: row["messages_out"] for row in rows}


async def _flow(fleet: Fleet, address: str, number: int) -> float:
    """Send a message each millisecond; return when the first one came that left afterwards."""
    sent_s: list[float] = []
    came: list[tuple[int, float]] = []

    def note(number: int) -> None:
        came.append((number, time.monotonic()))

    async def receive() -> None:
        async with (
            cogwork.connect(fleet["d"].url, force=True) as client,
            client.subscribe(address) as messages,
        ):
            async for message in messages:
                assert isinstance(message.body, int)
                note(message.body)

    async def send() -> None:
        async with (
            cogwork.connect(fleet["a"].url, force=True) as client,
            client.publisher(address) as out,
        ):
            while True:
                sent_s.append(time.monotonic())
                await out.send(len(sent_s) - 1, settled=True)
                await asyncio.sleep(_PACE_S)

    receiver = asyncio.create_task(receive())
    await asyncio.sleep(_CALM_S)
    before = await asyncio.to_thread(_sent_to, fleet)
    sender = asyncio.create_task(send())
    await asyncio.sleep(_CALM_S)
    after = await asyncio.to_thread(_sent_to, fleet)
    if not came:
        raise PeerError("no message came, before anything was disturbed")
    # What passes now need not go by the cheapest way: a way that stands is not given up for one
    # that has come back.
    transit = max(_TRANSIT, key=lambda name: after[name] - before[name])
    since_s = time.monotonic()
    fleet[transit].signal(number)
    found_s: list[float] = []
    while not found_s and time.monotonic() < since_s + _TIMEOUT_S:
        await asyncio.sleep(0.01)
        found_s = [at_s - since_s for at, at_s in came if sent_s[at] > since_s + _IN_FLIGHT_S]
    for task in (receiver, sender):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ClientError):
            await task
    if not found_s:
        raise PeerError("no message came any more")
    return found_s[0]
