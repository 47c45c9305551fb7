"""Policies of one container and of a cluster, on queues and exchanges that stand and come."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pika.exceptions import NackError

from cogwork.cli.exit_codes import ExitCode
from cogwork.cluster.levels import HIGHEST_LEVEL

from .basic_clients import basic_channel, taken
from .served import READY_TIMEOUT_S, done, ran, served, within
from .test_shared_topology import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member
    from .served import Served


def head_of(folder: Path) -> str:
    return f'data_dir = "{folder / "data"}"\n'


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("policies")
    with served(folder, head=head_of(folder)) as running:
        within(READY_TIMEOUT_S, lambda: level_of(running) == HIGHEST_LEVEL, "its level rises")
        yield running


def level_of(container: Served) -> int:
    facts = json.loads(done("status", container.url, "--json").stdout)["container"]["cluster"]
    return int(facts["level"])


@pytest.fixture
def channel(container: Served) -> Iterator[BlockingChannel]:
    with basic_channel(container) as opened:
        opened.confirm_delivery()
        yield opened


def _has(channel: BlockingChannel, queue: str, count: int) -> bool:
    return _count(channel, queue) == count


def _count(channel: BlockingChannel, name: str) -> int:
    count: int = channel.queue_declare(name, passive=True).method.message_count
    return count


def _row(url: str, name: str, kind: str = "queue") -> dict[str, Any]:
    rows = json.loads(done(kind, "list", url, "--json").stdout)
    found: dict[str, Any] = next(each for each in rows if each["address"] == f"{kind}/{name}")
    return found


@pytest.mark.parametrize("durable", [True, False])
def test_a_policy_holds_for_a_standing_queue_and_is_taken_back(
    container: Served, channel: BlockingChannel, durable: bool
) -> None:
    name = f"bounded-{durable}"
    channel.queue_declare(name, durable=durable)
    for each in range(5):
        channel.basic_publish("", name, b"%d" % each)
    done("policy", "set", container.url, "short", f"^{name}$", "max-length=3")
    within(5, lambda: _count(channel, name) == 3, "what is too much is dropped at once")
    row = _row(container.url, name)
    assert (row["policy"], row["options"]["maximum_length"]) == ("short", 3)
    done(
        "policy",
        "set",
        container.url,
        "short",
        f"^{name}$",
        '{"max-length": 3, "overflow": "reject-publish"}',
    )
    with pytest.raises(NackError):
        channel.basic_publish("", name, b"too much")
    channel.queue_declare(name, durable=durable)  # it is declared as it was
    done("policy", "clear", container.url, "short")
    channel.basic_publish("", name, b"5")
    assert _row(container.url, name)["policy"] is None
    assert [body for _, _, body in taken(channel, name, 4)] == [b"2", b"3", b"4", b"5"]
    channel.cancel()
    channel.queue_delete(name)


def test_the_highest_priority_alone_holds_for_a_queue_to_come(
    container: Served, channel: BlockingChannel
) -> None:
    url = container.url
    done("policy", "set", url, "low", "^dying", "max-length=1", "message-ttl=1")
    options = ("dead-letter-exchange=", "dead-letter-routing-key=graves", "message-ttl=50")
    done("policy", "set", url, "high", "^dying", *options, "--priority", "5")
    channel.queue_declare("graves", durable=True)
    channel.queue_declare("dying", durable=True)
    for each in range(2):
        channel.basic_publish("", "dying", b"%d" % each)
    found = taken(channel, "graves", 2)
    assert [body for _, _, body in found] == [b"0", b"1"]
    assert found[0][1].headers["x-death"][0]["reason"] == "expired"
    channel.cancel()
    done("policy", "clear", url, "high")
    assert _row(url, "dying")["policy"] == "low"
    done("policy", "clear", url, "low")
    channel.queue_delete("dying")
    channel.queue_delete("graves")


def test_a_policy_lets_a_queue_expire_that_nobody_uses(
    container: Served, channel: BlockingChannel
) -> None:
    channel.queue_declare("brief")
    done("policy", "set", container.url, "brief", "^brief$", "expires=100")
    channel.queue_declare("kept")

    def names() -> set[str]:
        rows = json.loads(done("queue", "list", container.url, "--json").stdout)
        return {each["address"] for each in rows}

    within(10, lambda: "queue/brief" not in names(), "it expires")
    assert "queue/kept" in names()
    done("policy", "clear", container.url, "brief")


def test_a_policy_names_an_alternate_exchange(container: Served, channel: BlockingChannel) -> None:
    channel.exchange_declare("narrow", "direct")
    channel.exchange_declare("rest", "fanout")
    channel.queue_declare("rest", exclusive=True)
    channel.queue_bind("rest", "rest")
    definition = ("alternate-exchange=rest", "--apply-to", "exchanges")
    done("policy", "set", container.url, "rest", "^narrow$", *definition)
    channel.basic_publish("narrow", "nowhere", b"caught")
    assert [body for _, _, body in taken(channel, "rest", 1)] == [b"caught"]
    assert _row(container.url, "narrow", "exchange")["policy"] == "rest"
    channel.cancel()
    done("policy", "clear", container.url, "rest")
    channel.basic_publish("narrow", "nowhere", b"dropped")
    assert _count(channel, "rest") == 0


def test_a_policy_is_of_the_virtual_host_in_the_url(container: Served) -> None:
    done("vhost", "add", container.url, "blue")
    there = f"{container.url}/blue"
    done("policy", "set", there, "blue-only", "^b", "max-length=3")
    lists = [
        json.loads(done("policy", "list", each, "--json").stdout) for each in (there, container.url)
    ]
    assert [(each["name"], each["vhost"]) for each in lists[0]] == [("blue-only", "blue")]
    assert "blue-only" not in {each["name"] for each in lists[1]}
    done("policy", "clear", there, "blue-only")
    assert json.loads(done("policy", "list", there, "--json").stdout) == []


def test_what_no_policy_can_say_is_refused(container: Served) -> None:
    def refused(*words: str) -> str:
        found = ran("policy", "set", container.url, "bad", *words)
        assert found.returncode != ExitCode.OK
        return found.stderr

    assert "did you mean message-ttl?" in refused("^a", "messag-ttl=5")
    assert "expected an integer from 0" in refused("^a", "message-ttl=soon")
    assert "a regular expression" in refused("(", "message-ttl=5")
    assert json.loads(done("policy", "list", container.url, "--json").stdout) == []
    assert ran("policy", "clear", container.url, "bad").returncode != ExitCode.OK


def test_policies_of_a_configuration_and_of_a_data_directory_hold_after_a_restart(
    tmp_path: Path,
) -> None:
    config = """
