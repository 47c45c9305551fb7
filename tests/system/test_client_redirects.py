"""The client is sent elsewhere: it goes there, or says why it does not."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trustme

import cogwork
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, FrameType, encode_frame
from cogwork.amqp.performatives import Close, Open, encode_performative
from cogwork.amqp.redirect import CONSOLE, FORCE, REDIRECTS, Host, Redirect, host_of
from cogwork.amqp.sasl import ANONYMOUS, SaslCode, SaslMechanisms, SaslOutcome, encode_sasl
from cogwork.amqp.types import Symbol
from cogwork.cli.main import run
from cogwork.cli.servers.process import free_ports
from cogwork.client.search import REDIRECTS_MAX
from cogwork.container.config import defaults, parse, with_options
from cogwork.container.container import Container
from cogwork.container.redirect import Redirector
from cogwork.container.users import hash_password
from cogwork.io.tls import client_context

from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cogwork.amqp.performatives import Attach
    from cogwork.container.clients import ClientContext
    from cogwork.container.redirect import Newcomer
    from cogwork.dataplane.link import Link

QUICKLY = cogwork.Retry(first_s=0.01, longest_s=0.1)


@asynccontextmanager
async def containers(*names: str, configuration: str = "") -> AsyncIterator[list[Container]]:
    """Runs containers in this event loop, each on a free port."""
    async with AsyncExitStack() as stack:
        running = []
        for name in names:
            told = parse(configuration, "test") if configuration else defaults()
            listens = () if "[[listen]]" in configuration else ("127.0.0.1:0",)
            container = Container(with_options(told, name, listens))
            await container.start()
            stack.push_async_callback(container.stop, drain_timeout_s=0)
            running.append(container)
        yield running


def url_of(container: Container) -> str:
    return container.endpoints[0]


def host(container: Container) -> Host:
    return host_of(url_of(container).partition("://")[2])


def dead_host() -> Host:
    """Returns a host where nobody listens."""
    return Host("127.0.0.1", free_ports(1)[0])


def sends_to(first: Host, *known: Host) -> Callable[[Newcomer], Redirect]:
    """Makes a container's rule that sends every newcomer away."""
    return lambda _newcomer: Redirect(first, known)


def where(mesh: cogwork.Mesh) -> str:
    """Names the container that a client is connected to."""
    return mesh.container.container_id


def asked(container: Container) -> list[dict[str, object]]:
    """Lists what the clients of a container asked for in their opens."""
    opens = [connection.remote for connection in container.peers.connections]
    wanted = (FORCE, REDIRECTS)
    return [
        {key: opened.properties[key] for key in wanted if key in (opened.properties or {})}
        for opened in opens
        if opened is not None and opened.properties is not None
    ]


# -- connections


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
        monkeypatch.setattr("cogwork.client.uplink.FORCE", CONSOLE)
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
            await eventually(lambda: mesh.connections == 2, "it is connected again")
            assert where(mesh) == "b"
            assert a.peers.accepted == 1
            await b.stop(drain_timeout_s=0)
            await eventually(lambda: mesh.connections == 3, "it is connected again")
            assert where(mesh) == "c"
            await c.stop(drain_timeout_s=0)
            a.peers.redirect = None
            await eventually(lambda: mesh.connections == 4, "it is connected again")
            assert where(mesh) == "a"


@story
async def test_a_connection_that_stands_is_redirected() -> None:
    async with (
        containers("a", "b") as (a, b),
        cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
        mesh.subscribe("topic/moved.#") as messages,
    ):
        a.peers.close(Redirect(host(b)).to_error())
        await eventually(lambda: mesh.connections == 2, "it is connected again")
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
        await eventually(lambda: mesh.connections == 2, "it is connected again")
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


# -- redirects of others: a server that says what a test has it say, and knows nothing of force


@asynccontextmanager
async def speaker(
    error: AmqpError | Callable[[], AmqpError],
) -> AsyncIterator[tuple[str, list[int]]]:
    """Runs a server that answers every open with a close; yields its URL and whom it saw."""
    seen: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(len(seen))
        said = error() if callable(error) else error
        writer.write(
            SASL_HEADER
            + encode_frame(
                0, encode_sasl(SaslMechanisms(sasl_server_mechanisms=(ANONYMOUS,))), FrameType.SASL
            )
            + encode_frame(0, encode_sasl(SaslOutcome(code=SaslCode.OK)), FrameType.SASL)
            + AMQP_HEADER
            + encode_frame(0, encode_performative(Open(container_id="speaker")))
            + encode_frame(0, encode_performative(Close(error=said)))
        )
        while await reader.read(4096):
            pass
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"amqp://127.0.0.1:{port}", seen
    finally:
        server.close()
        await asyncio.sleep(0.01)


def redirect_with(**info: object) -> AmqpError:
    return AmqpError(
        condition=Condition.CONNECTION_REDIRECT,
        info={Symbol(key.replace("_", "-")): value for key, value in info.items()},
    )


