"""Shared exchanges, queues and bindings: before all can share them, at once, and at their end."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pika.exceptions import AMQPError, ChannelClosedByBroker

from cogwork.cluster.topology import TOPOLOGY_LEVEL

from .basic_clients import basic_channel, taken
from .clusters import command
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, within
from .test_feature_levels import OLDER, facts
from .test_shared_topology import (
    BOTH,
    cluster,
    head_of,
    is_ready,
    lacks_queue,
    next_of,
    there,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

CONFIGURED = """\
[[exchange]]
name = "configured"
type = "topic"

[[binding]]
source = "configured"
destination = "exchange/amq.fanout"
key = "a.#"
"""


def has_all(member: Member, *names: str) -> bool:
    return all(there(member, each) == BOTH for each in names)


def test_what_was_declared_before_is_declared_for_all_when_the_level_rises(tmp_path: Path) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "sitecustomize.py").write_text(OLDER)
    older = TOPOLOGY_LEVEL - 1

    def dress(member: Member) -> None:
        if member.id == "b":
            path = str(tmp_path / "older")
            member.environment.update({"PYTHONPATH": path, "HIGHEST_LEVEL": str(older)})

    edges, head = ["ab", "bc", "ca"], head_of(tmp_path)
    with meshed(tmp_path, "abc", edges, CONFIGURED, head=head, dress=dress) as members:
        linked(members.values())
        levels = partial(map, lambda each: facts(each).get("level"), members.values())
        within(READY_TIMEOUT_S, lambda: set(levels()) == {older}, "all have what b knows")
        with basic_channel(members["a"].served) as channel:  # as without a cluster
            channel.exchange_declare("early", "direct", durable=True)
            channel.queue_declare("early", durable=True)
            channel.queue_bind("early", "early", "k")
            channel.queue_bind("early", "amq.topic", "k.#")
            channel.basic_publish("early", "k", b"kept")
        assert there(members["c"], "early") == set()
        assert {facts(each)["level"] for each in members.values()} == {older}

        members["b"].kill()
        members["b"].environment.clear()
        members["b"].start()
        within(READY_TIMEOUT_S, lambda: all(map(is_ready, members.values())), "the level rises")
        for name in "abc":
            within(READY_TIMEOUT_S, partial(has_all, members[name], "early"), f"{name} has it")
        with basic_channel(members["b"].served) as channel:
            channel.basic_publish("early", "k", b"b")
            channel.basic_publish("amq.topic", "k.x", b"topic")
        with basic_channel(members["c"].served) as channel:
            channel.exchange_declare("configured", "topic", durable=True, passive=True)
            found = [body for _, _, body in taken(channel, "early", 3, auto_ack=True)]
            assert sorted(found) == [b"b", b"kept", b"topic"]
        assert len({facts(each)["digest"] for each in members.values()}) == 1


def declare_as(member: Member, name: str, kind: str, won: list[str], lost: list[int]) -> None:
    """Declare an exchange of a type, and note what comes of it."""
    try:
        with basic_channel(member.served) as channel:
            channel.exchange_declare(name, kind, durable=True)
            won.append(kind)
    except ChannelClosedByBroker as error:
        lost.append(error.reply_code)


def test_of_two_that_differ_and_are_made_at_once_one_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        for number in range(10):
            won: list[str] = []
            lost: list[int] = []
            name = f"both-{number}"
            wanted = (("a", "direct"), ("b", "fanout"), ("c", "topic"))
            threads = [
                threading.Thread(target=declare_as, args=(members[at], name, kind, won, lost))
                for at, kind in wanted
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert (len(won), lost) == (1, [406, 406])
            for member in members.values():
                with basic_channel(member.served) as channel:
                    channel.exchange_declare(name, won[0], durable=True)


def test_a_snapshot_stands_for_much_that_was_declared_and_deleted(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        members["c"].kill()
        with basic_channel(members["a"].served) as channel:
            channel.queue_declare("stays", durable=True)
            channel.exchange_declare("stays", "direct", durable=True)
            for number in range(600):
                channel.exchange_declare(f"passing-{number}", "fanout", durable=True)
                channel.exchange_delete(f"passing-{number}")
        assert next_of(members["a"]) > 1_200
        members["c"].start()
        within(READY_TIMEOUT_S, lambda: is_ready(members["c"]), "c has caught up")
        assert has_all(members["c"], "stays")
        within(
            READY_TIMEOUT_S,
            lambda: len({facts(each).get("digest") for each in members.values()}) == 1,
            "all have the same",
        )


def test_a_private_queue_keeps_a_shared_exchange_and_takes_it_along(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        with basic_channel(members["b"].served) as channel:
            channel.exchange_declare("passing", "fanout", auto_delete=True, durable=True)
            channel.queue_declare("mine", exclusive=True)
            channel.queue_bind("mine", "passing")
            before = next_of(members["a"])
            assert "exchange" in there(members["c"], "passing")
            channel.basic_publish("passing", "", b"x")
            assert channel.basic_get("mine", auto_ack=True)[2] == b"x"
        for member in members.values():
            is_gone = partial(lacks_exchange, member, "passing")
            within(READY_TIMEOUT_S, is_gone, "it goes with its last binding")
        assert next_of(members["a"]) == before + 1


def lacks_exchange(member: Member, name: str) -> bool:
    return "exchange" not in there(member, name)


def test_what_goes_by_itself_goes_everywhere(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        with basic_channel(members["a"].served) as channel:
            channel.queue_declare("expiring", durable=True, arguments={"x-expires": 1_500})
            channel.queue_declare("homed", arguments={"x-expires": 1_500})
            channel.queue_declare("deleted", durable=True, auto_delete=True)
            channel.basic_consume("deleted", lambda *_: None)
        for name in ("expiring", "homed", "deleted"):
            for member in members.values():
                is_gone = partial(lacks_queue, member, name)
                within(READY_TIMEOUT_S, is_gone, f"{name} goes at {member.id}")


def test_what_is_not_durable_goes_with_a_container_that_leaves(tmp_path: Path) -> None:
    with cluster(tmp_path, "abcs") as members:
        with basic_channel(members["s"].served) as channel:
            channel.exchange_declare("lost", "direct")
            channel.queue_declare("lost")
            channel.exchange_declare("kept", "direct", durable=True)
        assert there(members["a"], "lost") == BOTH
        command("leave", members["s"].url)
        assert members["s"].process is not None
        assert members["s"].process.wait(READY_TIMEOUT_S) == 0
        for name in "abc":
            is_gone = partial(lacks_exchange, members[name], "lost")
            within(READY_TIMEOUT_S, is_gone, f"it goes at {name}")
            assert lacks_queue(members[name], "lost")
            assert "exchange" in there(members[name], "kept")


def declare_and_lose(channel: BlockingChannel, member: Member) -> None:
    """Declare with two of three primaries, and again with one."""
    channel.queue_declare("two-of-three", durable=True)
    member.kill()
    channel.queue_declare("one-of-three", durable=True)


def test_a_client_of_a_cluster_without_a_majority_is_refused_and_goes_on_later(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, "abc") as members:
        members["b"].kill()
        with (
            pytest.raises(AMQPError, match="the cluster does not answer"),
            basic_channel(members["a"].served) as channel,
        ):
            declare_and_lose(channel, members["c"])
        members["b"].start()
        within(READY_TIMEOUT_S, lambda: is_ready(members["b"]), "b is back")
        with basic_channel(members["b"].served) as channel:
            channel.queue_declare("two-of-three", durable=True, passive=True)
            channel.queue_declare("one-of-three", durable=True)
