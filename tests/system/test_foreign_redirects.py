"""Redirects of others: a server that says what a test has it say, and knows nothing of force."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, FrameType, encode_frame
from cogwork.amqp.performatives import Close, Open, encode_performative
from cogwork.amqp.redirect import Redirect, host_of
from cogwork.amqp.sasl import ANONYMOUS, SaslCode, SaslMechanisms, SaslOutcome, encode_sasl
from cogwork.amqp.types import Symbol
from cogwork.client.connection.search import REDIRECTS_MAX

from .redirects import containers, host, url_of, where
from .stories import story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@asynccontextmanager
async def speaker(
    error: AmqpError | Callable[[], AmqpError],
) -> AsyncIterator[tuple[str, list[int]]]:
    """Run a server that answers every open with a close; yield its URL and whom it saw."""
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
        async with cogwork.connect([url, url_of(a)]) as client:
            assert where(client) == "a"


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
        cogwork.connect([url, url_of(a)]) as client,
    ):
        assert where(client) == "a"
