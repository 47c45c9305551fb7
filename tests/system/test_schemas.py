"""Schemas as their users see them: registered, followed, and enforced at a container's edge."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from proton import Delivery, Message, symbol
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

import cogwork
from cogwork import sync
from cogwork.cli.main import run
from cogwork.container.config import parse
from cogwork.schema import Conflict, Incompatible, InvalidBody, InvalidSchema
from cogwork.testing import container

from .linked import linked as in_one_process
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, Served, served, within
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.client import Mesh

ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer", "minimum": 1}},
}

CONFIGURATION = """
[[schema]]
address = "*/orders.#"

[[schema]]
address = "*/orders.free"
policy = "ignore"

[[schema]]
address = "*/known.#"
policy = "enforce-registered"

[[stream]]
address = "stream/orders.kept"
"""


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A container in a process of its own, with one schema for all orders."""
    with served(tmp_path_factory.mktemp("edge"), CONFIGURATION) as running:
        with sync.connect(running.url) as mesh:
            mesh.schemas.register("*/orders.#", ORDER)
        yield running


class Peer:
    """A foreign client."""

    def __init__(self, edge: Served) -> None:
        self.connection = BlockingConnection(edge.url, timeout=10)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.connection.close()

    def send(self, address: str | None, message: Message) -> tuple[str, str, dict[str, Any]]:
        """Sends a message; returns the outcome, and of a rejection the error's parts."""
        sender = self.connection.create_sender(address)
        delivery = sender.link.send(message)
        self.connection.wait(lambda: delivery.settled, msg="the outcome")
        found = delivery.remote
        state = {
            Delivery.ACCEPTED: "accepted",
            Delivery.REJECTED: "rejected",
            Delivery.RELEASED: "released",
        }[delivery.remote_state]
        condition = found.condition
        sender.close()
        if condition is None:
            return state, "", {}
        info = {str(key): value for key, value in (condition.info or {}).items()}
        return f"{state} {condition.name}", condition.description or "", info


def json_message(value: object, address: str | None = None) -> Message:
    body, kind = json.dumps(value).encode(), symbol("application/json")
    return Message(body=body, inferred=True, content_type=kind, address=address)


MISMATCH = "rejected cogwork:schema-mismatch"


def known(edge: Served, count: int) -> None:
    """Waits until the container knows of so many schemas."""

    def facts() -> dict[str, Any]:
        found: dict[str, Any] = edge.status()["container"]["schemas"][""]
        return found

    within(10, lambda: facts()["is_current"] and facts()["registered"] >= count, "it knows")


@pytest.mark.parametrize(
    "address", ["topic/orders.eu", "queue/orders.eu", "stream/orders.kept", "plain/orders.eu"]
)
def test_a_foreign_publisher_is_told_what_is_wrong_and_where(edge: Served, address: str) -> None:
    known(edge, 1)
    with Peer(edge) as peer, sync.connect(edge.url) as mesh, ExitStack() as stack:
        if address.startswith("plain"):
            stack.enter_context(mesh.subscribe(address))
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


def test_only_what_fits_gets_through_in_its_order(edge: Served) -> None:
    known(edge, 1)
    large = {"id": 5, "items": list(range(20_000))}
    values = [{"id": 1}, {"id": 0}, {"id": 2}, large, {"id": "x"}, {"id": 3}, {}, {"id": 4}]
    with sync.connect(edge.url) as mesh:
        with mesh.publisher("queue/orders.kept") as publisher:
            outcomes = publisher.send_batch(json.dumps(value).encode() for value in values)
        states = [outcome.state for outcome in outcomes]
        rejected = [at for at, state in enumerate(states) if state == "rejected"]
        assert rejected == [1, 4, 6]
        with mesh.consume("queue/orders.kept") as items:
            kept = [json.loads(bytes(item.body))["id"] for item in items.drain()]
        assert kept == [1, 2, 5, 3, 4]


def test_what_is_sent_settled_is_dropped_and_counted(edge: Served) -> None:
    known(edge, 1)
    before = edge.status()["container"]["schemas"][""]
    with sync.connect(edge.url) as mesh:
        with mesh.publisher("queue/orders.counted") as publisher:
            bodies = [b'{"id": 1}', b'{"id": 0}', b"[]", b'{"id": 2}'] * 10
            publisher.send_batch(bodies, settled=True)
            publisher.send(b'{"id": 3}')
        with mesh.consume("queue/orders.counted") as items:
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
    with sync.connect(edge.url) as mesh, mesh.consume("queue/orders.gone", credit=500) as items:
        within(10, lambda: edge.address("queue/orders.gone")["depth"] == 100, "all has been kept")
        assert len(items.drain()) == 100


