"""What was taken away does not stay: users, passwords, rights and links, while others go on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import trustme

import cogwork
from cogwork.amqp.performatives import Role
from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import parse
from cogwork.io.tls import client_context

from .linked import Linked, linked
from .served import OPEN, ran, served
from .stories import QUICKLY, eventually, story

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.container.container import Container

SECRET, OTHER = hash_password("word"), hash_password("other")

SEND = '{ address = "queue/a", rights = ["send", "receive"] }'
TOPICS = '{ address = "topic/a.#", rights = ["receive"] }'


def user(name: str, *permissions: str, secret: str = SECRET, more: str = "") -> str:
    granted = ", ".join(permissions)
    return (
        f'[[user]]\nname = "{name}"\npassword_hash = "{secret}"\n{more}\n'
        f"permissions = [{granted}]\n"
    )


BOB = user("bob", SEND)


def reload(container: Container, *users: str) -> None:
    head = 'id = "a"\n[[listen]]\nport = 0\n'
    container.reconfigure(parse(f"{head}{''.join(users)}", "test"))


async def started(mesh: Linked, *users: str) -> Container:
    await mesh.start("a", configuration="".join(users))
    return mesh.containers["a"]


async def client(
    mesh: Linked, container: Container, name: str, password: str = "word"
) -> cogwork.Client:
    url = container.endpoints[0].replace("://", f"://{name}:{password}@")
    return await mesh.enter(cogwork.connect(url, retry=QUICKLY))


def connected(container: Container) -> list[str]:
    return sorted(str(each.identity) for each in container.peers.connections if each.is_open)


@story
async def test_a_user_that_is_gone_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND), BOB)
        await client(mesh, container, "ann")
        bob = await client(mesh, container, "bob")
        assert connected(container) == ["ann", "bob"]
        reload(container, BOB)
        await eventually(lambda: connected(container) == ["bob"], "ann is cut off")
        assert "because user 'ann' is not configured any more" in caplog.text
        await bob.publish("queue/a", 1)
        assert bob.connections == 1


@story
async def test_who_knows_the_old_password_is_cut_off() -> None:
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND), BOB)
        await client(mesh, container, "ann")
        reload(container, user("ann", SEND, secret=OTHER), BOB)
        await eventually(lambda: connected(container) == [], "ann is cut off")
        with pytest.raises(cogwork.CogworkError):
            await client(mesh, container, "ann")
        fresh = await client(mesh, container, "ann", "other")
        await fresh.publish("queue/a", 1)


@story
async def test_a_login_under_way_does_not_outlive_the_password() -> None:
    """It is checked in a thread, against what held when it began."""
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND))
        url = container.endpoints[0].replace("://", "://ann:word@")
        entering = asyncio.create_task(mesh.enter(cogwork.connect(url, retry=QUICKLY)))
        peers = container.peers
        await eventually(
            lambda: any(map(peers.is_logging_in, peers.connections)), "the login is being checked"
        )
        reload(container, user("ann", SEND, secret=OTHER))
        with pytest.raises(cogwork.CogworkError):
            await entering
        assert connected(container) == []


@story
async def test_links_whose_permission_is_gone_are_detached() -> None:
    other = '{ address = "queue/b", rights = ["send"] }'
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND, other), BOB)
        ann, bob = await client(mesh, container, "ann"), await client(mesh, container, "bob")
        async with (
            ann.publisher("queue/a") as taken,
            ann.publisher("queue/b") as kept,
            bob.publisher("queue/a") as bobs,
        ):
            for each in (taken, kept, bobs):
                await each.send(1)
            reload(container, user("ann", other), BOB)
            await kept.send(2)
            await bobs.send(2)
            with pytest.raises(cogwork.LinkDetached, match="no permission to send"):
                await taken.send(2)
        assert (ann.connections, bob.connections) == (1, 1)
        depth = container.vhosts[""].nodes["queue/a"].status()["depth"]
        assert depth == 3, "what ann sent first, and both of bob's"


@story
async def test_a_consumer_whose_permission_is_gone_gets_nothing_more() -> None:
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND), BOB)
        ann, bob = await client(mesh, container, "ann"), await client(mesh, container, "bob")
        async with ann.consume("queue/a") as items:
            await bob.publish("queue/a", 1)
            item = await anext(items)
            await item.accept()
            reload(container, user("ann"), BOB)
            await bob.publish("queue/a", 2)
            with pytest.raises(cogwork.LinkDetached, match="no permission to receive"):
                await anext(items)
        assert container.vhosts[""].nodes["queue/a"].status()["depth"] == 1


@story
async def test_patterns_whose_permission_is_gone_are_unbound() -> None:
    management = '{ address = "$management", rights = ["send"] }'
    wider = '{ address = "topic/b.#", rights = ["receive"] }'
    reply = '{ address = "_reply/#", rights = ["send"] }'
    publish = '{ address = "topic/#", rights = ["send"] }'
    async with linked() as mesh:
        pam = user("pam", publish)
        container = await started(mesh, user("ann", TOPICS, wider, management, reply), pam)
        ann, publisher = await client(mesh, container, "ann"), await client(mesh, container, "pam")
        async with ann.subscribe("topic/a.#") as messages:
            await messages.bind("topic/b.#")
            reload(container, user("ann", TOPICS, management, reply), pam)
            await publisher.publish("topic/b.x", "secret")
            await publisher.publish("topic/a.x", "open")
            assert (await anext(messages)).body == "open"


@story
async def test_what_was_decided_for_messages_that_name_their_address_is_decided_anew() -> None:
    async with linked() as mesh:
        container = await started(mesh, user("ann", SEND), BOB)
        ann = await client(mesh, container, "ann")
        await ann.publish("queue/a", 1)
        await eventually(lambda: relays(container) == 1, "the relay is attached")
        reload(container, user("ann", '{ address = "queue/b", rights = ["send"] }'), BOB)
        with pytest.raises(cogwork.CogworkError, match="no permission to send at 'queue/a'"):
            await ann.publish("queue/a", 2)
        await ann.publish("queue/b", 1)
        assert container.vhosts[""].nodes["queue/a"].status()["depth"] == 1


def relays(container: Container) -> int:
    return sum(link.role is Role.RECEIVER for link in container.links.values())


@story
async def test_anonymous_may_do_nothing_once_a_user_is_there() -> None:
    async with linked() as mesh:
        container = await started(mesh)
        async with cogwork.connect(container.endpoints[0]) as nobody:
            await nobody.publish("queue/a", 1)
            reload(container, BOB)
            bob = await client(mesh, container, "bob")
            await bob.publish("queue/a", 2)
            with pytest.raises(cogwork.CogworkError, match="no permission"):
                await nobody.publish("queue/a", 3)
            with pytest.raises(cogwork.CogworkError, match="no permission to receive anywhere"):
                await nobody.request("queue/a", 4, timeout_s=10)


@story
async def test_a_link_of_a_user_that_is_no_container_any_more_is_closed() -> None:
    async with linked() as mesh:
        south = user("south", more="mesh = true")
        container = await started(mesh, BOB, south)
        url = container.endpoints[0].replace("://", "://south:word@")
        await mesh.start("south", configuration=f'[[link]]\nurl = "{url}"\n')
        there = container.mesh
        await eventually(lambda: there.is_linked("south"), "south is linked")
        bob = await client(mesh, container, "bob")
        reload(container, BOB, user("south"))
        await eventually(lambda: not there.is_linked("south"), "south is cut off")
        told = mesh.containers["south"].mesh.diallers
        await eventually(
            lambda: any("may not link" in (each.problem or "") for each in told),
            "south is told why",
        )
        assert not there.peer_links
        await bob.publish("queue/a", 1)
        reload(container, BOB, south)
        await eventually(lambda: there.is_linked("south"), "south is linked again")


@story
async def test_nobody_links_as_a_container_that_another_user_is() -> None:
    users = [user(name, more="mesh = true") for name in ("south", "west", "mallory")]
    async with linked() as mesh:
        container = await started(mesh, *users)
        there = container.mesh

        async def link(name: str, login: str) -> None:
            url = container.endpoints[0].replace("://", f"://{login}:word@")
            await mesh.start(name, configuration=f'[[link]]\nurl = "{url}"\n')

        await link("south", "south")
        await link("west", "west")
        await eventually(lambda: there.is_linked("south") and there.is_linked("west"), "linked")
        await mesh.stop("south")
        await eventually(lambda: not there.is_linked("south"), "south is gone")
        await link("south", "mallory")
        await eventually(lambda: _is_told(mesh, "has linked as another user"), "mallory is told")
        assert not there.is_linked("south")
        await mesh.stop("south")
        await link("south", "south")
        await eventually(lambda: there.is_linked("south"), "south itself is back")
        assert there.is_linked("west")


@story
async def test_a_user_is_the_containers_that_it_may_be_and_no_others() -> None:
    south = user("south", more='mesh = true\ncontainers = ["south", "south.2"]')
    async with linked() as mesh:
        container = await started(mesh, south, user("mallory", more="mesh = true"))
        there = container.mesh
        for name, login, told in (
            ("south", "mallory", "the id 'south' is another user's"),
            ("north", "south", "user 'south' may not be container 'north'"),
        ):
            url = container.endpoints[0].replace("://", f"://{login}:word@")
            await mesh.start(name, configuration=f'[[link]]\nurl = "{url}"\n')
            await eventually(lambda: _is_told(mesh, told, name), f"{login} is told")  # noqa: B023  # awaited
            assert not there.is_linked(name)
            await mesh.stop(name)
        url = container.endpoints[0].replace("://", "://south:word@")
        await mesh.start("south.2", configuration=f'[[link]]\nurl = "{url}"\n')
        await eventually(lambda: there.is_linked("south.2"), "south.2 is linked")


def _is_told(mesh: Linked, text: str, name: str = "south") -> bool:
    return any(text in (each.problem or "") for each in mesh.containers[name].mesh.diallers)


MAPPED = """
[[listen]]
port = {port}
transport = "amqps"
tls = {{ certificate = "{server}", client_ca = "{ca}", users = {{ {users} }} }}
"""


@story
async def test_whom_a_certificate_names_no_longer_is_cut_off(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name in ("127.0.0.1", "ann.example", "bob.example"):
        made = authority.issue_cert(name, common_name=name)
        made.private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
    (port,) = free_ports(1)

    def configuration(users: str) -> str:
        server, ca = tmp_path / "127.0.0.1.pem", tmp_path / "ca.pem"
        return MAPPED.format(port=port, server=server, ca=ca, users=users) + user("ann", SEND) + BOB

    async with linked() as mesh:
        await mesh.start("a", configuration=configuration('"ann.*" = "ann", "bob.*" = "bob"'))
        container = mesh.containers["a"]

        async def enter(name: str, login: str = "") -> cogwork.Client:
            tls = client_context(tmp_path / "ca.pem", tmp_path / f"{name}.example.pem")
            url = f"amqps://{login}127.0.0.1:{port}"
            return await mesh.enter(cogwork.connect(url, tls=tls, retry=QUICKLY))

        ann, bob = await enter("ann"), await enter("bob")
        by_password = await enter("ann", "ann:word@")
        assert connected(container) == ["ann", "ann", "bob"]

        def reread(users: str) -> None:
            head = 'id = "a"\n[[listen]]\nport = 0\n'
            container.reconfigure(parse(head + configuration(users), "test"))

        reread('"ann.*" = "bob", "bob.*" = "bob"')
        await eventually(lambda: ann.connections == 2, "ann's certificate is bob's now")
        assert connected(container) == ["ann", "bob", "bob"]
        reread('"bob.*" = "bob"')
        await eventually(lambda: not ann.is_connected, "the certificate names nobody any more")
        await eventually(lambda: connected(container) == ["ann", "bob"], "it is cut off")
        assert (bob.connections, by_password.connections) == (1, 1)


def test_connections_are_listed_and_closed(tmp_path: Path) -> None:
    with served(tmp_path, OPEN + user("ann", SEND) + BOB) as container:
        asyncio.run(_listed_and_closed(container.url))
        missing = ran("connection", "close", container.url, "4711")
        assert (missing.returncode, missing.stderr) == (
            ExitCode.NOT_FOUND,
            "cogwork: there is no connection '4711' (amqp:not-found)\n",
        )
        as_bob = container.url.replace("://", "://bob:word@")
        refused = ran("user", "disconnect", as_bob, "ann")
        assert refused.returncode == ExitCode.AUTHENTICATION
        assert "grant send on '$management'" in refused.stderr


async def _listed_and_closed(url: str) -> None:
    urls = {name: url.replace("://", f"://{name}:word@") for name in ("ann", "bob")}
    async with (
        cogwork.connect(urls["ann"], retry=QUICKLY) as ann,
        cogwork.connect(urls["bob"], retry=QUICKLY) as bob,
    ):
        await ann.publish("queue/a", 1)
        await bob.publish("queue/a", 2)
        rows = await _run("connection", "list", url, "--json")
        (row,) = [each for each in rows if each["user"] == "ann"]
        assert (row["messages_in"], row["is_open"]) == (1, True)
        assert row["peer"].startswith("127.0.0.1:")
        assert {"container", "since", "sessions", "links", "messages_out"} <= set(row)
        assert await _run("connection", "close", url, row["id"], "--json") == {
            "id": row["id"],
            "closed": True,
        }
        await eventually(lambda: ann.connections == 2, "ann is connected again")
        assert await _run("user", "disconnect", url, "ann", "--json") == {
            "user": "ann",
            "closed": 1,
        }
        await eventually(lambda: ann.connections == 3, "ann is connected again")
        await bob.publish("queue/a", 3)
        assert bob.connections == 1


async def _run(*arguments: str) -> Any:  # a JSON document
    found = await asyncio.to_thread(ran, *arguments)
    assert found.returncode == ExitCode.OK, found.stderr
    return json.loads(found.stdout)
