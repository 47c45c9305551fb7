"""The client is sent elsewhere: it goes there, or says why it does not."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trustme

import cogwork
from cogwork.amqp.redirect import CONSOLE, FORCE, REDIRECTS, Redirect
from cogwork.cli.main import run
from cogwork.client.connection.search import REDIRECTS_MAX
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import parse
from cogwork.container.connections.redirect import Redirector
from cogwork.dataplane.connection import Connection
from cogwork.io.tls import client_context

from .redirects import asked, containers, dead_host, host, sends_to, url_of, where
from .stories import QUICKLY, eventually, reconnected, story

if TYPE_CHECKING:
    from pathlib import Path


@story
async def test_a_client_goes_where_it_is_sent() -> None:
    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(host(b))
        async with cogwork.connect(url_of(a)) as mesh:
            assert where(mesh) == "b"
            assert asked(b) == [{REDIRECTS: 1}]
            await mesh.publish("sink/here", 1)
            assert (a.peers.clients, b.peers.clients) == (0, 1)
        assert a.peers.redirected == 1
        await eventually(lambda: b.peers.clients == 0, "the client is not counted any more")
        await eventually(lambda: not a.peers.connections, "the first connection is closed")


@story
async def test_with_force_it_stays() -> None:
    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(host(b))
        async with cogwork.connect(url_of(a), force=True) as mesh:
            assert where(mesh) == "a"
            assert asked(a) == [{FORCE: True}]
            assert a.peers.redirected == 0


@story
async def test_consoles_are_not_redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(host(b))
        monkeypatch.setattr("cogwork.client.connection.handler.FORCE", CONSOLE)
        async with cogwork.connect(url_of(a), force=True) as mesh:
            assert where(mesh) == "a"
            assert a.peers.clients == 0


@story
async def test_commands_about_a_container_stay_there() -> None:
    def run_there(*arguments: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert run(arguments) == 0
        return output.getvalue()

    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(host(b))
        status = json.loads(await asyncio.to_thread(run_there, "status", url_of(a), "--json"))
        assert status["container"]["name"] == "a"
        await asyncio.to_thread(run_there, "send", url_of(a), "sink/here", "body")
        assert a.peers.redirected == 1
        status = json.loads(await asyncio.to_thread(run_there, "status", url_of(a), "--json"))
        assert status["container"]["connections_redirected"] == 1


@story
async def test_a_dead_target_leads_to_the_known_hosts_in_order() -> None:
    async with containers("a", "b", "c") as (a, b, c):
        a.peers.redirect = sends_to(dead_host(), dead_host(), host(c), host(b))
        async with cogwork.connect(url_of(a)) as mesh:
            assert where(mesh) == "c"


@story
async def test_where_all_that_is_named_is_dead_the_list_that_was_given_goes_on() -> None:
    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(dead_host(), dead_host())
        b.peers.redirect = sends_to(dead_host())
        async with cogwork.connect([url_of(a), url_of(b)]) as mesh:
            assert where(mesh) == "a"
            assert asked(a) == [{FORCE: True, REDIRECTS: 1}]


@story
async def test_redirects_are_followed_one_after_another() -> None:
    names = [f"c{number}" for number in range(REDIRECTS_MAX + 1)]
    async with containers(*names) as chain:
        for one, following in itertools.pairwise(chain):
            one.peers.redirect = sends_to(host(following))
        async with cogwork.connect(url_of(chain[0])) as mesh:
            assert where(mesh) == names[-1]
            assert asked(chain[-1]) == [{REDIRECTS: REDIRECTS_MAX}]


@story
async def test_containers_that_redirect_to_each_other_lock_nobody_out() -> None:
    async with containers("a", "b") as (a, b):
        a.peers.redirect = sends_to(host(b))
        b.peers.redirect = sends_to(host(a))
        async with cogwork.connect(url_of(a)) as mesh:
            assert where(mesh) == "a"
            assert asked(a) == [{FORCE: True, REDIRECTS: 2}]


@story
async def test_after_a_loss_the_last_container_is_tried_first_then_the_known_hosts() -> None:
    async with containers("a", "b", "c") as (a, b, c):
        a.peers.redirect = sends_to(host(b), host(c))
        async with cogwork.connect(url_of(a), retry=QUICKLY) as mesh:
            assert where(mesh) == "b"
            b.peers.lose()
            await reconnected(mesh)
            assert where(mesh) == "b"
            assert a.peers.accepted == 1
            await b.stop(drain_timeout_s=0)
            await reconnected(mesh, 3)
            assert where(mesh) == "c"
            await c.stop(drain_timeout_s=0)
            a.peers.redirect = None
            await reconnected(mesh, 4)
            assert where(mesh) == "a"


@story
async def test_a_connection_that_stands_is_redirected() -> None:
    async with (
        containers("a", "b") as (a, b),
        cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
        mesh.subscribe("topic/moved.#") as messages,
    ):
        a.peers.close(Redirect(host(b)).to_error())
        await reconnected(mesh)
        assert where(mesh) == "b"
        await mesh.publish("topic/moved.here", "there")
        assert (await anext(messages)).body == "there"


@story
async def test_with_force_a_connection_that_stands_comes_back() -> None:
    async with (
        containers("a", "b") as (a, b),
        cogwork.connect(url_of(a), retry=QUICKLY, force=True) as mesh,
    ):
        a.peers.close(Redirect(host(b)).to_error())
        await reconnected(mesh)
        assert where(mesh) == "a"


@pytest.mark.parametrize("transport", ["amqps", "wss"])
@story
async def test_user_virtual_host_and_tls_come_along(tmp_path: Path, transport: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    configuration = f"""
        [[listen]]
        port = 0
        transport = "{transport}"
        tls = {{ certificate = "{tmp_path / "server.pem"}" }}
        sasl = ["PLAIN"]

        [[user]]
        name = "jo"
        password_hash = "{hash_password("secret")}"

        [[vhost]]
        name = "blue"
    """
    async with containers("a", "b", configuration=configuration) as (a, b):
        a.peers.redirect = sends_to(host(b))
        url = f"{transport}://jo:secret@{host(a)}/blue"
        async with cogwork.connect(url, tls=client_context(tmp_path / "ca.pem")) as mesh:
            assert where(mesh) == "b"
            ((connection, client),) = b.peers.connections.items()
            assert connection.identity == "jo"
            assert client.vhost.name == "blue"


@story
async def test_a_certificate_must_be_that_of_the_name_a_redirect_gives(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1", "b.example").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    configuration = f"""
        [[listen]]
        port = 0
        transport = "amqps"
        tls = {{ certificate = "{tmp_path / "server.pem"}" }}
        sasl = ["ANONYMOUS"]
    """
    tls = client_context(tmp_path / "ca.pem")
    async with containers("a", "b", configuration=configuration) as (a, b):
        a.peers.redirect = lambda _: Redirect(host(b), hostname="b.example")
        async with cogwork.connect(url_of(a), tls=tls) as mesh:
            assert where(mesh) == "b"
            assert mesh.container.container_id == "b"
            (connection,) = b.peers.connections
            assert isinstance(connection, Connection)
            assert connection.remote is not None
            assert connection.remote.hostname == "b.example"
        a.peers.redirect = lambda _: Redirect(host(b), hostname="c.example")
        async with cogwork.connect(url_of(a), tls=tls) as mesh:
            assert where(mesh) == "a"  # what is not c.example is not talked to


@story
async def test_what_is_advertised_is_what_clients_elsewhere_can_use() -> None:
    configuration = """
        [[listen]]
        port = 0

        [[listen]]
        host = "0.0.0.0"
        port = 0
        sasl = ["PLAIN"]

        [[listen]]
        host = "0.0.0.0"
        port = 0
        transport = "ws"
        sasl = ["PLAIN"]
        advertise = "north.example:80"

        [[user]]
        name = "jo"
        password_hash = "HASH"
    """.replace("HASH", hash_password("secret"))
    async with containers("a", configuration=configuration) as (a,):
        assert a.advertised == [a.endpoints[0], "ws://north.example:80"]
        a.reconfigure(parse(configuration.replace("north", "south"), "test"))
        assert a.advertised == [a.endpoints[0], "ws://south.example:80"]


@story
async def test_a_crowd_at_one_of_three_is_spread() -> None:
    """The figures of the others are as old as the last of the hellos that are said here."""
    count, margin = 90, 3
    async with containers("a", "b", "c") as running, AsyncExitStack() as stack:
        redirectors = {each.id: Redirector(margin) for each in running}
        for each in running:
            each.peers.redirect = lambda newcomer, each=each: redirectors[each.id].choose(
                newcomer, each.peers.clients, each.core.now
            )

        def say_hello() -> None:
            for one in running:
                for other in running:
                    if other is not one:
                        redirectors[other.id].update(
                            one.id, one.peers.clients, one.advertised, other.core.now
                        )

        say_hello()
        first = [cogwork.connect(url_of(running[0])) for _ in range(count // 2)]
        await asyncio.gather(*map(stack.enter_async_context, first))
        say_hello()
        second = [cogwork.connect(url_of(running[0])) for _ in range(count // 2)]
        await asyncio.gather(*map(stack.enter_async_context, second))
        clients = [each.peers.clients for each in running]
        assert sum(clients) == count
        assert max(clients) <= min(clients) + margin + 1
        assert max(clients) <= min(clients) * 1.15
