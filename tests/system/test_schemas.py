"""Schemas as their users see them: enforced at a container's edge, whoever publishes."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest
from proton import Message, symbol
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

import cogwork
from cogwork import sync
from cogwork.cli.exit_codes import ExitCode

from .schemas import CONFIGURATION, MISMATCH, ORDER, Peer, json_message, known
from .served import Served, ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A container in a process of its own, with one schema for all orders."""
    with served(tmp_path_factory.mktemp("edge"), CONFIGURATION) as running:
        with sync.connect(running.url) as client:
            client.schemas.register("*/orders.#", ORDER)
        yield running


@pytest.mark.parametrize(
    "address", ["topic/orders.eu", "queue/orders.eu", "stream/orders.kept", "plain/orders.eu"]
)
def test_a_foreign_publisher_is_told_what_is_wrong_and_where(edge: Served, address: str) -> None:
    known(edge, 1)
    with Peer(edge) as peer, sync.connect(edge.url) as client, ExitStack() as stack:
        if address.startswith("plain"):
            stack.enter_context(client.subscribe(address))
        assert peer.send(address, json_message({"id": 7}))[0] == "accepted"
        state, description, info = peer.send(address, json_message({"id": 0}))
        assert state == MISMATCH
        assert description == "$.id: 0 is less than the minimum of 1"
        assert info == {"schema": "*/orders.#", "version": 1, "path": "$.id"}
        state, description, _ = peer.send(address, json_message({"name": "x"}))
        assert (state, description) == (MISMATCH, "$: 'id' is a required property")
        assert peer.send(address, Message(body=b"{", inferred=True))[0] == MISMATCH
        assert peer.send(address, Message(body={"id": 7}))[0] == MISMATCH
        assert peer.send(address, Message(body='{"id": 7}'))[0] == "accepted"
        assert peer.send(address, Message(body=b'{"id": 7}'))[0] == "accepted"


def test_so_is_one_that_names_its_addresses_itself(edge: Served) -> None:
    known(edge, 1)
    with Peer(edge) as peer:
        good, bad = {"id": 7}, {"id": "x"}
        assert peer.send(None, json_message(bad, address="topic/free"))[0] == "accepted"
        assert peer.send(None, json_message(bad, address="topic/orders.free"))[0] == "accepted"
        assert peer.send(None, json_message(good, address="topic/orders.a"))[0] == "accepted"
        state, description, _ = peer.send(None, json_message(bad, address="topic/orders.a"))
        assert (state, description) == (MISMATCH, "$.id: 'x' is not of type 'integer'")
        state, description, _ = peer.send(None, json_message(bad, address="queue/orders.b"))
        assert state == MISMATCH


def test_what_messages_are_held_to_is_not_deleted(edge: Served) -> None:
    known(edge, 1)
    refused = ran("stream", "delete", edge.url, "$schemas")
    assert refused.returncode == ExitCode.ERROR
    assert "'stream/$schemas' has the schemas that messages are held to" in refused.stderr
    with Peer(edge) as peer:
        assert peer.send("topic/orders.eu", json_message({"id": 0}))[0] == MISMATCH


def test_only_what_fits_gets_through_in_its_order(edge: Served) -> None:
    known(edge, 1)
    large = {"id": 5, "items": list(range(20_000))}
    values = [{"id": 1}, {"id": 0}, {"id": 2}, large, {"id": "x"}, {"id": 3}, {}, {"id": 4}]
    with sync.connect(edge.url) as client:
        with client.publisher("queue/orders.kept") as publisher:
            outcomes = publisher.send_batch(json.dumps(value).encode() for value in values)
        states = [outcome.state for outcome in outcomes]
        rejected = [at for at, state in enumerate(states) if state == "rejected"]
        assert rejected == [1, 4, 6]
        with client.consume("queue/orders.kept") as items:
            kept = [json.loads(cast("bytes", item.body))["id"] for item in items.drain()]
        assert kept == [1, 2, 5, 3, 4]


def test_what_is_sent_settled_is_dropped_and_counted(edge: Served) -> None:
    known(edge, 1)
    before = edge.status()["container"]["schemas"][""]
    with sync.connect(edge.url) as client:
        with client.publisher("queue/orders.counted") as publisher:
            bodies = [b'{"id": 1}', b'{"id": 0}', b"[]", b'{"id": 2}'] * 10
            publisher.send_batch(bodies, settled=True)
            publisher.send(b'{"id": 3}')
        with client.consume("queue/orders.counted") as items:
            assert len(items.drain()) == 21
    after = edge.status()["container"]["schemas"][""]
    assert after["dropped"] - before["dropped"] == 20
    assert after["rejected"] == before["rejected"]
    assert after["checked"] - before["checked"] == 41
    assert edge.address("queue/orders.counted")["invalid"] == 20
    line = next(each for each in edge.run("status", edge.url).splitlines() if "schemas:" in each)
    assert f"{after['dropped']} dropped" in line


def test_a_sender_that_goes_at_once_has_its_messages_looked_at(edge: Served) -> None:
    known(edge, 1)
    connection = BlockingConnection(edge.url, timeout=10)
    sender = connection.create_sender("queue/orders.gone", options=AtMostOnce())
    for number in range(200):
        sender.link.send(json_message({"id": number % 2}))
    connection.close()
    with sync.connect(edge.url) as client, client.consume("queue/orders.gone", credit=500) as items:
        within(30, lambda: edge.address("queue/orders.gone")["depth"] == 100, "all has been kept")
        assert len(items.drain()) == 100