def test_an_address_without_a_schema(tmp_path: Path) -> None:
    with served(tmp_path, CONFIGURATION) as edge, Peer(edge) as peer:
        state, description, info = peer.send("topic/orders.eu", json_message({"id": 0}))
        assert state == "rejected cogwork:schema-missing"
        assert description == "no schema is registered for topic/orders.eu"
        assert info == {}
        assert peer.send("topic/known.a", json_message({"id": 0}))[0] == "accepted"
        with sync.connect(edge.url) as mesh:
            mesh.schemas.register("topic/orders.#", ORDER)
            mesh.schemas.register("topic/known.a", ORDER)
        known(edge, 2)
        # What comes later is held to what is known by then, on links that stand as well.
        assert peer.send("topic/orders.eu", json_message({"id": 0}))[0] == MISMATCH
        assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] == "accepted"
        assert peer.send("topic/known.a", json_message({"id": 0}))[0] == MISMATCH
        assert peer.send("topic/known.b", json_message({"id": 0}))[0] == "accepted"
        with sync.connect(edge.url) as mesh:
            mesh.schemas.unregister("topic/orders.#")
            mesh.schemas.register("topic/known.b", False)
        known(edge, 2)
        assert peer.send("topic/known.b", json_message({"id": 1}))[0] == MISMATCH
        assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] != "accepted"


def test_a_link_that_stands_hears_of_new_versions(edge: Served) -> None:
    known(edge, 1)
    with sync.connect(edge.url) as mesh:
        mesh.schemas.register("topic/orders.versioned", {"type": "object"})
        with mesh.publisher("topic/orders.versioned") as publisher:
            within(10, lambda: _is_accepted(publisher, b'{"id": "x"}'), "the first version holds")
            mesh.schemas.register("topic/orders.versioned", {"maximum": 5}, must_fit=False)
            within(10, lambda: _is_accepted(publisher, b"5"), "the second version holds")
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
    with sync.connect(edge.url) as mesh:
        mesh.schemas.register(
            "topic/orders.wire", descriptors(), kind="protobuf", message="shop.Order"
        )
        with Peer(edge) as peer:
            kind = symbol("application/protobuf")
            message = Message(body=b"\x08\x07", inferred=True, content_type=kind)
            within(10, lambda: peer.send("topic/orders.wire", message)[0] == "accepted", "it holds")
            message = Message(body=b"\x08", inferred=True, content_type=kind)
            state, description, info = peer.send("topic/orders.wire", message)
            assert state == MISMATCH
            assert description.startswith("no shop.Order")
            assert info["schema"] == "topic/orders.wire"
            state, description, _ = peer.send("topic/orders.wire", json_message({"id": 7}))
            assert "content-type is to be application/protobuf" in description
        made = mesh.schemas.encode("topic/orders.wire", {"id": 7})
        assert made.body == b"\x08\x07"
        found: Any = mesh.schemas.decode(made, "topic/orders.wire")
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
    with sync.connect(edge.url) as mesh, sync.connect(edge.url) as other:
        mesh.schemas.register("topic/orders.evil", EVIL)
        with mesh.publisher("topic/orders.evil") as publisher:
            within(10, lambda: _is_accepted(publisher, b"[]"), "it holds")
        done = []

        async def flood() -> None:
            attacker = cogwork.connect(edge.url)
            async with attacker, attacker.publisher("topic/orders.evil") as out:
                outcomes = await out.send_batch(hostile * 2)
                done.extend(outcome.state for outcome in outcomes)

        async def answer() -> int:
            count, mesh = 0, cogwork.connect(edge.url)
            async with mesh, mesh.serve("plain/echo", lambda request: request.body):
                task = asyncio.create_task(flood())
                while not task.done():
                    await mesh.request("plain/echo", count, timeout_s=5)
                    count += 1
                await task
            return count

        assert asyncio.run(answer()) > 5
        assert set(done) == {"rejected"}
        assert len(done) == 12
        other.publish("topic/orders.eu", b'{"id": 1}')


# -- the client


