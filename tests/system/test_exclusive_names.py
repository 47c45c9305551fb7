"""A server's name, and a ZeroMQ peer's, is one receiver's alone, over all linked containers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from call_ends import server_of

import cogwork
from cogwork.amqp.extensions import EXCLUSIVE

from .linked import linked
from .stories import QUICKLY, eventually, reconnected, story

if TYPE_CHECKING:
    from cogwork.rpc.serving.service import Service

    Services = dict[str, Service]


def _is_one(services: Services) -> bool:
    """Return whether exactly one service has its name."""
    return sum(map(_holds, services.values())) == 1


def _has_lost(service: Service) -> bool:
    """Return whether a service has its name no longer."""
    return not _holds(service)


def _holds(service: Service) -> bool:
    """Return whether a service has its name, as far as it knows."""
    receiver = service._receivers[1]
    return receiver.failure is None and receiver.link is not None and receiver._attached.done()


@story
async def test_a_name_that_a_server_holds_is_refused_until_it_goes(url: str) -> None:
    async with cogwork.connect(url) as first, cogwork.connect(url) as second:
        async with first.service("names", server="1"):
            with pytest.raises(cogwork.LinkRefused, match=r"exclusive/rpc/names/1.* is held"):
                await second.service("names", server="1").__aenter__()
            async with second.service("names", server="2"), second.service("others", server="1"):
                pass
            with pytest.raises(cogwork.LinkRefused, match="is held"):
                async with second.consume("exclusive/rpc/names/1"):
                    pass
        async with second.service("names", server="1"):
            pass


@story
async def test_a_name_is_held_over_linked_containers() -> None:
    async with linked("a-b", "b-c") as mesh:
        first, second = await mesh.client("a"), await mesh.client("c")
        async with first.service("names", server="1"):
            await mesh.settle()
            with pytest.raises(cogwork.LinkRefused, match="is held at container"):
                await second.service("names", server="1").__aenter__()
        await mesh.settle()
        async with second.service("names", server="1"):
            pass


@story
async def test_a_server_that_reconnects_keeps_its_name(url: str) -> None:
    async with cogwork.connect(url, retry=QUICKLY) as mesh, cogwork.connect(url) as caller:
        service = server_of(mesh.service("names", server="back"))

        @service.method
        def hello() -> str:
            return "hello"

        async with service:
            assert await caller.call("names", "hello", server="back") == "hello"
            assert mesh._handler is not None
            mesh._handler.connection.on_lost(104)
            await reconnected(mesh)
            await eventually(lambda: service._receivers[1].link is not None, "it is attached again")
            assert await caller.call("names", "hello", server="back", timeout_s=20) == "hello"
            await asyncio.sleep(0)
            with pytest.raises(cogwork.LinkRefused, match="is held"):
                await caller.service("names", server="back").__aenter__()


@story
async def test_of_claims_made_at_once_exactly_one_survives_and_the_others_hear_who_holds() -> None:
    async with linked("a-b", "b-c", "c-d", "d-a") as mesh:
        for attempt in range(20):
            services = {}
            for name in "abcd":
                client = await mesh.client(name)
                services[name] = server_of(client.service("names", server=f"at-once-{attempt}"))
            await asyncio.gather(
                *(each.__aenter__() for each in services.values()), return_exceptions=True
            )
            await eventually(partial(_is_one, services), "one has it alone")
            await mesh.settle()
            [holder] = [name for name, each in services.items() if _holds(each)]
            for name, service in services.items():
                if name != holder:
                    failure = service._receivers[1].failure
                    assert failure is not None
                    assert f"exclusive/rpc/names/at-once-{attempt}' is held" in str(failure)
                    assert "at container " in str(failure)
                    assert f"at container {name}" not in str(failure)
                    assert "resource-locked" in str(failure)
            await asyncio.gather(*(each.stop() for each in services.values()))
            await mesh.settle()
            assert not any(each.vhosts[""].holders._held for each in mesh.containers.values())


@story
async def test_claims_on_both_sides_of_a_cut_are_one_when_it_is_healed() -> None:
    async with linked("a-b", "b-c") as mesh:
        first, second = await mesh.client("a"), await mesh.client("c")
        for attempt in range(3):
            server = f"parted-{attempt}"
            mesh.cut_off("c")
            await eventually(
                lambda: (
                    not any(peer_link.was_up for peer_link in mesh.containers["c"].mesh.peer_links)
                ),
                "the link is cut",
            )
            async with server_of(first.service("names", server=server)) as kept:
                lost = server_of(second.service("names", server=server))
                await lost.__aenter__()
                mesh.join_again("c")
                await mesh.settle()
                await eventually(partial(_has_lost, lost), "the later claim has ended")
                assert "at container a" in str(lost._receivers[1].failure)
                with pytest.raises(cogwork.LinkDetached, match=f"{server}' is held at container a"):
                    await lost.wait()
                assert _holds(kept)
                await lost.stop()


@story
async def test_a_session_that_moves_takes_its_name_along_whatever_its_container_is_called() -> None:
    async with linked("a-b", "b-c") as mesh:
        urls = {name: each.endpoints[0] for name, each in mesh.containers.items()}
        async with (
            cogwork.connect(urls["a"], name="mover") as before,
            cogwork.connect(urls["c"], name="mover") as after,
            cogwork.connect(urls["b"]) as stranger,
            server_of(before.service("names", server="moves")) as earlier,
        ):
            await mesh.settle()
            async with server_of(after.service("names", server="moves")) as later:
                await eventually(lambda: not _holds(earlier), "the earlier link has ended")
                assert "taken over by the same client" in str(earlier._receivers[1].failure)
                await mesh.settle()
                assert _holds(later)
                with pytest.raises(cogwork.LinkRefused, match="is held at container c"):
                    await stranger.service("names", server="moves").__aenter__()


@story
async def test_a_name_that_is_held_elsewhere_is_refused_to_everybody_who_receives() -> None:
    async with linked("a-b") as mesh:
        first, second = await mesh.client("a"), await mesh.client("b")
        async with first.service("names", server="1"):
            await mesh.settle()
            with pytest.raises(cogwork.LinkRefused, match="is held at container a"):
                async with second.consume("exclusive/rpc/names/1"):
                    pass


@story
async def test_a_refused_receiver_leaves_no_claim_behind(url: str) -> None:
    async with cogwork.connect(url) as mesh:
        receiver = mesh.consume("exclusive/rpc/names/1", selector="not a selector (")
        receiver._source.capabilities = (EXCLUSIVE,)
        with pytest.raises(cogwork.LinkRefused, match="selector"):
            await receiver.__aenter__()
        async with mesh.service("names", server="1"):
            pass
