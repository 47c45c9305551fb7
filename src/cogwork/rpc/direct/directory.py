"""What a caller knows of servers that can be reached directly.

Theory of operation. Servers become known by what they announce and by what their replies say. A
call to a known server goes directly: it waits for the connection for a moment at most, and goes
through the mesh where there is none by then, where it cannot be had, or where it broke; such a
server is left alone for a while. A call to any server of a topic goes to the known ones in turn.
Each exchange has a matchmaker topic of its own: that of the usual exchange is heard from the
beginning, those of others from the first call there on.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.loopback import is_loopback
from cogwork.client.connection.url import parse_url
from cogwork.client.errors import InvalidUrlError
from cogwork.client.receiving.subscription import Subscription
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.direct.meeting import GONE, WHO, matchmaker, server_and_url
from cogwork.rpc.direct.peer import Peer

if TYPE_CHECKING:
    from cogwork.rpc.calling.caller import Caller
    from cogwork.rpc.calling.route import Route
    from cogwork.rpc.client_context import RpcContext

__all__ = ("Directory",)

KNOWN_MAX = 10_000
"""Servers that are remembered; whoever announces more is not believed."""

EXCHANGES_MAX = 100
"""Exchanges whose matchmaker topics are heard; of further ones replies tell where servers are."""

IDLE_S = 60.0
"""A connection that carried no call for so long, or up to twice as long, is closed."""

SILENT_S = 600.0
"""A server that could not be reached, and was not heard of for so long, has died without a word."""

log = logging.getLogger("cogwork.client.rpc")


class Directory:
    """The servers that one client knows."""

    def __init__(self, client: RpcContext, caller: Caller) -> None:
        """Initialize it; it knows nobody.

        Args:
            client: The caller's.
            caller: Its calling half.
        """
        self._client = client
        self._caller = caller
        self._peers: dict[str, Peer] = {}
        self._groups: dict[str, dict[str, None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.follow(None)
        self._watch()

    def __len__(self) -> int:
        return len(self._peers)

    # -- who is known

    def learn(self, message: Message) -> None:
        """Take in what a message says of a server."""
        told = server_and_url(message)
        if told is None:
            return
        address, url = told
        if message.subject == GONE:
            self._forget(address)
            return
        known = self._peers.get(address)
        try:
            endpoint = parse_url(url)
        except InvalidUrlError:
            return
        group = self._group_of(address)
        if group is None:
            return
        if known is not None and known.endpoint == endpoint:
            known.heard_s = asyncio.get_running_loop().time()
            return
        if not (endpoint.scheme == "amqps" or is_loopback(endpoint.host)):
            log.warning("%s: no direct calls, because %s is not encrypted", address, endpoint)
            return
        self._forget(address)
        if len(self._peers) < KNOWN_MAX:
            self._peers[address] = Peer(self._client, self._caller.wheel, address, endpoint)
            self._groups.setdefault(group, {})[address] = None

    def _group_of(self, address: str) -> str | None:
        """Return the address of a server's topic; None where there is none."""
        options = self._caller.options
        prefix = f"{options.exclusive}/"
        topic, _, server = address.removeprefix(prefix).rpartition("/")
        if not address.startswith(prefix) or not topic or not server:
            return None
        return f"{options.unicast}/{topic}"

    def _forget(self, address: str) -> None:
        peer = self._peers.pop(address, None)
        if peer is not None:
            peer.drop()
            group = self._group_of(address) or ""
            self._groups.get(group, {}).pop(address, None)
            if not self._groups.get(group, True):
                del self._groups[group]

    # -- ways

    def at_hand(self, address: str) -> tuple[Route, str] | None:
        """Return the way to whom an address means, if it stands already.

        Of a topic's servers it is one that has room: a call must not wait for a busy one.
        """
        group = self._groups.get(address)
        for _ in range(1 if group is None else len(group)):
            peer = self._peer_for(address)
            if peer is None or (route := peer.route) is None:
                return None
            self._turn(address)
            if group is None or _has_room(route, peer.address):
                return route, peer.address
        return None

    async def way(self, address: str) -> tuple[Route, str] | None:
        """Return the way to whom an address means, connecting if need be.

        None where none is, or no server of a topic has room: by the mesh a call gets to the first
        one that has.
        """
        is_topic = address in self._groups
        for _ in range(len(self._groups.get(address, ())) or 1):
            peer = self._peer_for(address)
            if peer is None:
                return None
            self._turn(address)
            route = peer.route
            if route is None and peer.may_dial:
                route = await peer.dial()
            elif route is not None and is_topic and not _has_room(route, peer.address):
                route = None
            if route is not None:
                return route, peer.address
        return None

    def _peer_for(self, address: str) -> Peer | None:
        """Return the server that an address means, or whose turn it is among those of a topic."""
        group = self._groups.get(address)
        return self._peers.get(next(iter(group)) if group else address)

    def _turn(self, address: str) -> None:
        """Have the next one of a topic's servers come first."""
        group = self._groups.get(address)
        if group is not None and len(group) > 1:
            first = next(iter(group))
            group[first] = group.pop(first)

    def failed(self, address: str) -> None:
        """A server could not be asked directly: others or the mesh have to do."""
        peer = self._peers.get(address)
        if peer is not None:
            peer.avoid()
            peer.drop()

    # -- the matchmaker topic

    def follow(self, exchange: str | None) -> None:
        """Ask who is there at an exchange, and hear who comes and goes; None is the usual one."""
        topic = matchmaker(self._caller.options, exchange)
        if topic not in self._tasks and len(self._tasks) < EXCHANGES_MAX:
            self._tasks[topic] = self._client.spawn(self._follow(topic))

    async def _follow(self, topic: str) -> None:
        with suppress(CogworkError):
            replies = await self._caller.routed.open_replies()
            call_id = self._caller.next_id()
            replies.calls[call_id] = self
            news = Subscription(self._client, topic, 100)
            news.outlives_gaps = True  # replies tell of those who came meanwhile
            async with news:
                who = Message(None, subject=WHO, message_id=call_id, reply_to=replies.reply_to)
                await self._client.send_own(topic, who, settled=True)
                async for message in news:
                    with suppress(CogworkError):  # anybody may publish there
                        self.learn(message)

    def on_reply(self, reply: Message) -> None:
        """A server tells that it is there."""
        self.learn(reply)

    def on_lost(self, error: Exception | None) -> None:
        """Who comes now has to be heard of in another way."""

    # -- the end

    def _watch(self) -> None:
        self._caller.wheel.add(asyncio.get_running_loop().time() + IDLE_S, self)

    def on_due(self) -> None:
        """Close connections that nobody uses, and forgets servers that have died."""
        silent_since_s = asyncio.get_running_loop().time() - SILENT_S
        for peer in list(self._peers.values()):
            if peer.has_failed and peer.heard_s < silent_since_s:
                self._forget(peer.address)
                continue
            if not peer.is_used and not peer.is_busy:
                peer.drop()
            peer.is_used = False
        self._watch()

    async def close(self) -> None:
        """Close every connection."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(
            *self._tasks.values(),
            *(peer.close() for peer in self._peers.values()),
            return_exceptions=True,
        )


def _has_room(route: Route, address: str) -> bool:
    """Return whether a server takes a call at once; one that nothing is attached at yet may."""
    target = route.targets.get(address)
    return target is None or target.has_credit