[[policy]]
name = "logs"
pattern = "^logs"
definition = { "max-length" = 2 }
"""
    for life in range(2):
        with served(tmp_path, config, head=head_of(tmp_path)) as running:
            within(READY_TIMEOUT_S, lambda: level_of(running) == HIGHEST_LEVEL, "its level rises")
            if life == 0:
                done("policy", "set", running.url, "jobs", "^jobs", "max-length=1")
            with basic_channel(running) as channel:
                channel.confirm_delivery()
                for name in ("logs", "jobs"):
                    channel.queue_declare(name, durable=True)
                    for _ in range(3):
                        channel.basic_publish("", name, b"x")
                assert (_count(channel, "logs"), _count(channel, "jobs")) == (2, 1)
            rows = json.loads(done("policy", "list", running.url, "--json").stdout)
            assert [(each["name"], each["origin"]) for each in rows] == [
                ("jobs", "cluster"),
                ("logs", "file"),
            ]
            assert (
                "in this container's configuration"
                in ran("policy", "set", running.url, "logs", "^l", "max-length=9").stderr
            )


def test_a_policy_of_a_cluster_holds_at_every_home(tmp_path: Path) -> None:
    with cluster(tmp_path) as members:
        _hold_everywhere(members)


def _hold_everywhere(members: dict[str, Member]) -> None:
    for name in "abs":
        with basic_channel(members[name].served) as channel:
            arguments = {"x-queue-type": "classic"}
            channel.queue_declare(f"home-{name}", durable=True, arguments=arguments)
    with basic_channel(members["a"].served) as channel:
        channel.queue_declare("home-replicated", durable=True)
    queues = [f"home-{name}" for name in ("a", "b", "s", "replicated")]
    done("policy", "set", members["b"].url, "short", "^home-", "max-length=2")

    def holds(name: str) -> bool:
        rows = json.loads(done("policy", "list", members[name].url, "--json").stdout)
        return [each["name"] for each in rows] == ["short"]

    within(10, lambda: all(map(holds, members)), "every container has it")
    with basic_channel(members["c"].served) as channel:
        channel.confirm_delivery()
        for queue in queues:
            for _ in range(4):
                channel.basic_publish("", queue, b"x")
            within(10, partial(_has, channel, queue, 2), f"{queue} is bounded")