@story
async def test_the_client_encodes_decodes_and_checks() -> None:
    async with container() as url, cogwork.connect(url) as mesh:
        schemas = mesh.schemas
        assert await schemas.find("topic/orders.eu") is None
        assert await schemas.register("topic/orders.#", ORDER) == 1
        assert await schemas.register("/topic/orders.#", json.dumps(ORDER)) == 2
        assert await schemas.register("topic/orders.#", json.dumps(ORDER)) == 2
        found = await schemas.find("topic/orders.eu")
        assert found is not None
        assert (found.address, found.version) == ("topic/orders.#", 2)
        assert [each.version for each in await schemas.versions("topic/orders.#")] == [1, 2]
        assert [each.address for each in await schemas.all()] == ["topic/orders.#"]
        async with mesh.subscribe("topic/#") as messages:
            message = await schemas.encode("topic/orders.eu", {"id": 7}, subject="new")
            await mesh.publish("topic/orders.eu", message)
            await mesh.publish("topic/orders.eu", b'{"id": 0}')
            await mesh.publish("topic/else", {"id": 0})
            one, two, three = [await anext(messages) for _ in range(3)]
        assert await schemas.decode(one) == {"id": 7}
        assert one.content_type == "application/json"
        assert one.subject == "new"
        assert one.annotations["x-opt-schema-version"] == 2
        assert await schemas.check(one) is None
        reason = "$.id: 0 is less than the minimum of 1"
        assert await schemas.check(two) == reason
        with pytest.raises(InvalidBody) as caught:
            await schemas.decode(two)
        assert (str(caught.value), caught.value.path) == (reason, "$.id")
        assert await schemas.decode(three) == {"id": 0}
        assert await schemas.check(three) is None
        with pytest.raises(InvalidBody):
            await schemas.encode("topic/orders.eu", {"id": 0})
        with pytest.raises(InvalidBody, match="topic/else has no schema"):
            await schemas.encode("topic/else", {})
        bare = cogwork.Message(b'{"id": 1}')
        with pytest.raises(InvalidBody, match="say the address"):
            await schemas.decode(bare)
        assert await schemas.decode(bare, "topic/orders.eu") == {"id": 1}


@story
async def test_a_message_is_read_by_the_version_that_it_was_made_by() -> None:
    async with container() as url, cogwork.connect(url) as mesh:
        await mesh.schemas.register("a", {"type": "integer"})
        message = await mesh.schemas.encode("a", 7)
        with pytest.raises(Incompatible):
            await mesh.schemas.register("a", {"type": "string"})
        assert await mesh.schemas.register("a", {"type": "string"}, must_fit=False) == 2
        assert await mesh.schemas.decode(message, "a") == 7
        assert await mesh.schemas.check(message, "a") == "$: 7 is not of type 'string'"
        message.annotations["x-opt-schema-version"] = 99
        with pytest.raises(InvalidBody):
            await mesh.schemas.decode(cogwork.Message.decode(message.encode()), "a")


@story
async def test_everybody_hears_of_a_change() -> None:
    async with (
        container() as url,
        cogwork.connect(url) as one,
        cogwork.connect(url) as two,
    ):
        assert await two.schemas.all() == []
        await one.schemas.register("a", ORDER)
        registry = await two.schemas.registry()
        await eventually(lambda: registry.find("a") is not None, "the other one knows it")
        await two.schemas.unregister("a")
        registry = await one.schemas.registry()
        await eventually(lambda: registry.find("a") is None, "the first one knows it")
        with pytest.raises(InvalidSchema, match="has no schema"):
            await one.schemas.unregister("a")
        with pytest.raises(InvalidSchema, match="no JSON Schema"):
            await one.schemas.register("a", {"type": "integr"})


@story
async def test_of_many_that_register_at_once_each_version_is_one_of_them() -> None:
    async with container() as url, AsyncExitStack() as stack:
        meshes = [await stack.enter_async_context(cogwork.connect(url)) for _ in range(5)]
        for mesh in meshes:
            await mesh.schemas.registry()
        found = await asyncio.gather(
            *(
                mesh.schemas.register("a", {"maximum": number}, must_fit=False)
                for number, mesh in enumerate(meshes)
            ),
            return_exceptions=True,
        )
        versions = [each for each in found if isinstance(each, int)]
        assert all(isinstance(each, int | Conflict) for each in found), found
        assert sorted(versions) == list(range(1, len(versions) + 1))
        there = await meshes[0].schemas.versions("a")
        assert len(there) == len(versions)
        for number, version in enumerate(found):
            if isinstance(version, int):
                assert there[version - 1].definition == b'{"maximum":%d}' % number