def test_an_address_without_a_schema(tmp_path: Path) -> None:
    with served(tmp_path, CONFIGURATION) as edge, Peer(edge) as peer:
        state, description, info = peer.send("topic/orders.eu", json_message({"id": 0}))
        assert state == "rejected cogwork:schema-missing"
        assert description == "no schema is registered for topic/orders.eu"
        assert info == {}
        assert peer.send("topic/known.a", json_message({"id": 0}))[0] == "accepted"
        with sync.connect(edge.url) as client:
            client.schemas.register("topic/orders.#", ORDER)
            client.schemas.register("topic/known.a", ORDER)
        known(edge, 2)
        # What comes later is held to what is known by then, on links that stand as well.
        assert peer.send("topic/orders.eu", json_message({"id": 0}))[0] == MISMATCH
        assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] == "accepted"
        assert peer.send("topic/known.a", json_message({"id": 0}))[0] == MISMATCH
        assert peer.send("topic/known.b", json_message({"id": 0}))[0] == "accepted"
        with sync.connect(edge.url) as client:
            client.schemas.unregister("topic/orders.#")
            client.schemas.register("topic/known.b", False)
        message = json_message({"id": 1})
        within(30, lambda: peer.send("topic/known.b", message)[0] == MISMATCH, "it is known")
        assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] != "accepted"


def test_a_link_that_stands_hears_of_new_versions(edge: Served) -> None:
    known(edge, 1)
    with sync.connect(edge.url) as client:
        client.schemas.register("topic/orders.versioned", {"type": "object"})
        with client.publisher("topic/orders.versioned") as publisher:
            within(30, lambda: _is_accepted(publisher, b'{"id": "x"}'), "the first version holds")
            client.schemas.register("topic/orders.versioned", {"maximum": 5}, must_fit=False)
            within(30, lambda: _is_accepted(publisher, b"5"), "the second version holds")
            assert not _is_accepted(publisher, b"6")


def _is_accepted(publisher: sync.Publisher, body: bytes) -> bool:
    (outcome,) = publisher.send_batch([body])
    return outcome.is_accepted


def descriptors() -> bytes:
    protobuf = pytest.importorskip("google.protobuf.descriptor_pb2", reason="the extra [schema]")
    files = protobuf.FileDescriptorSet()
    file = files.file.add(name="order.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    kinds = protobuf.FieldDescriptorProto
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    octets: bytes = files.SerializeToString()
    return octets


def test_protocol_buffers_are_held_to_their_descriptors(edge: Served) -> None:
    with sync.connect(edge.url) as client:
        client.schemas.register(
            "topic/orders.wire", descriptors(), kind="protobuf", message="shop.Order"
        )
        with Peer(edge) as peer:
            kind = symbol("application/protobuf")
            message = Message(body=b"\x08\x07", inferred=True, content_type=kind)
            within(30, lambda: peer.send("topic/orders.wire", message)[0] == "accepted", "it holds")
            message = Message(body=b"\x08", inferred=True, content_type=kind)
            state, description, info = peer.send("topic/orders.wire", message)
            assert state == MISMATCH
            assert description.startswith("no shop.Order")
            assert info["schema"] == "topic/orders.wire"
            state, description, _ = peer.send("topic/orders.wire", json_message({"id": 7}))
            assert "content-type is to be application/protobuf" in description
        made = client.schemas.encode("topic/orders.wire", {"id": 7})
        assert made.body == b"\x08\x07"
        found: Any = client.schemas.decode(made, "topic/orders.wire")
        assert found.id == 7


EVIL: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": [*[{"$ref": "#/$defs/a"}] * 9, True]},
    "$defs": {"a": {"allOf": [{"pattern": "^(a+)+$"}, False]}},
}
"""Each item is tried in vain nine times, and is fine at last."""


def test_nobody_stops_the_container_with_a_schema_or_a_message(edge: Served) -> None:
    """Messages elsewhere go on while many that take long are looked at."""
    known(edge, 1)
    hostile = [
        json.dumps(["a" * 30] * 6_000).encode(),
        b"[" * 200_000,
        b"1" * 200_000,
        json.dumps([1] * 80_000).encode(),
        b"\xff" * 200_000,
        json.dumps({"a" * 100_000: 1}).encode(),
    ]
    with sync.connect(edge.url) as client, sync.connect(edge.url) as other:
        client.schemas.register("topic/orders.evil", EVIL)
        with client.publisher("topic/orders.evil") as publisher:
            within(30, lambda: _is_accepted(publisher, b"[]"), "it holds")
        done: list[cogwork.OutcomeState] = []

        async def flood() -> None:
            attacker = cogwork.connect(edge.url)
            async with attacker, attacker.publisher("topic/orders.evil") as out:
                outcomes = await out.send_batch(hostile * 2)
                done.extend(outcome.state for outcome in outcomes)

        async def answer() -> int:
            count, client = 0, cogwork.connect(edge.url)
            async with client, client.serve("plain/echo", lambda request: request.body):
                task = asyncio.create_task(flood())
                while not task.done():
                    await client.request("plain/echo", count, timeout_s=5)
                    count += 1
                await task
            return count

        assert asyncio.run(answer()) > 5
        assert set(done) == {"rejected"}
        assert len(done) == 12
        other.publish("topic/orders.eu", b'{"id": 1}')
