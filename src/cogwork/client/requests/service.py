"""Services: requests are handled side by side, and each is answered."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.client.fields import message_of
from cogwork.client.receiving.consumer import Consumer
from cogwork.client.requests.replies import CONDITION, DESCRIPTION
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from cogwork.client.context import ClientContext
    from cogwork.dataplane.client.items import Item

__all__ = ("Service",)

log = logging.getLogger("cogwork.client")


class Service:
    """Answers requests to one address; made by `Client.serve`."""

    def __init__(
        self,
        client: ClientContext,
        address: str,
        handler: Callable[[Message], object],
        concurrency: int,
    ) -> None:
        """Initialize it; it does not serve yet.

        Args:
            client: Keeps it attached.
            address: Where requests come.
            handler: Gets a request; returns a body, a `Message`, or an awaitable of either.
            concurrency: Requests that are handled at once.

        Raises:
            ValueError: `concurrency` is less than one.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency: at least 1 is expected, not {concurrency}")
        self._client = client
        self._address = address
        self._handler = handler
        self._requests = Consumer(client, address, concurrency, confirms=False)
        self._loop_task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._requests.open()
        self._loop_task = asyncio.create_task(self._serve())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop_task is not None
        self._loop_task.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._loop_task, *self._tasks, return_exceptions=True)
        await self._requests.__aexit__(kind, error, trace)

    async def wait(self) -> None:
        """Serve until it is cancelled, or the address is taken away.

        Raises:
            LinkDetached: The container ended the link.
        """
        assert self._loop_task is not None
        await asyncio.shield(self._loop_task)

    async def _serve(self) -> None:
        async for request in self._requests:
            task = asyncio.create_task(self._handle(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _handle(self, request: Item) -> None:
        """Have one request handled; whatever goes wrong is the answer."""
        try:
            answer = self._handler(request)
            if inspect.isawaitable(answer):
                answer = await answer
            reply = message_of(answer)
            await self._reply(request, reply)
        except asyncio.CancelledError:
            request.release()
            raise
        except (KeyboardInterrupt, GeneratorExit):  # is meant for the process, or for its end
            raise
        except BaseException as error:  # the handler's faults are the requester's to know
            log.info("%s: a request failed: %s", self._address, error, exc_info=error)
            with suppress(CogworkError):  # the connection may be what failed
                await self._reply(request, _report(error))
        request.accept_nowait()

    async def _reply(self, request: Item, reply: Message) -> None:
        if request.reply_to is None:
            return
        reply.correlation_id = (
            request.message_id if request.correlation_id is None else request.correlation_id
        )
        await self._client.send_own(request.reply_to, reply, settled=True)


def _report(error: BaseException) -> Message:
    condition = getattr(error, "condition", None) or Condition.INTERNAL_ERROR
    text = str(error) if isinstance(error, CogworkError) else f"{type(error).__name__}: {error}"
    return Message(None, properties={CONDITION: str(condition), DESCRIPTION: text})