@story
async def test_they_are_followed_across_lost_connections() -> None:
    async with container() as url:
        retry = cogwork.Retry(first_s=0.01)
        async with cogwork.connect(url) as one, cogwork.connect(url, retry=retry) as two:
            await one.schemas.register("a", ORDER)
            registry = await two.schemas.registry()
            await one.manage("DELETE", {"type": "connection", "name": await _connection(one, two)})
            await eventually(lambda: two.connections == 2, "it is connected again")
            await one.schemas.register("b", ORDER)
            await eventually(lambda: registry.find("b") is not None, "it has heard of it")


async def _connection(one: Mesh, two: Mesh) -> str:
    reply = await one.manage("QUERY", {"type": "connection"})
    body: Any = reply.body
    names = body["attributeNames"]
    rows = [dict(zip(names, row, strict=True)) for row in body["results"]]
    name = two._options.name
    return next(str(row["name"]) for row in rows if row["container"] == name)


def test_the_client_without_asyncio() -> None:
    with container() as url, sync.connect(url) as mesh:
        assert mesh.schemas.register("queue/orders", ORDER) == 1
        mesh.publish("queue/orders", mesh.schemas.encode("queue/orders", {"id": 7}))
        with mesh.consume("queue/orders") as items:
            (item,) = items.drain()
            assert mesh.schemas.decode(item) == {"id": 7}
            assert mesh.schemas.check(item) is None
        assert [each.version for each in mesh.schemas.versions("queue/orders")] == [1]
        assert mesh.schemas.find("elsewhere") is None
        assert len(mesh.schemas.all()) == 1
        mesh.schemas.unregister("queue/orders")
        assert mesh.schemas.all() == []


# -- where they are kept


ENFORCED = """
[[schema]]
address = "topic/orders.#"
"""


def test_they_outlive_a_container_with_a_data_directory(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    with meshed(tmp_path, ["box"], [], head=lambda _: head, configuration=ENFORCED) as members:
        box = members["box"]
        with sync.connect(box.url) as mesh:
            mesh.schemas.register("topic/orders.#", ORDER)
        box.kill()
        box.start()
        within(READY_TIMEOUT_S, box.listens, "the container listens")
        known(box.served, 1)
        with Peer(box.served) as peer:
            assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] == "accepted"
            assert peer.send("topic/orders.eu", json_message({"id": 0}))[0] == MISMATCH


def test_a_cluster_has_them_everywhere(tmp_path: Path) -> None:
    """One container votes; the other holds nothing, and knows all the same."""
    voters = '[cluster]\nvoters = ["a"]\n'

    def head(name: str) -> str:
        return voters if name == "b" else f'data_dir = "{tmp_path / "data"}"\n{voters}'

    with meshed(tmp_path, ["a", "b"], [("b", "a")], head=head, configuration=ENFORCED) as members:
        linked(members.values())
        with sync.connect(members["a"].url) as mesh:
            assert mesh.schemas.register("topic/orders.#", ORDER) == 1
        with sync.connect(members["b"].url) as mesh:
            assert mesh.schemas.register("topic/orders.#", {**ORDER, "title": "An order"}) == 2
        for member in members.values():
            known(member.served, 1)
            with Peer(member.served) as peer:
                assert peer.send("topic/orders.eu", json_message({"id": 1}))[0] == "accepted"
                assert peer.send("topic/orders.eu", json_message({"id": 0}))[0] == MISMATCH


@story
async def test_each_message_is_looked_at_where_its_publisher_is() -> None:
    async with in_one_process("a-b") as mesh:
        await mesh.start("c", ["b"], ENFORCED)
        await mesh.settle()
        free, held = await mesh.client("a"), await mesh.client("c")
        async with held.subscribe("topic/orders.#") as messages:
            await mesh.settle()
            await free.publish("topic/orders.eu", b"none by any schema")
            assert (await anext(messages)).body == b"none by any schema"
        with pytest.raises(cogwork.Rejected, match="no schema is registered"):
            await held.publish("topic/orders.eu", b"none by any schema")


@story
async def test_rules_are_taken_over_while_the_container_runs() -> None:
    async with in_one_process() as mesh:
        await mesh.start("a")
        client = await mesh.client("a")
        await client.schemas.register("topic/orders.#", ORDER)
        await client.publish("topic/orders.eu", b'{"id": 0}')
        head = 'id = "a"\n[[listen]]\nport = 0\n'
        mesh.containers["a"].reconfigure(parse(head + ENFORCED, "test"))
        late = await mesh.client("a", is_new=True)
        with pytest.raises(cogwork.Rejected, match="less than the minimum"):
            await late.publish("topic/orders.eu", b'{"id": 0}')
        mesh.containers["a"].reconfigure(parse(head, "test"))
        await late.publish("topic/orders.eu", b'{"id": 0}')


