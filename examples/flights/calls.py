"""The third act: a service at c has learnt from the flights, and is asked by callers at a."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.client import CallTimeout, InDoubt, Released

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from triangle import Strike, Triangle

    from cogwork import Client, Message

    Advance = Callable[[str, int], None]

__all__ = ("CALLS_OF_EACH_ROUTE", "SERVICE", "Asked", "Delays", "ask_delays")

CALLS_OF_EACH_ROUTE = 50
CALLS_AT_ONCE = 32
CALL_TIMEOUT_S = 2
PAUSE_S = 0.05
SERVICE = "service/delays"


@dataclass
class Delays:
    """The service: learns from the topic, answers by route."""

    minutes: Mapping[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, message: Message) -> None:
        """Note a flight's delay."""
        row = message.body
        if row["arr_delay"] is not None:
            self.minutes[f"{row['origin']}-{row['dest']}"].append(row["arr_delay"])

    def answer(self, request: Message) -> dict[str, float]:
        """Answer with the mean delay of the route that the request names."""
        known = self.minutes[request.body]
        return {"flights": len(known), "mean_delay_min": sum(known) / len(known)}


@dataclass
class Asked:
    """What came of the act.

    Attributes:
        right: How many calls were answered rightly.
        answered: How many were answered.
        repeated: How many had to be made again, because b took request or reply with it.
        times_s: How long each call took that was answered at once.
        strike: How b was killed.
        direct: Messages that went over the direct link.
    """

    right: int = 0
    answered: int = 0
    repeated: int = 0
    times_s: list[float] = field(default_factory=list)
    strike: Strike = field(init=False)
    direct: int = 0


async def ask_delays(
    triangle: Triangle, delays: Delays, expected: Mapping[str, float], advance: Advance
) -> Asked:
    """Ask the service for every route, some times over, while b is killed."""
    asked = Asked()
    routes = iter(list(expected) * CALLS_OF_EACH_ROUTE)
    half = len(expected) * CALLS_OF_EACH_ROUTE // 2

    async def caller() -> None:
        for route in routes:
            reply = await _answer(triangle.clients["a"], route, asked)
            asked.answered += 1
            asked.right += abs(reply.body["mean_delay_min"] - expected[route]) < 1e-9
            advance("calls answered", 1)

    async with triangle.clients["c"].serve(SERVICE, delays.answer):
        killing = asyncio.create_task(triangle.kill_b(lambda: asked.answered > half))
        await asyncio.gather(*(caller() for _ in range(CALLS_AT_ONCE)))
        asked.strike = await killing
        asked.direct = await triangle.messages_over("c")
    return asked


async def _answer(client: Client, route: str, asked: Asked) -> Message:
    """Call until there is an answer: to ask twice does no harm here."""
    while True:
        started_s = time.perf_counter()
        try:
            reply = await client.request(SERVICE, route, timeout_s=CALL_TIMEOUT_S)
        except (CallTimeout, InDoubt, Released):
            asked.repeated += 1
            await asyncio.sleep(PAUSE_S)
            continue
        asked.times_s.append(time.perf_counter() - started_s)
        return reply
