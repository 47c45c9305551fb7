"""Tells the matchmaker topic of a server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.client.receiving.subscription import Subscription
from cogwork.rpc.direct.meeting import GONE, WHO, here

if TYPE_CHECKING:
    from cogwork.client.context import ClientContext

__all__ = ("Announcer",)

log = logging.getLogger("cogwork.client.rpc")


class Announcer:
    """Says when a server comes and goes, and answers who asks."""

    def __init__(self, client: ClientContext, topic: str, server: str, url: str) -> None:
        """Say nothing yet.

        Args:
            client: The connection.
            topic: The matchmaker topic.
            server: The server's address.
            url: Where it is found.
        """
        self._client = client
        self._topic = topic
        self._server = server
        self._url = url
        self._questions = Subscription(client, topic, 100)
        self._questions.outlives_gaps = True  # who was not answered comes through the mesh
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Say that the server is there.

        A client that may not use the topic is met by its replies alone.
        """
        try:
            await self._questions.open()
            await self._client.send_own(self._topic, here(self._server, self._url), settled=True)
        except CogworkError as error:
            log.info("%s: cannot announce the server for direct calls: %s", self._server, error)
            return
        self._task = self._client.spawn(self._answer())

    async def _answer(self) -> None:
        with suppress(CogworkError):
            async for question in self._questions:
                with suppress(CogworkError):  # anybody may publish there
                    if question.subject == WHO and question.reply_to is not None:
                        told = here(self._server, self._url)
                        told.correlation_id = question.message_id
                        await self._client.send_own(question.reply_to, told, settled=True)

    async def close(self) -> None:
        """Say that the server goes."""
        if self._task is None:
            return
        self._task.cancel()
        gone = here(self._server, self._url)
        gone.subject = GONE
        if self._client.is_connected:
            with suppress(CogworkError):
                await self._client.send_own(self._topic, gone, settled=True)
            await self._questions.shut()
        await asyncio.gather(self._task, return_exceptions=True)