@story
async def test_a_virtual_host_has_schemas_of_its_own() -> None:
    rules = '[[vhost]]\nname = "blue"\n[[vhost.schema]]\naddress = "queue/#"\n'
    async with in_one_process() as mesh:
        await mesh.start("a", configuration=rules)
        plain, blue = await mesh.client("a"), await mesh.client("a", "blue")
        await plain.schemas.register("queue/#", False)
        await plain.publish("queue/x", b"anything")
        with pytest.raises(cogwork.Rejected, match="no schema is registered"):
            await blue.publish("queue/x", b"{}")
        await blue.schemas.register("queue/#", ORDER)
        await blue.publish("queue/x", b'{"id": 1}')
        assert await plain.schemas.find("queue/x") != await blue.schemas.find("queue/x")


@story
async def test_who_may_not_receive_from_the_stream_is_told() -> None:
    rules = """
    [anonymous]
    permissions = [{ address = "queue/#", rights = ["send", "receive"] }]
    """
    async with in_one_process() as mesh:
        await mesh.start("a", configuration=rules)
        client = await mesh.client("a")
        for _ in range(2):
            with pytest.raises(cogwork.PermissionDenied):
                await client.schemas.encode("queue/x", {})
        with pytest.raises(cogwork.PermissionDenied):
            await client.schemas.register("queue/x", {})


# -- the command line


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order, worse, good, bad = (tmp_path / name for name in ("o.json", "w.json", "good", "bad"))
    order.write_text(json.dumps(ORDER))
    worse.write_text('{"type": "array"}')
    good.write_text('{"id": 7}')
    bad.write_text('{"id": 0}')
    with container() as url:

        def call(*words: str) -> int:
            capsys.readouterr()
            return run(("schema", *words))

        assert call("list", url) == 0
        assert call("register", url, "topic/orders.#", str(order), "--dry-run") == 0
        assert capsys.readouterr().out == "topic/orders.# would have version 1\n"
        assert call("show", url, "topic/orders.eu") == 6
        assert capsys.readouterr().err == "cogwork: topic/orders.eu has no schema\n"
        assert call("check", url, "topic/orders.eu", str(good)) == 6
        assert call("register", url, "topic/orders.#", str(order)) == 0
        assert capsys.readouterr().out == "topic/orders.# has version 1\n"
        assert call("register", url, "topic/orders.#", str(order)) == 0
        assert capsys.readouterr().out == "topic/orders.# has this schema as version 1\n"
        assert call("register", url, "topic/orders.#", str(worse)) == 8
        error = capsys.readouterr().err
        assert error.startswith("cogwork: not every message of version 1 is one by it: ")
        assert call("register", url, "topic/orders.#", str(bad)) == 0  # says nothing, so it fits
        assert call("register", url, "topic/orders.#", str(order), "--incompatible", "--json") == 0
        made = json.loads(capsys.readouterr().out)
        assert made == {
            "address": "topic/orders.#",
            "version": 3,
            "is_new": True,
            "dry_run": False,
        }
        assert call("check", url, "topic/orders.eu", str(good)) == 0
        assert capsys.readouterr().out == f"{good}: valid\n"
        assert call("check", url, "topic/orders.eu", str(good), str(bad), "--json") == 8
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [row["is_valid"] for row in rows] == [True, False]
        assert rows[1]["reason"] == "$.id: 0 is less than the minimum of 1"
        assert call("list", url, "--json") == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["address"], row["kind"], row["version"]) == ("topic/orders.#", "json", 3)
        assert call("list", url) == 0
        assert "topic/orders.#" in capsys.readouterr().out
        assert call("show", url, "topic/orders.eu", "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["definition"] == ORDER
        assert shown["versions"] == [1, 2, 3]
        assert call("show", url, "topic/orders.eu", "--version", "2") == 0
        assert json.loads(capsys.readouterr().out) == {"id": 0}
        assert call("show", url, "topic/orders.eu", "--version", "9") == 6
        assert call("unregister", url, "topic/orders.#") == 0
        assert call("unregister", url, "topic/orders.#") == 1
        assert capsys.readouterr().err == "cogwork: topic/orders.# has no schema\n"
        assert call("register", url, "a", str(good), "--kind", "json", "--message", "x.Y") == 0
