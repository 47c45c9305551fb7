"""The calls of `rpc.py` with python-qpid-proton, as its users write them."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import AtMostOnce, Container

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

Event: TypeAlias = Any
"""Proton has no types."""

ADDRESS = "unicast/rpc/proton"

__all__ = ("proton_client", "proton_service")


class _Server(MessagingHandler):
    def __init__(self, url: str) -> None:
        super().__init__(prefetch=200)
        self._url = url

    def on_start(self, event: Event) -> None:
        connection = event.container.connect(self._url, allowed_mechs="ANONYMOUS")
        event.container.create_receiver(connection, ADDRESS, options=AtMostOnce())
        self._relay = event.container.create_sender(connection, None, options=AtMostOnce())

    def on_link_opened(self, event: Event) -> None:
        if event.link.is_sender:
            print(json.dumps({}), flush=True)

    def on_message(self, event: Event) -> None:
        asked = event.message
        number = asked.body["n"]
        self._relay.send(Message(body=number, address=asked.reply_to, correlation_id=asked.id))


class _Client(MessagingHandler):
    """Makes calls, phase by phase: how many, and how many at once."""

    def __init__(self, url: str, *plan: tuple[int, int]) -> None:
        super().__init__(prefetch=200)
        self._url = url
        self._plan = deque(plan)
        self._left = self._waiting = self._number = 0
        self.waits_s: list[float] = []

    def on_start(self, event: Event) -> None:
        self._container = event.container
        connection = event.container.connect(self._url, allowed_mechs="ANONYMOUS")
        self._replies = event.container.create_receiver(
            connection, None, dynamic=True, options=AtMostOnce()
        )
        self._sender = event.container.create_sender(connection, ADDRESS, options=AtMostOnce())

    def on_sendable(self, _event: Event) -> None:
        if not self._waiting and self._replies.remote_source.address:
            self._next_phase()

    def _next_phase(self) -> None:
        if not self._plan:
            self._container.stop()
            return
        self._left, outstanding = self._plan.popleft()
        self.waits_s = []
        for _ in range(outstanding):
            self._call()

    def _call(self) -> None:
        self._number += 1
        self._left -= 1
        self._waiting += 1
        self._began_s = time.perf_counter()
        self._sender.send(
            Message(
                body={"n": self._number},
                id=self._number,
                subject="function",
                reply_to=self._replies.remote_source.address,
                ttl=10,
            )
        )

    def on_message(self, event: Event) -> None:
        self._waiting -= 1
        self.waits_s.append(time.perf_counter() - self._began_s)
        assert event.message.correlation_id is not None
        if self._left > 0:
            self._call()
        elif self._waiting == 0:
            self._next_phase()


def proton_service(url: str) -> None:
    """Answer until it is killed."""
    Container(_Server(url)).run()


def proton_client(
    url: str, calls: int, outstanding: int, warm_up: int
) -> tuple[list[float], Callable[[], Coroutine[Any, Any, None]]]:
    """Call one by one.

    Returns:
        What each took, and what makes the calls side by side.
    """
    single = _Client(url, (warm_up, 1), (calls // 10, 1))
    Container(single).run()

    async def measured() -> None:
        Container(_Client(url, (calls, outstanding))).run()

    return single.waits_s, measured
