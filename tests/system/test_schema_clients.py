"""Schemas at the clients that follow them, and at the command line."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork import sync
from cogwork.cli.main import run
from cogwork.schema import Conflict, Incompatible, InvalidBody, InvalidSchema
from cogwork.testing import container

from .schemas import ORDER
from .stories import eventually, reconnected, story

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.client import Client


# -- the client


@story
async def test_the_client_encodes_decodes_and_checks() -> None:
    async with container() as url, cogwork.connect(url) as client:
        schemas = client.schemas
        assert await schemas.find("topic/orders.eu") is None
        assert await schemas.register("topic/orders.#", ORDER) == 1
        assert await schemas.register("/topic/orders.#", json.dumps(ORDER)) == 2
        assert await schemas.register("topic/orders.#", json.dumps(ORDER)) == 2
        found = await schemas.find("topic/orders.eu")
        assert found is not None
        assert (found.address, found.version) == ("topic/orders.#", 2)
        assert [each.version for each in await schemas.versions("topic/orders.#")] == [1, 2]
        assert [each.address for each in await schemas.all()] == ["topic/orders.#"]
        async with client.subscribe("topic/#") as messages:
            message = await schemas.encode("topic/orders.eu", {"id": 7}, subject="new")
            await client.publish("topic/orders.eu", message)
            await client.publish("topic/orders.eu", b'{"id": 0}')
            await client.publish("topic/else", {"id": 0})
            one, two, three = [await anext(messages) for _ in range(3)]
            async with client.publisher("topic/orders.eu") as out:
                await out.send(await schemas.encode("topic/orders.eu", {"id": 8}))
            assert await schemas.decode(await anext(messages)) == {"id": 8}
        assert await schemas.decode(one) == {"id": 7}
        assert one.content_type == "application/json"
        assert one.subject == "new"
        assert one.annotations["x-opt-schema-version"] == 2
        assert one.annotations["x-opt-schema-address"] == "topic/orders.#"
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
    async with container() as url, cogwork.connect(url) as client:
        await client.schemas.register("a", {"type": "integer"})
        message = await client.schemas.encode("a", 7)
        with pytest.raises(Incompatible):
            await client.schemas.register("a", {"type": "string"})
        assert await client.schemas.register("a", {"type": "string"}, must_fit=False) == 2
        assert await client.schemas.decode(message, "a") == 7
        assert await client.schemas.check(message, "a") == "$: 7 is not of type 'string'"
        message.annotations["x-opt-schema-version"] = 99
        with pytest.raises(InvalidBody, match=r"version 99 of the schema of a,.* newest one is 2"):
            await client.schemas.decode(cogwork.Message.decode(message.encode()), "a")


@story
async def test_a_message_is_not_read_by_a_schema_that_came_after_its_own_was_taken_away() -> None:
    async with container() as url, cogwork.connect(url) as client:
        await client.schemas.register("a", {"type": "integer"})
        message = await client.schemas.encode("a", 7)
        await client.schemas.unregister("a")
        assert await client.schemas.decode(message, "a") == b"7"
        assert await client.schemas.register("a", {"type": "number"}) == 2
        with pytest.raises(InvalidBody, match=r"version 1 of the schema of a,.* newest one is 2"):
            await client.schemas.decode(message, "a")
        assert await client.schemas.decode(await client.schemas.encode("a", 0.5), "a") == 0.5


@story
async def test_a_message_by_a_pattern_s_version_is_read_by_that_whatever_else_comes() -> None:
    async with container() as url, cogwork.connect(url) as client:
        schemas = client.schemas
        for kind in ("integer", "number"):
            await schemas.register("topic/orders.#", {"type": kind})
        message = await schemas.encode("topic/orders.eu", 7)
        former = cogwork.Message(b"7", to=message.to, annotations={"x-opt-schema-version": 2})
        await schemas.register("topic/orders.eu", {"type": ["string", "integer"]})
        assert await schemas.decode(message) == 7
        assert await schemas.decode(former) == 7
        own = await schemas.encode("topic/orders.eu", "x", annotations={"x-opt-schema-address": ""})
        assert await schemas.decode(own) == "x"
        await schemas.unregister("topic/orders.eu")
        assert await schemas.decode(message) == 7
        with pytest.raises(
            InvalidBody, match=r"version 1 of the schema of topic/orders\.eu, .* any"
        ):
            await schemas.decode(own)


@story
async def test_a_message_waits_for_the_version_of_the_pattern_that_it_names() -> None:
    async with container() as url, cogwork.connect(url) as client:
        for kind in ("integer", "number"):
            await client.schemas.register("a.b", {"type": kind})
        made_by = {"x-opt-schema-version": 1, "x-opt-schema-address": "a.*"}
        message = cogwork.Message(b"null", to="a.b", annotations=made_by)
        reading = asyncio.create_task(client.schemas.decode(message))
        await asyncio.sleep(0.05)
        await client.schemas.register("a.*", {"type": "null"})
        assert await reading is None


@story
async def test_a_message_by_a_version_that_nobody_has_heard_of_waits_for_it() -> None:
    async with container() as url, cogwork.connect(url) as client:
        await client.schemas.register("a", {"type": "integer"})
        message = cogwork.Message(b'"x"', annotations={"x-opt-schema-version": 2})
        reading = asyncio.create_task(client.schemas.decode(message, "a"))
        await asyncio.sleep(0.05)
        await client.schemas.register("a", {"type": "string"}, must_fit=False)
        assert await reading == "x"
        unheard = cogwork.Message(b'"x"', annotations={"x-opt-schema-version": 3})
        since_s = asyncio.get_running_loop().time()
        for _ in range(5):
            with pytest.raises(InvalidBody, match="version 3"):
                await client.schemas.decode(unheard, "a")
        assert asyncio.get_running_loop().time() - since_s < 3.0


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
        for client in meshes:
            await client.schemas.registry()
        found = await asyncio.gather(
            *(
                client.schemas.register("a", {"maximum": number}, must_fit=False)
                for number, client in enumerate(meshes)
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
            await reconnected(two)
            await one.schemas.register("b", ORDER)
            await eventually(lambda: registry.find("b") is not None, "it has heard of it")


async def _connection(one: Client, two: Client) -> str:
    reply = await one.manage("QUERY", {"type": "connection"})
    body: Any = reply.body
    names = body["attributeNames"]
    rows = [dict(zip(names, row, strict=True)) for row in body["results"]]
    name = two._options.name
    return next(str(row["name"]) for row in rows if row["container"] == name)


def test_the_client_without_asyncio() -> None:
    with container() as url, sync.connect(url) as client:
        assert client.schemas.register("queue/orders", ORDER) == 1
        client.publish("queue/orders", client.schemas.encode("queue/orders", {"id": 7}))
        with client.consume("queue/orders") as items:
            (item,) = items.drain()
            assert client.schemas.decode(item) == {"id": 7}
            assert client.schemas.check(item) is None
        assert [each.version for each in client.schemas.versions("queue/orders")] == [1]
        assert client.schemas.find("elsewhere") is None
        assert len(client.schemas.all()) == 1
        client.schemas.unregister("queue/orders")
        assert client.schemas.all() == []


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
        capsys.readouterr()
        assert call("unregister", url, "topic/orders.#", "--json") == 0
        gone = {"address": "topic/orders.#", "unregistered": True}
        assert json.loads(capsys.readouterr().out) == gone
        assert call("unregister", url, "topic/orders.#") == 6
        assert capsys.readouterr().err == "cogwork: topic/orders.# has no schema\n"
        assert call("register", url, "topic/orders.#", str(order), "--dry-run") == 0
        assert capsys.readouterr().out == "topic/orders.# would have version 4\n"
        assert call("register", url, "a", str(order), "--message", "x.Y") == 2
        assert "--message names a message of Protocol Buffers" in capsys.readouterr().err
        assert call("register", url, "a", str(good), "--kind", "json", "--message", "x.Y") == 0
