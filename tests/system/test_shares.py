"""Who takes more than its share is refused; a client from elsewhere goes on and does not notice.

Attackers come from other addresses of the loopback network than the honest client.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.frames import SASL_HEADER
from cogwork.amqp.performatives import Begin
from cogwork.amqp.sasl import SaslCode
from cogwork.config import password_hash
from cogwork.config.reading import parse
from cogwork.container.connections.clients import ClientContext
from cogwork.container.container import Container
from cogwork.container.security import access

from .attackers import (
    ATTACKER,
    HELPER,
    HONEST,
    HONEST_MAX_S,
    Stranger,
    refusal,
)
from .honest import undisturbed
from .raw_logins import log_in
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.dataplane.link import Link


@contextlib.asynccontextmanager
async def limited(limits: str, more: str = "", top: str = "") -> AsyncIterator[Container]:
    """Run a container with some limits."""
    text = f'id = "north"\n{top}\n[[listen]]\nport = 0\n{more}\n[limits]\n{limits}\n'
    container = Container(parse(text, "test"))
    await container.start()
    try:
        yield container
    finally:
        await container.stop(drain_timeout_s=0)


async def strangers(container: Container, host: str, count: int) -> list[Stranger]:
    return [await Stranger.connected(container.endpoints[0], host) for _ in range(count)]


async def left(found: list[Stranger]) -> int:
    """Count those that the container has not hung up on."""
    return sum(not gone for gone in await asyncio.gather(*(each.is_hung_up() for each in found)))


def told_users(monkeypatch: pytest.MonkeyPatch) -> str:
    """Configure ann and bob, whose passwords take a fifth of the time to check."""
    monkeypatch.setattr(password_hash, "PARALLELISM_P", 1)
    may = 'permissions = [{ address = "#", rights = ["send", "receive"] }]'
    hashed = password_hash.hash_password("pw")
    return "".join(
        f'[[user]]\nname = "{name}"\npassword_hash = "{hashed}"\n{may}\n' for name in ("ann", "bob")
    )


@story
async def test_those_that_do_not_log_in_have_a_small_pool_with_shares() -> None:
    async with (
        limited("unauthenticated = 12\nunauthenticated_per_source = 8") as container,
        undisturbed(container.endpoints[0]),
    ):
        attackers = await strangers(container, ATTACKER, 20)
        assert await left(attackers) == 8
        helpers = await strangers(container, HELPER, 6)
        assert await left(helpers) == 6, "who has fewer gets in"
        assert await left(attackers) == 6, "who has most makes room"
        for each in (*attackers, *helpers):
            each.leave()


@story
async def test_a_source_has_a_share_of_the_connections() -> None:
    async with (
        limited("connections = 20\nconnections_per_source = 5") as container,
        undisturbed(container.endpoints[0]),
    ):
        inside = [await Stranger.opened(container.endpoints[0], ATTACKER) for _ in range(5)]
        late = await Stranger.opened(container.endpoints[0], ATTACKER)
        assert refusal(await late.error()) == (
            "source '127.0.0.2' has 5 connections, which is the limit "
            "(limits.connections_per_source = 5)"
        )
        inside.pop().leave()
        await eventually(lambda: len(container.peers.connections) == 5, "it has gone")
        again = await Stranger.opened(container.endpoints[0], ATTACKER)
        assert len(await again.hear()) > 0
        for each in (*inside, late, again):
            each.leave()


@story
async def test_a_user_has_a_share_of_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_users(monkeypatch)
    async with (
        limited("connections_per_user = 2", told) as container,
        undisturbed(container.endpoints[0].replace("://", "://bob:pw@")),
    ):
        ann = container.endpoints[0].replace("://", "://ann:pw@")
        async with cogwork.connect(ann), cogwork.connect(ann):
            with pytest.raises(cogwork.ConnectError, match="user 'ann' has 2 connections"):
                async with cogwork.connect(ann):
                    pass


@story
async def test_a_source_that_connects_too_often_waits_and_is_refused() -> None:
    async with (
        limited("connection_rate_per_source = 4.0") as container,
        undisturbed(container.endpoints[0]),
    ):
        attackers = await strangers(container, ATTACKER, 40)
        for each in attackers:
            each.write(SASL_HEADER)
        start_s = time.monotonic()
        assert await left(attackers) < 40
        await eventually(lambda: container.peers.refused > 20, "most are refused")
        assert container.peers.refused < 40
        taken = container.peers.accepted
        most = 4.0 * (2.0 + 1.0 + time.monotonic() - start_s) + 1 + 4
        assert taken <= most
        for each in attackers:
            each.leave()


@story
async def test_a_user_that_logs_in_too_often_waits_and_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = told_users(monkeypatch)
    monkeypatch.setattr(access, "LOGIN_WAIT_S", 1.5)  # else the test takes as long as that
    async with limited("login_rate_per_user = 1.0", told) as container:
        port = int(container.endpoints[0].rpartition(":")[2])
        codes = await asyncio.gather(*(log_in(port, ATTACKER, "ann", "pw") for _ in range(8)))
        assert codes.count(SaslCode.OK) >= 4
        assert codes.count(SaslCode.SYS_TEMP) >= 1
        assert set(codes) == {SaslCode.OK, SaslCode.SYS_TEMP}
        start_s = time.monotonic()
        assert await log_in(port, HONEST, "bob", "pw") is SaslCode.OK
        assert time.monotonic() - start_s < HONEST_MAX_S


BEGIN = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)


@story
async def test_sessions_beyond_a_share_are_ended_and_then_the_connection() -> None:
    async with (
        limited("sessions_per_source = 4") as container,
        undisturbed(container.endpoints[0]),
    ):
        attacker = await Stranger.opened(container.endpoints[0], ATTACKER)
        for channel in range(1, 5):
            attacker.say(BEGIN, channel=channel)
        assert refusal(await attacker.error()) == (
            "source '127.0.0.2' has 4 sessions, which is the limit (limits.sessions_per_source = 4)"
        )
        for channel in range(5, 80):
            attacker.say(BEGIN, channel=channel)
        assert await attacker.is_closed()
        attacker.leave()


@story
async def test_links_beyond_a_share_are_refused_and_then_the_connection_goes() -> None:
    async with (
        limited("links_per_connection = 4") as container,
        undisturbed(container.endpoints[0]),
    ):
        attacker = await Stranger.opened(container.endpoints[0], ATTACKER)
        for handle in range(5):
            attacker.publish_to("queue/a", handle)
        (number,) = (
            client.number
            for client in container.peers.connections.values()
            if client.peer.host == ATTACKER
        )
        assert refusal(await attacker.error()) == (
            f"connection '{number}' has 4 links, which is the limit "
            "(limits.links_per_connection = 4)"
        )
        again = await Stranger.opened(container.endpoints[0], ATTACKER)
        again.publish_to("queue/a")
        assert len(await again.hear()) > 0, "another connection has a share of its own"
        for handle in range(5, 80):
            attacker.publish_to("queue/a", handle)
        assert await attacker.is_closed()
        attacker.leave()
        again.leave()


@story
async def test_dynamic_addresses_have_shares_and_are_given_back() -> None:
    async with (
        limited("dynamic_addresses_per_source = 3") as container,
        undisturbed(container.endpoints[0]),
    ):
        makers = [await Stranger.opened(container.endpoints[0], ATTACKER) for _ in range(5)]
        for each in makers[:2]:
            each.receive_from(None, credit=1)
        makers[2].publish_to(None)
        await eventually(lambda: len(container.links) >= 5, "three have one")
        for each in makers[3:]:
            each.receive_from(None, credit=1)
            assert refusal(await each.error()).endswith("limits.dynamic_addresses_per_source = 3)")
        for each in makers[1:3]:
            each.leave()
        await eventually(lambda: count_of(container, ATTACKER) == 3, "two have gone")
        for _ in range(2):
            late = await Stranger.opened(container.endpoints[0], ATTACKER)
            late.receive_from(None, credit=1)
            makers.append(late)
        await eventually(lambda: len(container.links) >= 5, "two more have one")
        for each in makers:
            each.leave()


@story
async def test_a_source_that_attaches_too_often_waits_and_is_refused() -> None:
    async with (
        limited("attach_rate_per_source = 3.0") as container,
        undisturbed(container.endpoints[0]),
    ):
        attacker = await Stranger.opened(container.endpoints[0], ATTACKER)
        for handle in range(60):
            attacker.publish_to("queue/a", handle)
        assert refusal(await attacker.error()).endswith("limits.attach_rate_per_source = 3)")
        inside = len([each for each in container.links.values() if is_of(each, ATTACKER)])
        assert 6 <= inside <= 12
        await eventually(
            lambda: (
                len([each for each in container.links.values() if is_of(each, ATTACKER)]) > inside
            ),
            "one that waited is answered",
        )
        attacker.leave()


def is_of(link: Link, host: str) -> bool:
    client = link.session.connection.context
    assert isinstance(client, ClientContext)
    return client.peer.host == host


def count_of(container: Container, host: str) -> int:
    """Count the connections from an address."""
    clients = container.peers.connections.values()
    return sum(client.peer.host == host for client in clients)