@story
async def test_one_that_redirects_to_itself_is_given_up() -> None:
    error = redirect_with()
    async with speaker(lambda: error) as (url, seen):
        port = host_of(url.removeprefix("amqp://")).port
        error = redirect_with(network_host="127.0.0.1", port=port)
        with pytest.raises(cogwork.ConnectError, match="after 8 redirects in a row"):
            await cogwork.connect(url).__aenter__()
        assert len(seen) == REDIRECTS_MAX + 1


@story
async def test_after_too_many_redirects_the_rest_of_the_list_is_tried() -> None:
    error = redirect_with()
    async with speaker(lambda: error) as (url, _seen), containers("a") as (a,):
        port = host_of(url.removeprefix("amqp://")).port
        error = redirect_with(network_host="127.0.0.1", port=port)
        async with cogwork.connect([url, url_of(a)]) as mesh:
            assert where(mesh) == "a"


@story
async def test_with_force_another_brokers_redirect_is_an_error() -> None:
    async with (
        containers("a") as (a,),
        speaker(Redirect(host(a)).to_error()) as (url, seen),
    ):
        with pytest.raises(cogwork.ConnectError, match="force=True rules out") as raised:
            await cogwork.connect(url, force=True).__aenter__()
        assert raised.value.condition == Condition.CONNECTION_REDIRECT
        assert len(seen) == 1
        assert a.peers.accepted == 0


@pytest.mark.parametrize(
    ("info", "wrong"),
    [
        ({}, "a redirect's network-host: nothing, expected a host"),
        ({"network_host": "127.0.0.1"}, "a redirect's port: nothing, expected 1 to 65535"),
        ({"network_host": "127.0.0.1", "port": "x"}, "a redirect's port: 'x'"),
        ({"network_host": 1, "port": 1}, "a redirect's network-host: 1, expected a string"),
        ({"network_host": "b", "port": 1, "known_hosts": 7}, "a redirect's known-hosts: 7"),
        ({"network_host": "b", "port": 1, "known_hosts": ["c"]}, "HOST:PORT is expected, not 'c'"),
        ({"network_host": "b", "port": 1, "scheme": "http"}, "scheme: 'http' is none"),
        ({"network_host": "a" * 64 + ".b", "port": 1}, "this cannot be a host's name"),
        ({"network_host": "b..c", "port": 1}, "this cannot be a host's name"),
    ],
)
@story
async def test_a_redirect_that_makes_no_sense_says_so(info: dict[str, object], wrong: str) -> None:
    async with speaker(redirect_with(**info)) as (url, _seen):
        with pytest.raises(cogwork.ConnectError) as raised:
            await cogwork.connect(url).__aenter__()
        assert wrong in str(raised.value)
        assert raised.value.condition in (Condition.CONNECTION_REDIRECT, None)


@story
async def test_a_redirect_that_makes_no_sense_leaves_the_rest_of_the_list() -> None:
    async with (
        speaker(redirect_with(port=1)) as (url, _seen),
        containers("a") as (a,),
        cogwork.connect([url, url_of(a)]) as mesh,
    ):
        assert where(mesh) == "a"


# -- links


def redirects_links(container: Container, address: str, error: AmqpError) -> None:
    """Has a container redirect every link to an address."""
    take = container._attachments.take

    def redirect(link: Link, attach: Attach, client: ClientContext) -> None:
        terminus = attach.target if attach.role.value is False else attach.source
        if getattr(terminus, "address", None) == address:
            link.attach(source=None, target=None)
            link.detach(error)
        else:
            take(link, attach, client)

    container._attachments.take = redirect  # type: ignore[method-assign]  # one attach is meddled with


def link_redirect(target: Host, address: str | None = None) -> AmqpError:
    return Redirect(target, address=address).to_error(Condition.LINK_REDIRECT)


@story
async def test_a_redirected_link_takes_the_connection_with_it() -> None:
    async with containers("a", "b") as (a, b):
        redirects_links(a, "queue/moved", link_redirect(host(b)))
        async with (
            cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
            mesh.subscribe("topic/there.#") as messages,
            mesh.publisher("queue/moved") as out,
        ):
            assert where(mesh) == "b"
            assert mesh.connections == 2
            await out.send("item")
            await mesh.publish("topic/there.too", 1)
            assert (await anext(messages)).body == 1
            async with mesh.consume("queue/moved") as items:
                item = await anext(items)
                assert item.body == "item"
                await item.accept()


@story
async def test_a_redirected_link_has_another_address_there() -> None:
    async with containers("a", "b") as (a, b):
        redirects_links(a, "queue/here", link_redirect(host(b), "queue/there"))
        async with cogwork.connect(url_of(a), retry=QUICKLY) as mesh:
            async with mesh.publisher("queue/here") as out:
                assert where(mesh) == "b"
                await out.send("item")
            async with mesh.consume("queue/there") as items:
                item = await anext(items)
                assert item.body == "item"
                await item.accept()
        async with (
            cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
            mesh.consume("queue/here") as items,
        ):
            assert where(mesh) == "b"
            async with cogwork.connect(url_of(b)) as other:
                await other.publish("queue/there", "more")
            item = await anext(items)
            assert item.body == "more"
            await item.accept()


@story
async def test_a_link_comes_home_under_its_own_address() -> None:
    async with containers("a", "b") as (a, b):
        redirects_links(a, "topic/here", link_redirect(host(b), "topic/there"))
        async with (
            cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
            mesh.subscribe("topic/here") as messages,
        ):
            assert where(mesh) == "b"
            redirects_links(a, "topic/here", link_redirect(host(b)))  # nothing is at topic/there
            a._attachments.take = type(a._attachments).take.__get__(a._attachments)  # type: ignore[method-assign]  # one attach is meddled with
            await b.stop(drain_timeout_s=0)
            await eventually(lambda: mesh.connections == 3, "it is connected again")
            assert where(mesh) == "a"
            await mesh.publish("topic/here", "home")
            assert (await anext(messages)).body == "home"


@story
async def test_what_was_sent_on_other_links_is_resolved_as_at_a_reconnection() -> None:
    configuration = """
        [[address]]
        prefix = "held"
        distribution = "closest"
    """
    async with (
        containers("a", "b", configuration=configuration) as (a, b),
        cogwork.connect(url_of(a)) as other,
        other.consume("held/items") as held,
        cogwork.connect(url_of(a), retry=QUICKLY) as mesh,
        mesh.publisher("held/items") as out,
    ):
        redirects_links(a, "queue/moved", link_redirect(host(b)))
        post = out.post("in doubt")
        await anext(held)  # it has arrived, and nobody settles it
        async with mesh.publisher("queue/moved"):
            assert where(mesh) == "b"
        with pytest.raises(cogwork.InDoubt):
            await post


@story
async def test_links_that_belong_to_two_containers_do_not_go_on_for_ever() -> None:
    async with containers("a", "b") as (a, b):
        redirects_links(a, "queue/one", link_redirect(host(b)))
        redirects_links(b, "queue/two", link_redirect(host(a)))
        retry = cogwork.Retry(first_s=0.001, longest_s=5.0, factor=1.0)
        async with cogwork.connect(url_of(a), retry=retry) as mesh:
            outs = [mesh.publisher("queue/one"), mesh.publisher("queue/two")]
            opened = await asyncio.gather(
                *(out.__aenter__() for out in outs), return_exceptions=True
            )
            await eventually(lambda: any(out.failure for out in outs), "one of them is given up")
            (failure,) = (out.failure for out in outs if out.failure)
            assert isinstance(failure, cogwork.LinkRefused)
            assert failure.condition == Condition.LINK_REDIRECT
            assert "after 8 redirects in a row" in failure.description
            assert mesh.connections == 1 + REDIRECTS_MAX
            assert all(each is failure for each in opened if isinstance(each, Exception))


@pytest.mark.parametrize(
    ("error", "force", "wrong"),
    [
        (link_redirect(Host("127.0.0.1", 1)), True, "force=True rules out"),
        (AmqpError(condition=Condition.LINK_REDIRECT), False, "network-host: nothing"),
    ],
)
@story
async def test_a_link_redirect_that_is_not_followed_is_a_refusal(
    error: AmqpError, force: bool, wrong: str
) -> None:
    async with containers("a") as (a,):
        redirects_links(a, "queue/moved", error)
        async with cogwork.connect(url_of(a), force=force) as mesh:
            with pytest.raises(cogwork.LinkRefused, match=wrong):
                await mesh.publisher("queue/moved").__aenter__()
            await mesh.publish("sink/here", 1)
            assert mesh.connections == 1


@story
async def test_two_links_that_are_redirected_at_once_move_once() -> None:
    async with containers("a", "b") as (a, b):
        for number in range(2):
            there = link_redirect(host(b), f"queue/there-{number}")
            redirects_links(a, f"queue/here-{number}", there)
        async with cogwork.connect(url_of(a), retry=QUICKLY) as mesh:
            outs = [mesh.publisher(f"queue/here-{number}") for number in range(2)]
            await asyncio.gather(*(out.__aenter__() for out in outs))
            assert where(mesh) == "b"
            assert mesh.connections == 2
            for number, out in enumerate(outs):
                await out.send(number)
                async with mesh.consume(f"queue/there-{number}") as items:
                    item = await anext(items)
                    assert item.body == number
                    await item.accept()
                await out.shut()


@story
async def test_a_mesh_can_be_closed_while_it_moves() -> None:
    async with containers("a", "b") as (a, b):
        redirects_links(a, "queue/moved", link_redirect(host(b)))
        async with cogwork.connect(url_of(a), retry=cogwork.Retry(first_s=10, jitter=0)) as mesh:
            out = mesh.publisher("queue/moved")
            opening = asyncio.create_task(out.__aenter__())
            await eventually(lambda: not mesh.is_connected, "the connection is left")
        with pytest.raises(cogwork.Disconnected):
            await opening
        assert b.peers.accepted == 0
