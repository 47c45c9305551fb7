"""Where schemas are kept, and who hears of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork import sync
from cogwork.config.reading import parse

from .linked import linked as in_one_process
from .meshes import linked, meshed
from .schemas import ENFORCED, MISMATCH, ORDER, Peer, json_message, known
from .served import READY_TIMEOUT_S, within
from .stories import story

if TYPE_CHECKING:
    from pathlib import Path


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
    voters = '[cluster]\nprimaries = ["a"]\n'

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
async def test_who_may_send_everywhere_registers_nothing() -> None:
    rights = """
    [anonymous]
    permissions = [
        { address = "#", rights = ["send", "receive"] },
        { address = "stream/$schemas", rights = ["receive", "send"] },
    ]
    """
    async with in_one_process() as mesh:
        await mesh.start("a", configuration=rights)
        client = await mesh.client("a")
        await client.publish("queue/x", 1)
        with pytest.raises(cogwork.PermissionDenied, match=r"grant manage on 'stream/\$schemas'"):
            await client.schemas.register("queue/x", False)
        registrar = rights.replace('"receive", "send"', '"receive", "manage"')
        mesh.containers["a"].reconfigure(parse(registrar, "test"))
        await client.schemas.register("queue/y", {})
        await client.publish("queue/x", 2)


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
