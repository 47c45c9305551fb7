"""Links that are sent elsewhere, and take their connection with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.redirect import Host, Redirect
from cogwork.client.connection.search import REDIRECTS_MAX

from .redirects import containers, host, url_of, where
from .stories import QUICKLY, eventually, reconnected, story

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.container import Container
    from cogwork.dataplane.link import Link


def redirects_links(container: Container, address: str, error: AmqpError) -> None:
    """Have a container redirect every link to an address."""
    take = container.attachments.take

    def redirect(link: Link, attach: Attach, client: ClientContext) -> None:
        terminus = attach.target if attach.role.value is False else attach.source
        if getattr(terminus, "address", None) == address:
            link.attach(source=None, target=None)
            link.detach(error)
        else:
            take(link, attach, client)

    container.attachments.take = redirect  # type: ignore[method-assign]  # one attach is meddled with


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
            a.attachments.take = type(a.attachments).take.__get__(a.attachments)  # type: ignore[method-assign]  # one attach is meddled with
            await b.stop(drain_timeout_s=0)
            await reconnected(mesh, 3)
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
