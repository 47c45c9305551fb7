"""The listener that Prometheus scrapes: `/metrics`, `/healthz`, `/readyz`.

Theory of operation. HTTP is served by threads of the Prometheus client library; each request has
the figures read by the event loop, which keeps the connections to the container. A connection that
fails is given up, and the next request connects again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from cogwork.amqp.errors import CogworkError
from cogwork.cli.management.group import met
from cogwork.cli.metrics.collector import Scrape
from cogwork.cli.metrics.scrape import scrape

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any
    from wsgiref.types import StartResponse, WSGIEnvironment

    from cogwork.cli.metrics.scrape import Scraped
    from cogwork.client import Client

__all__ = ("MetricsServer",)

SCRAPE_TIMEOUT_S = 8.0
"""Less than Prometheus waits by default, 10 s."""

log = logging.getLogger("cogwork")


class MetricsServer:
    """Serves the figures of one container; a context that ends with the server."""

    def __init__(self, url: str, host: str, port: int, top: int | None) -> None:
        """Listen; requests wait until `run`.

        Args:
            url: The container's.
            host: Where to listen.
            port: The TCP port; 0 takes a free one.
            top: How many queues, streams and exchanges have metrics of their own; None for all.

        Raises:
            OSError: The port cannot be had.
        """
        self._url = url
        self._top = top
        self._clients: list[Client] = []
        self._stack = AsyncExitStack()
        self._turn = asyncio.Lock()
        self._problem = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http = make_server(host, port, self._answer, ThreadingWSGIServer, _QuietHandler)
        self.port: int = self._http.server_port

    async def run(self) -> None:
        """Serve until cancelled."""
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(asyncio.to_thread(self._http.serve_forever))
        try:
            await asyncio.shield(serving)
        finally:
            self._http.shutdown()
            self._http.server_close()
            await self._stack.aclose()

    # -- the event loop's side

    async def _read(self) -> list[Scraped]:
        """Read the figures; return nothing if the container does not answer."""
        async with self._turn:
            try:
                async with asyncio.timeout(SCRAPE_TIMEOUT_S):
                    if not self._clients:
                        found = await self._stack.enter_async_context(met(self._url))
                        self._clients = list(found.values())
                    scraped = await asyncio.gather(*map(scrape, self._clients))
            except (CogworkError, OSError, TimeoutError) as error:
                self._note(str(error) or "the container does not answer in time")
                self._clients = []
                await self._stack.aclose()
                return []
        self._note("")
        return scraped

    def _note(self, problem: str) -> None:
        """Log what is wrong when that changes."""
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.warning("cannot read the container's figures: %s", problem)
            else:
                log.info("the container answers")

    # -- the threads' side

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        assert self._loop is not None
        path = environ.get("PATH_INFO", "")
        if path not in ("/metrics", "/healthz", "/readyz"):
            text = f"{path!r:.200} is not here (expected /metrics, /healthz or /readyz)"
            return _plain(start_response, HTTPStatus.NOT_FOUND, text)
        scraped = asyncio.run_coroutine_threadsafe(self._read(), self._loop).result()
        if path == "/metrics":
            registry = CollectorRegistry()
            registry.register(Scrape(scraped, self._top))
            app: Any = make_wsgi_app(registry)
            body: Iterable[bytes] = app(environ, start_response)
            return body
        problem = "" if scraped else "the container does not answer"
        if path == "/readyz":
            problem = problem or next((each.problem for each in scraped if each.problem), "")
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return _plain(start_response, status, problem or "ok")


def _plain(start_response: StartResponse, status: HTTPStatus, text: str) -> list[bytes]:
    head = [("Content-Type", "text/plain; charset=utf-8")]
    start_response(f"{status.value} {status.phrase}", head)
    return [f"{text}\n".encode()]


class _QuietHandler(WSGIRequestHandler):
    """Logs no request: there is one every few seconds."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its base's name
        """Log nothing."""
