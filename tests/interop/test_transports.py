"""Every client gets in by every door, and nobody gets in without the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .clients import CLIENTS, fresh_address
from .comparison import differences
from .notation import data_message, string, value_message
from .peer import PeerFailedError

if TYPE_CHECKING:
    from .broker import Settings
    from .conftest import GetPeer

TRANSPORTS = ("anonymous", "plain", "tls", "external", "websocket")
NO_WEBSOCKET = ("proton",)
"""python-qpid-proton has no WebSocket transport."""

DOORS = [
    (client, transport)
    for client in CLIENTS
    for transport in TRANSPORTS
    if not (transport == "websocket" and client in NO_WEBSOCKET)
]


@pytest.mark.parametrize(("client", "transport"), DOORS, ids=["-".join(door) for door in DOORS])
def test_a_client_sends_and_receives(
    client: str, transport: str, peer: GetPeer, broker: Settings
) -> None:
    connection, address = getattr(broker, transport)(), fresh_address()
    messages = [value_message(string(transport)), data_message(0), data_message(1_000_000)]
    incoming = peer(client, "receiver").start(
        "receive", connection=connection, address=address, count=len(messages)
    )
    incoming.wait("attached")
    outgoing = peer(client, "sender").run(
        "send", connection=connection, address=address, messages=messages
    )
    incoming.finish()
    arrived = zip(messages, incoming.messages, strict=True)
    assert [differences(*each) for each in arrived] == [[], [], []]
    assert outgoing.outcomes == [{"state": "accepted"}] * len(messages)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("transport", ["plain", "tls"])
def test_a_wrong_password_is_refused(
    client: str, transport: str, peer: GetPeer, broker: Settings
) -> None:
    connection = {**getattr(broker, transport)(), "password": "three broken teeth"}
    with pytest.raises(PeerFailedError) as refused:
        peer(client, "sender").run("connect", connection=connection)
    assert refused.value.kind == "authentication"


@pytest.mark.parametrize("client", CLIENTS)
def test_an_unknown_user_is_refused_alike(client: str, peer: GetPeer, broker: Settings) -> None:
    connection = {**broker.plain(), "user": "nobody"}
    with pytest.raises(PeerFailedError) as refused:
        peer(client, "sender").run("connect", connection=connection)
    assert refused.value.kind == "authentication"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_virtual_host_that_is_not_served_is_refused(
    client: str, peer: GetPeer, broker: Settings
) -> None:
    connection = {**broker.anonymous(), "hostname": "vhost:nowhere"}
    with pytest.raises(PeerFailedError) as refused:
        peer(client, "sender").run("connect", connection=connection)
    assert refused.value.condition == "amqp:not-found"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_broker_says_what_it_is(client: str, peer: GetPeer, broker: Settings) -> None:
    opened = peer(client, "sender").run("connect", connection=broker.anonymous()).result
    assert opened["container_id"]
    assert {"product", "version", "platform"} <= opened["properties"].keys()
    assert "ANONYMOUS-RELAY" in opened["offered_capabilities"]
