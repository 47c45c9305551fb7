"""How servers and callers meet: what says where a server is to be found directly.

A caller that would like to go directly says so in its request (`DIRECT`), and the reply names the
server's address and its URL. On the matchmaker topic servers say `here` when they come and `gone`
when they leave; a caller that comes asks `who`, and every server answers it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from cogwork.client.call_options import RpcOptions

__all__ = ("DIRECT", "GONE", "HERE", "WHO", "here", "matchmaker", "server_and_url", "stamp")

DIRECT: Final = "cogwork:direct"
SERVER: Final = "cogwork:server"
"""Application-properties: a URL (in a request, true), and the address it stands for."""

HERE: Final = "here"
GONE: Final = "gone"
WHO: Final = "who"
"""Subjects on the matchmaker topic."""


def matchmaker(options: RpcOptions, exchange: str | None) -> str:
    """Return the address of the matchmaker topic."""
    return options.every("$direct", exchange)


def stamp(server: str, url: str) -> dict[str, object]:
    """Return the application-properties that tell where a server is."""
    return {DIRECT: url, SERVER: server}


def here(server: str, url: str) -> Message:
    """Return the message that tells where a server is."""
    return Message(None, subject=HERE, properties=stamp(server, url))


def server_and_url(message: Message) -> tuple[str, str] | None:
    """Return what a message tells; None where it tells nothing."""
    properties = message.properties
    server, url = properties.get(SERVER), properties.get(DIRECT)
    return (server, url) if isinstance(server, str) and isinstance(url, str) else None
