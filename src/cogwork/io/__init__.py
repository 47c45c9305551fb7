"""Sockets, TLS, WebSocket, the clock, and the runner of effects, on asyncio."""
