"""Serving the console over HTTP until the process is to stop."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from starlette.types import ASGIApp

__all__ = ("serve",)

STOP_TIMEOUT_S = 3
CONCURRENT_MAX = 500


async def serve(
    app: ASGIApp, listener: socket.socket, certificate: str | None, key: str | None
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        app: What answers.
        listener: Where browsers connect.
        certificate: A PEM file, for HTTPS; None speaks HTTP.
        key: The file of its key; None where the certificate's file holds it.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONCURRENT_MAX,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    await _Server(config).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends well when it is told to stop; uvicorn's own would raise the signal once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield
