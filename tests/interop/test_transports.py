"""Every client gets in by every door, and nobody gets in without the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from proton import SSL

from .clients import CLIENTS, fresh_address
from .comparison import differences
from .notation import Json, data_message, string, value_message
from .peer import PeerFailedError

if TYPE_CHECKING:
    from .broker import Settings
    from .conftest import GetPeer

TRANSPORTS = ("anonymous", "plain", "unix", "tls", "external", "websocket", "secure_websocket")
INSTEAD = {
    ("proton", "unix"): "plain",
    ("proton", "websocket"): "plain",
    ("proton", "secure_websocket"): "tls",
}
"""python-qpid-proton has neither Unix-domain sockets nor WebSocket: there it comes without."""

DOORS = [
    (sender, receiver, transport)
    for turn, transport in enumerate(TRANSPORTS)
    for sender, receiver in zip(CLIENTS, (*CLIENTS[turn % 3 :], *CLIENTS[: turn % 3]), strict=True)
    if (sender, transport) not in INSTEAD or (receiver, transport) not in INSTEAD
]
"""Each client sends and receives by each; `test_pairs` has each send to each."""


def door(client: str, transport: str, broker: Settings) -> Json:
    """Return the connection of a client over a transport, or over the nearest that it has.

    Skips what python-qpid-proton cannot do where it was built without OpenSSL's headers.
    """
    transport = INSTEAD.get((client, transport), transport)
    if client == "proton" and transport in ("tls", "external") and not SSL.present():
        pytest.skip(
            "python-qpid-proton was built without TLS: install OpenSSL's headers and pkg-config "
            "(on Debian: apt-get install libssl-dev pkg-config), and build it again "
            "(pip install --force-reinstall --no-cache-dir python-qpid-proton)"
        )
    return getattr(broker, transport)()


@pytest.mark.parametrize(
    ("sender", "receiver", "transport"), DOORS, ids=["-".join(door) for door in DOORS]
)
def test_clients_exchange_messages(
    sender: str, receiver: str, transport: str, peer: GetPeer, broker: Settings
) -> None:
    address = fresh_address()
    messages = [value_message(string(transport)), data_message(0), data_message(1_000_000)]
    incoming = peer(receiver, "receiver").start(
        "receive",
        connection=door(receiver, transport, broker),
        address=address,
        count=len(messages),
    )
    incoming.wait("attached")
    outgoing = peer(sender, "sender").run(
        "send", connection=door(sender, transport, broker), address=address, messages=messages
    )
    incoming.finish()
    arrived = zip(messages, incoming.messages, strict=True)
    assert [differences(*each) for each in arrived] == [[], [], []]
    assert outgoing.outcomes == [{"state": "accepted"}] * len(messages)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("transport", ["plain", "unix", "tls"])
def test_a_wrong_password_is_refused(
    client: str, transport: str, peer: GetPeer, broker: Settings
) -> None:
    connection = {**door(client, transport, broker), "password": "three broken teeth"}
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
