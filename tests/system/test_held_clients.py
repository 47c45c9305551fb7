"""`[cluster] hold_clients`: without a root all clients wait, those of both protocols."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout

import cogwork

from .basic_clients import basic_connection
from .meshes import Member, linked, meshed
from .served import OPEN, READY_TIMEOUT_S, done, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingConnection

    from .served import Served

EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("d", "c"))

DEPOSED_S = 4.0
"""Longer than anybody takes for the root who has lost its majority, or has just won it."""

Members = dict[str, Member]


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    """Run three primaries and a secondary, which hold clients."""

    def head(name: str) -> str:
        cluster = '[cluster]\nprimaries = ["a", "b", "c"]\nhold_clients = true\n'
        return f'data_dir = "{tmp_path / name}"\n{cluster}'

    with meshed(tmp_path, "abcd", EDGES, OPEN, head=head) as made:
        linked(made.values())
        for each in made.values():
            within(READY_TIMEOUT_S, partial(has_root, each), "there is a root")
        yield made


def has_root(member: Member) -> bool:
    found = json.loads(done("cluster", "status", member.url, "--json").stdout)
    return bool(found["root"])


def holds(member: Member) -> bool:
    """Return whether the last that it has said of clients is that they wait."""
    log = member.log()
    return log.rfind("clients wait, because") > log.rfind("clients go on: ")


def goes_on(member: Member) -> bool:
    return not holds(member)


def lose_the_majority(members: Members) -> None:
    for name in "bc":
        members[name].kill()
    time.sleep(DEPOSED_S)
    for name in "ad":
        within(READY_TIMEOUT_S, partial(holds, members[name]), f"{name} holds clients")


def bring_it_back(members: Members) -> None:
    members["b"].start()
    for name in "ad":
        within(READY_TIMEOUT_S, partial(goes_on, members[name]), f"{name} goes on")


async def publish_held(members: Members, name: str) -> None:
    """A client that stands, and a newcomer, wait for the root; one of both loses patience."""
    url = members[name].url
    async with cogwork.connect(url) as client:
        await client.publish("topic/x", b"before")
        await asyncio.to_thread(lose_the_majority, members)
        waits = asyncio.ensure_future(client.publish("topic/x", b"while there is none"))
        async with cogwork.connect(url, idle_timeout_s=1.0) as newcomer:
            comes = asyncio.ensure_future(newcomer.publish("topic/y", b"while there is none"))
            with pytest.raises(cogwork.ClientError, match="topic/z"):
                await newcomer.publish("topic/z", b"too late", timeout_s=0.5)
            await asyncio.sleep(2.5)  # it is silent for longer than its peer would bear
            assert not waits.done()
            assert not comes.done()
            facts = json.loads(await asyncio.to_thread(status, members[name]))
            assert not facts["root"]
            await asyncio.to_thread(bring_it_back, members)
            await asyncio.wait_for(asyncio.gather(waits, comes), READY_TIMEOUT_S)


def status(member: Member) -> str:
    """`$management` answers, whatever else waits."""
    begun_s = time.monotonic()
    told = done("cluster", "status", member.url, "--json").stdout
    assert time.monotonic() - begun_s < READY_TIMEOUT_S
    return told


@pytest.mark.parametrize("name", ["a", "d"])
def test_clients_wait_until_there_is_a_root(members: Members, name: str) -> None:
    asyncio.run(publish_held(members, name))


def test_clients_of_amqp_0_9_1_wait_with_their_heartbeats(members: Members) -> None:
    container = members["a"].served
    with basic_connection(container) as standing:
        channel = standing.channel()
        channel.queue_declare("own", exclusive=True)
        blocked: list[str] = []
        standing.add_on_connection_blocked_callback(
            lambda _connection, frame: blocked.append(frame.method.reason)
        )
        lose_the_majority(members)
        within(READY_TIMEOUT_S, lambda: has_heard(standing, blocked), "it is told")
        assert blocked == ["the cluster has no root"]
        with (
            pytest.raises(AMQPConnectorStackTimeout, match="Timeout during AMQP handshake"),
            basic_connection(container, stack_timeout=1.0),
        ):
            pass
        with ThreadPoolExecutor(1) as pool:
            newcomer = pool.submit(come, container)
            time.sleep(3.5)  # it would have missed the heartbeats of one that sends none
            assert not newcomer.done()
            bring_it_back(members)
            assert newcomer.result(READY_TIMEOUT_S)
        channel.basic_publish("", "own", b"again")
        within(READY_TIMEOUT_S, lambda: channel.basic_get("own")[2] == b"again", "it goes on")


def come(container: Served) -> bool:
    with basic_connection(container, heartbeat=1, stack_timeout=60.0) as connection:
        return bool(connection.channel().is_open)


def has_heard(connection: BlockingConnection, blocked: list[str]) -> bool:
    connection.process_data_events(0.1)
    return bool(blocked)
