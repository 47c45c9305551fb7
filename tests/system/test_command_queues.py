"""`cogwork queue` against a container in a process of its own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.amqp.types import Symbol, UInt
from cogwork.cli.exit_codes import ExitCode

from .served import Served, ran, served, started, within

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIGURATION = """
[[queue]]
address = "queue/small"
maximum_length = 2
maximum_length_policy = "reject"
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("queues"), CONFIGURATION) as running:
        yield running


def test_queues_from_the_cradle_to_the_grave(container: Served) -> None:
    url = container.url
    declared = ("queue", "declare", url, "queue/cradle", "--option", "dead_letter=queue/grave")
    memory = "in memory, until the container stops"
    assert container.run(*declared) == f"queue/cradle declared, {memory}\n"
    assert container.run(*declared) == f"queue/cradle was there with these options, {memory}\n"
    refused = ran(*declared, "--option", "priorities=3")
    assert refused.returncode == ExitCode.ERROR
    assert "priorities = 10, not 3" in refused.stderr
    container.run("send", url, "queue/cradle", "item", "--count", "12")
    peeked = container.run("queue", "peek", url, "queue/cradle", "--count", "11").splitlines()
    assert len(peeked) == 11
    assert all(line.endswith("\titem") and "\tready, " in line for line in peeked)
    shown = json.loads(
        container.run("queue", "peek", url, "queue/cradle", "--json").splitlines()[0]
    )
    assert (shown["body"], shown["state"], shown["attempts"]) == ("item", "ready", 0)
    other = json.loads(container.run("queue", "declare", url, "queue/other", "--json"))
    told = {"durability": "memory", "problem": None}
    assert other == {"address": "queue/other", "is_new": True, **told}
    move = ("queue", "move", url, "queue/cradle", "queue/other")
    assert container.run(*move, "--count", "2") == "2 items moved from queue/cradle\n"
    assert json.loads(container.run(*move, "--count", "3", "--json")) == {
        "address": "queue/cradle",
        "target": "queue/other",
        "moved": 3,
        "refused": 0,
        "unconfirmed": 0,
    }
    listed = json.loads(container.run("queue", "list", url, "--json"))
    depths = {row["address"]: row["depth"] for row in listed}
    assert (depths["queue/cradle"], depths["queue/other"]) == (7, 5)
    table = container.run("queue", "list", url)
    assert "queue/cradle" in table
    assert "consumers" in table
    assert container.run("queue", "purge", url, "queue/other") == (
        "5 items purged from queue/other\n"
    )
    purged = json.loads(container.run("queue", "purge", url, "queue/cradle", "--json"))
    assert purged == {"address": "queue/cradle", "purged": 7}
    assert container.run("queue", "delete", url, "queue/cradle") == "queue/cradle deleted\n"
    assert ran("queue", "delete", url, "queue/cradle").returncode == ExitCode.NOT_FOUND


def test_the_dead_are_driven_back(container: Served) -> None:
    url = container.url
    container.run(
        *("queue", "declare", url, "queue/mortal", "--option", "dead_letter=queue/limbo"),
        *("--option", "ttl_s=0.2"),
    )
    container.run("send", url, "queue/mortal", "soul", "--count", "3")
    within(30, lambda: container.address("queue/limbo")["depth"] == 3, "three have died")
    (dead,) = container.run("queue", "peek", url, "queue/limbo", "--count", "1", "--json").split(
        "\n"
    )[:1]
    annotations = json.loads(dead)["message_annotations"]
    assert annotations["x-opt-dead-letter-source"] == "queue/mortal"
    assert annotations["x-opt-dead-letter-reason"] == "expired"
    with started("receive", url, "queue/mortal", "--count", "3", "--json") as receiver:
        within(30, lambda: container.address("queue/mortal")["receivers"] == 1, "it waits")
        moved = container.run("queue", "redrive", url, "queue/limbo")
        assert moved == "3 items moved from queue/limbo\n"
        out, _ = receiver.communicate(timeout=10)
    assert [json.loads(line)["body"] for line in out.splitlines()] == ["soul"] * 3
    assert "x-opt-dead-letter-source" not in out


def test_what_is_no_dead_letter_stays_and_is_8(container: Served) -> None:
    url = container.url
    container.run("send", url, "queue/living", "x", "--count", "2")
    done = ran("queue", "redrive", url, "queue/living")
    assert (done.returncode, done.stdout) == (
        ExitCode.NOT_ACCEPTED,
        "0 items moved from queue/living\n",
    )
    assert done.stderr == "cogwork: 2 items are not dead letters and stay in queue/living\n"
    assert json.loads(ran("queue", "redrive", url, "queue/living", "--json").stdout) == {
        "address": "queue/living",
        "moved": 0,
        "refused": 2,
        "unconfirmed": 0,
        "strangers": 2,
    }


def test_what_does_not_fit_is_8(container: Served) -> None:
    url = container.url
    container.run("send", url, "queue/big", "x", "--count", "6")
    done = ran("queue", "move", url, "queue/big", "queue/small")
    assert done.returncode == ExitCode.NOT_ACCEPTED
    assert done.stdout == "2 items moved from queue/big\n"
    assert done.stderr == "cogwork: 4 items were not accepted and are back in queue/big\n"


def test_what_was_delayed_is_not_once_more_where_it_is_moved(container: Served) -> None:
    url = container.url
    container.run("queue", "declare", url, "queue/slow")
    asyncio.run(send_delayed(url, "queue/early", 500))
    within(30, lambda: counts_of(container, "queue/early")["ready"] == 1, "its delay is over")
    container.run("queue", "move", url, "queue/early", "queue/slow")
    slow = counts_of(container, "queue/slow")
    assert (slow["ready"], slow["delayed"]) == (1, 0)


def test_the_dead_are_driven_back_to_a_queue_that_remembers_them(container: Served) -> None:
    url = container.url
    options = ("deduplication_window_s=600", "dead_letter=queue/crypt")
    container.run("queue", "declare", url, "queue/once", *(f"--option={each}" for each in options))
    container.run("queue", "declare", url, "queue/crypt", f"--option={options[0]}")
    for _ in range(2):
        asyncio.run(reject_one(url, "queue/once", "m"))
        within(30, lambda: counts_of(container, "queue/crypt")["depth"] == 1, "it is dead")
        assert "1 items moved" in container.run("queue", "redrive", url, "queue/crypt")
        assert counts_of(container, "queue/once")["ready"] == 1
    container.run("queue", "move", url, "queue/once", "queue/crypt")
    assert counts_of(container, "queue/crypt")["ready"] == 1


async def reject_one(url: str, address: str, message_id: str) -> None:
    """Send a message, which counts once, and have a consumer reject what is there."""
    async with cogwork.connect(url) as client:
        await client.publish(address, "x", message_id=message_id)
        async with client.consume(address) as items:
            (await anext(items)).reject("no")


async def send_delayed(url: str, address: str, delay_ms: int) -> None:
    async with cogwork.connect(url) as client:
        annotations: dict[str, object] = {Symbol("x-opt-delivery-delay"): UInt(delay_ms)}
        await client.publish(address, "x", annotations=annotations)


def counts_of(container: Served, address: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads(container.run("queue", "list", container.url, "--json"))
    return next(row for row in rows if row["address"] == address)
