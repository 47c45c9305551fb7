"""Sockets, TLS, WebSocket, the clock, and the runner of effects, on asyncio."""

from cogwork import freshness

freshness.load("cogwork.io.poller")
