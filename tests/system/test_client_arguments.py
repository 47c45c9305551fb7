"""What no call of the client could do anything with is refused by it, and by its name."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.pipeline.arrow import ArrowClient
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager


@pytest.mark.parametrize("address", [None, 7, b"topic/a"])
@story
async def test_an_address_that_is_no_text_is_refused_at_once(address: Any) -> None:
    def refused() -> AbstractContextManager[object]:
        return pytest.raises(ValueError, match=f"an address is a text, not {address!r}")

    with container() as url:
        async with cogwork.connect(url) as client:
            made: tuple[Any, ...] = (client.subscribe, client.consume, client.browse, client.stream)
            for make in made:
                with refused():
                    make(address)
            with refused():
                client.serve(address, print)
            if address is not None:  # which is a publisher of messages that name their own
                with refused():
                    client.publisher(address)
            for timeout_s in (None, 1):
                with refused():
                    await client.publish(address, timeout_s=timeout_s)
            with refused():
                await client.request(address)


@pytest.mark.parametrize("address", ["//", "//queue/a"])
@story
async def test_an_address_of_several_slashes_is_refused_and_the_connection_stays(
    address: str,
) -> None:
    with container() as url:
        async with cogwork.connect(url) as client, asyncio.timeout(20):
            for publishing in (client.publish(address, "x"), client.request(address, "x")):
                with pytest.raises(cogwork.LinkRefused, match="begins with several /"):
                    await publishing
            for entity in ("queue", "stream"):
                with pytest.raises(cogwork.LinkRefused, match="begins with several /"):
                    await client.manage("CREATE", {"type": entity, "name": address}, {})
            assert client.connections == 1


@pytest.mark.parametrize("seconds", [-1, 8_589_934, 1e300, math.inf])
def test_a_silence_that_cannot_be_announced_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^idle_timeout_s is a number of seconds below 8589934, "):
        cogwork.connect("amqp://localhost", idle_timeout_s=seconds)


@pytest.mark.parametrize("seconds", ["3", math.nan, 10**400, Decimal(3), [1]])
@story
async def test_a_time_that_is_none_is_refused_by_its_name(seconds: Any) -> None:
    def refused(name: str) -> AbstractContextManager[object]:
        return pytest.raises(ValueError, match=f"^{name} is a number of seconds, not ")

    made: tuple[tuple[Callable[..., object], str], ...] = (
        (partial(cogwork.connect, "amqp://localhost"), "connect_timeout_s"),
        (partial(cogwork.connect, "amqp://localhost"), "idle_timeout_s"),
        (cogwork.Retry, "first_s"),
        (cogwork.Retry, "longest_s"),
        (cogwork.Retry, "give_up_after_s"),
        (cogwork.RpcOptions, "timeout_s"),
        (partial(ArrowClient, "amqp://localhost"), "timeout_s"),
    )
    for make, name in made:
        with refused(name):
            make(**{name: seconds})
    with container() as url:
        async with cogwork.connect(url) as client, client.publisher("topic/a") as out:
            with refused("send_timeout_s"):
                client.stream("a").publisher(send_timeout_s=seconds)
            renamed = "patience_s was renamed: use send_timeout_s"
            with refused("send_timeout_s"), pytest.warns(DeprecationWarning, match=renamed):
                client.stream("a").publisher(patience_s=seconds)
            with refused("grace_s"):
                client.service("a", grace_s=seconds)
            with refused("timeout_s"):
                client.call_stream("a", "b", timeout_s=seconds)
            waits: tuple[Callable[..., Awaitable[object]], ...] = (
                partial(out.send, 1),
                partial(out.send_batch, [1]),
                partial(client.publish, "topic/a", 1),
                partial(client.request, "unicast/a"),
                partial(client.call, "a", "b"),
                partial(client.cast, "a", "b"),
                partial(client.fanout, "a", "b"),
            )
            for wait in waits:
                with refused("timeout_s"):
                    await wait(timeout_s=seconds)
            with refused("heartbeat_s"):
                await client.call("a", "b", heartbeat_s=seconds)
        with (
            cogwork.sync.connect(url) as mesh_here,
            mesh_here.subscribe("topic/a") as messages,
            mesh_here.service("here") as service,
        ):
            with refused("timeout_s"):
                messages.receive(seconds)
            with refused("timeout_s"):
                service.wait(seconds)


def test_any_real_number_is_a_time() -> None:
    assert cogwork.Retry(first_s=Fraction(1, 2), give_up_after_s=math.inf).first_s == 0.5  # type: ignore[arg-type]  # as numpy's numbers
    with pytest.raises(ValueError, match="0 for never"):
        cogwork.connect("amqp://localhost", idle_timeout_s=math.inf)


@pytest.mark.parametrize("urls", [None, 7, [None], ["amqp://localhost", b"amqp://localhost"]])
def test_a_url_that_is_no_text_is_refused(urls: Any) -> None:
    with pytest.raises(cogwork.InvalidUrlError, match="a URL is a text, such as amqp://localhost"):
        cogwork.connect(urls)
