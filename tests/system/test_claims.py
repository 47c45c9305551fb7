"""Tokens put to `$cbs`, by Qpid Proton: taken, or refused and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from issuers import AUDIENCE, ISSUER, Issuer, jwks_server
from proton import ConnectionException, Message
from proton.utils import BlockingConnection, LinkDetached, SendException
from proton_sockets import closing_sockets

import cogwork
from cogwork.dataplane.connection import Connection

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.container.container import Container

RULES = f"""
[[group]]
name = "publishers"
permissions = [{{ address = "queue/$user", rights = ["send", "receive"] }}]

[oauth]
issuer = "{ISSUER}"
audience = ["{AUDIENCE}"]
leeway_s = 0
groups_claim = "scope"
"""

WRITE = "publishers"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(autouse=True)
def _sockets() -> Iterator[None]:
    with closing_sockets():
        yield


class Claims:
    """A Proton connection with a sender to `$cbs` and a receiver from it."""

    def __init__(self, container: Container) -> None:
        url = container.endpoints[0].replace("amqp://", "amqp://anyone@")
        self.connection = BlockingConnection(url, timeout=20, allowed_mechs="ANONYMOUS")
        self.receiver = self.connection.create_receiver("$cbs", name="from-cbs", dynamic=False)
        self.sender = self.connection.create_sender("$cbs")
        self._count = 0

    def ask(self, body: Any, **properties: str) -> tuple[int, str]:
        self._count += 1
        told = {"operation": "put-token", "type": "jwt", "name": "cogwork"} | properties
        message = Message(id=self._count, reply_to="somewhere", properties=told, body=body)
        self.sender.send(message)
        reply = self.receiver.receive()
        assert reply.correlation_id == self._count
        said: dict[str, Any] = reply.properties or {}
        return said["status-code"], said["status-description"]


async def served(mesh: Linked, url: str, more: str = "", tables: str = "") -> Container:
    await mesh.start("a", configuration=f'{RULES}jwks = "{url}"\n{more}\n{tables}')
    return mesh.containers["a"]


@story
async def test_nobody_becomes_the_user_of_a_token_where_that_is_allowed(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with jwks_server(issuer.jwks()) as server:
        async with linked() as mesh:
            container = await served(mesh, server.url, "anonymous_login = true")
            await asyncio.to_thread(become_and_renew, container, issuer)
            assert "queue/ann" in container.vhosts[""].nodes
    assert "because the token of user 'ann' has expired" in caplog.text


def become_and_renew(container: Container, issuer: Issuer) -> None:
    claims = Claims(container)
    with pytest.raises(LinkDetached):
        claims.connection.create_sender("queue/ann")
    assert claims.ask(issuer.token(exp=1))[0] == 401
    with pytest.raises(LinkDetached):
        claims.connection.create_sender("queue/ann")
    first_end_s = time.time() + 2
    assert claims.ask(issuer.token(scope=WRITE, exp=first_end_s)) == (200, "OK")
    sender = claims.connection.create_sender("queue/ann")
    assert claims.ask(issuer.token("bob", scope=WRITE))[0] == 401
    second_end_s = time.time() + 5
    token = issuer.token(scope=WRITE, exp=second_end_s)
    assert claims.ask(token.encode(), type="amqp:jwt") == (200, "OK")
    while time.time() < first_end_s + 1.2:  # longer than between two looks at tokens
        sender.send(Message(body="1"))
        time.sleep(0.1)
    with pytest.raises(LinkDetached, match="no permission to send at 'queue/ann'"):
        claims.ask(issuer.token(scope="nothing", exp=second_end_s))
    time.sleep(max(0.0, second_end_s + 1.5 - time.time()))
    with pytest.raises((ConnectionException, LinkDetached)):
        claims.ask("garbage")


@story
async def test_nobody_stays_nobody_where_nothing_is_said(issuer: Issuer, tmp_path: Path) -> None:
    log = tmp_path / "security.log"
    tables = f'[security_log]\nto = "file"\npath = "{log}"\n'
    with jwks_server(issuer.jwks()) as server:
        async with linked() as mesh:
            container = await served(mesh, server.url, tables=tables)
            token = issuer.token(scope=WRITE)
            told = await asyncio.to_thread(lambda: Claims(container).ask(token))
            assert told == (401, "the token is refused; the container's log says why")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    refused = [each for each in events if each["event"] == "login_refused"]
    assert [(each["user"], each["mechanism"]) for each in refused] == [(None, "OAUTHBEARER")]
    assert "oauth.anonymous_login = false" in refused[0]["reason"]
    assert token not in log.read_text()


@story
async def test_requests_that_are_none_say_what_would_be_right(issuer: Issuer) -> None:
    with jwks_server(issuer.jwks()) as server:
        async with linked() as mesh:
            container = await served(mesh, server.url)
            await asyncio.to_thread(ask_wrongly, container)


def ask_wrongly(container: Container) -> None:
    claims = Claims(container)
    assert claims.ask("t", operation="delete-token") == (
        501,
        "unknown operation 'delete-token' (expected 'put-token')",
    )
    status, text = claims.ask("t", type="servicebus.windows.net:sastoken")
    assert (status, text[-35:]) == (400, "(expected one of 'jwt', 'amqp:jwt')")
    assert claims.ask({"a": 1}) == (400, "the body is no token: a string, or its octets")
    assert claims.ask("x" * 20_000)[0] == 401
    assert claims.ask("x" * 16)[0] == 401
    other = BlockingConnection(container.endpoints[0], timeout=20, allowed_mechs="ANONYMOUS")
    alone = other.create_sender("$cbs")
    with pytest.raises(SendException):
        alone.send(Message(body="t"))


@story
async def test_a_login_by_token_is_renewed_while_its_links_stand(issuer: Issuer) -> None:
    with jwks_server(issuer.jwks()) as server:
        async with linked() as mesh:
            container = await served(mesh, server.url)
            short = issuer.token(scope=WRITE, exp=time.time() + 2)
            client = await mesh.enter(cogwork.connect(container.endpoints[0], token=short))
            await client.publish("queue/ann", 1)
            [peer] = container.peers.connections
            told: list[Any] = []
            assert isinstance(peer, Connection)
            container.token_renewals.put(
                peer, issuer.token(scope=WRITE), lambda *it: told.append(it)
            )
            await eventually(lambda: told == [(200, "OK")], "the token holds")
            await asyncio.sleep(3.2)  # beyond the first one's end, and a look at tokens
            await client.publish("queue/ann", 2)
            assert client.connections == 1


@story
async def test_there_is_no_place_for_tokens_without_rules_for_them() -> None:
    async with linked() as mesh:
        await mesh.start("a")
        client = await mesh.client("a")
        with pytest.raises(cogwork.CogworkError, match=r"the configuration has no \[oauth\]"):
            await client.publish("$cbs", "token")
