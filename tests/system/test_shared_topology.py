"""Exchanges, queues and bindings of AMQP 0-9-1 that a cluster has are the same everywhere."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import AMQPError, ChannelClosedByBroker

from cogwork.cluster.levels import HIGHEST_LEVEL

from .basic_clients import basic_channel, taken
from .clusters import command
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, within
from .test_feature_levels import facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

IDS = "abcs"
"""Three primaries, and a secondary without a data directory."""

EDGES = ["ab", "bc", "ca", "sa", "sb"]


BOTH = {"exchange", "queue"}

ROUNDS = 10
"""Of consumers that come in one moment."""


def head_of(folder: Path) -> Any:
    def head(name: str) -> str:
        text = '[cluster]\nprimaries = ["a", "b", "c"]\n'
        return text if name == "s" else f'data_dir = "{folder / name}"\n{text}'

    return head


def is_ready(member: Member) -> bool:
    return facts(member).get("level") == HIGHEST_LEVEL and bool(facts(member).get("is_current"))


@contextlib.contextmanager
def cluster(folder: Path, ids: str = IDS) -> Iterator[dict[str, Member]]:
    edges = [each for each in EDGES if set(each) <= set(ids)]
    with meshed(folder, ids, edges, head=head_of(folder)) as members:
        linked(members.values())
        within(READY_TIMEOUT_S, lambda: all(map(is_ready, members.values())), "the level rises")
        yield members


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    with cluster(tmp_path_factory.mktemp("topology")) as found:
        yield found


def next_of(member: Member) -> int:
    """Return how many commands the cluster has had."""
    return int(facts(member)["next"])


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_declared_at_one_container_is_there_at_all_others(
    members: dict[str, Member], durable: bool
) -> None:
    exchange, queue = f"e-{durable}", f"q-{durable}"
    with basic_channel(members["a"].served) as channel:
        channel.exchange_declare(exchange, "topic", durable=durable)
        channel.queue_declare(queue, durable=durable)
        channel.queue_bind(queue, exchange, "a.#")
    for name in "bcs":
        with basic_channel(members[name].served) as channel:
            channel.exchange_declare(exchange, "topic", passive=True)
            channel.queue_declare(queue, durable=durable, passive=True)
            channel.exchange_declare(exchange, "topic", durable=durable)
            channel.queue_declare(queue, durable=durable)
            channel.basic_publish(exchange, f"a.{name}", name.encode())
    with basic_channel(members["c"].served) as channel:
        found = taken(channel, queue, 3, auto_ack=True)
        assert sorted(body for _, _, body in found) == [b"b", b"c", b"s"]
        channel.cancel()
        channel.queue_delete(queue)
        channel.exchange_delete(exchange)
    for name in "abs":
        assert there(members[name], exchange, queue) == set()


def test_a_declaration_that_differs_is_refused_everywhere(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as channel:
        channel.exchange_declare("same", "direct", durable=True)
        channel.queue_declare("same", durable=True, arguments={"x-max-length": 5})
    for name in IDS:
        with basic_channel(members[name].served) as channel:
            text = r"inequivalent arg 'type' for exchange 'same' in vhost '/'"
            with pytest.raises(ChannelClosedByBroker, match=text) as caught:
                channel.exchange_declare("same", "fanout", durable=True)
            assert caught.value.reply_code == 406
        with basic_channel(members[name].served) as channel:
            text = r"inequivalent arg 'x-max-length' for queue 'same' in vhost '/'"
            with pytest.raises(ChannelClosedByBroker, match=text) as caught:
                channel.queue_declare("same", durable=True, arguments={"x-max-length": 6})
            assert caught.value.reply_code == 406


def test_what_is_equal_costs_no_entry_of_the_log(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as channel:
        channel.exchange_declare("again", "direct")
        channel.queue_declare("again", durable=True)
        channel.queue_bind("again", "again", "k")
    before = next_of(members["a"])
    for name in "abcs":
        with basic_channel(members[name].served) as channel:
            for _ in range(500):
                channel.exchange_declare("again", "direct")
                channel.queue_declare("again", durable=True)
                channel.queue_bind("again", "again", "k")
    assert next_of(members["a"]) == before


def test_exclusive_queues_cost_no_entry_of_the_log(members: dict[str, Member]) -> None:
    before = next_of(members["a"])
    with basic_channel(members["s"].served) as channel:
        for number in range(1_000):
            channel.queue_declare(f"mine-{number}", exclusive=True)
        channel.queue_bind("mine-1", "amq.fanout")
        channel.basic_publish("amq.fanout", "", b"x")
        assert channel.basic_get("mine-1", auto_ack=True)[2] == b"x"
        generated = channel.queue_declare("").method.queue
        channel.queue_bind(generated, "amq.fanout")
    assert next_of(members["a"]) == before


def test_an_exchange_goes_with_its_last_binding_everywhere(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as channel:
        channel.exchange_declare("passing", "direct", auto_delete=True)
        channel.queue_declare("stays", durable=True)
        channel.queue_bind("stays", "passing", "k")
    with basic_channel(members["b"].served) as channel:
        channel.queue_unbind("stays", "passing", "k")
        with pytest.raises(ChannelClosedByBroker, match="404"):
            channel.exchange_declare("passing", passive=True)
    assert "exchange" not in there(members["s"], "passing")


@pytest.mark.parametrize("arguments", [{}, {"x-cogwork-home": "b"}], ids=["replicated", "homed"])
def test_a_queue_goes_everywhere_with_its_last_consumer_be_that_at_its_owner_or_not(
    members: dict[str, Member], arguments: dict[str, str]
) -> None:
    for at in IDS:
        with basic_channel(members["a"].served) as channel:
            channel.queue_declare("left", durable=True, auto_delete=True, arguments=arguments)
        with basic_channel(members[at].served) as channel:
            channel.basic_consume("left", lambda *_: None)
        for member in members.values():
            is_gone = partial(lacks_queue, member, "left")
            within(READY_TIMEOUT_S, is_gone, f"it goes at {member.id} with its consumer at {at}")


def test_a_queue_is_replicated_or_has_a_home_as_its_arguments_say(
    members: dict[str, Member],
) -> None:
    declared: dict[str, dict[str, Any]] = {
        "replicated": {"durable": True},
        "quorum": {"durable": True, "arguments": {"x-queue-type": "quorum"}},
        "classic": {"durable": True, "arguments": {"x-queue-type": "classic"}},
        "named": {"durable": True, "arguments": {"x-cogwork-home": "c"}},
    }
    with basic_channel(members["s"].served) as channel:
        for name, given in declared.items():
            channel.queue_declare(name, **given)
            channel.basic_publish("", name, name.encode(), pika.BasicProperties(delivery_mode=2))
    for name in declared:
        with basic_channel(members["b"].served) as channel:
            assert [body for _, _, body in taken(channel, name, 1, auto_ack=True)] == [
                name.encode()
            ]


def test_commands_see_and_make_the_same_exchanges_everywhere(members: dict[str, Member]) -> None:
    command("exchange", "declare", members["a"].url, "by-hand", "--type", "fanout")
    with basic_channel(members["c"].served) as channel:
        channel.exchange_declare("by-hand", "fanout", passive=True)
    assert "by-hand" in command("exchange", "list", members["s"].url)
    command("exchange", "delete", members["b"].url, "by-hand")
    assert "by-hand" not in command("exchange", "list", members["s"].url)


def test_a_container_that_comes_late_or_again_has_all_of_it(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        members["c"].kill()
        with basic_channel(members["a"].served) as channel:
            channel.exchange_declare("kept", "direct", durable=True)
            channel.exchange_declare("lost", "direct")
            channel.queue_declare("kept", durable=True)
            channel.queue_declare("lost")
            channel.queue_bind("kept", "kept", "k")
            channel.queue_bind("lost", "kept", "k")
            channel.queue_bind("lost", "amq.direct", "k")
        members["c"].start()
        within(READY_TIMEOUT_S, lambda: is_ready(members["c"]), "c has caught up")
        with basic_channel(members["c"].served) as channel:
            for name in ("kept", "lost"):
                channel.exchange_declare(name, passive=True)
                channel.queue_declare(name, passive=True)
        # A queue that is not durable goes with the life of its container, everywhere; an exchange
        # is for the clients of others as well.
        members["a"].kill()
        members["a"].start()
        within(READY_TIMEOUT_S, lambda: is_ready(members["a"]), "a has caught up")
        for name in "abc":
            is_gone = partial(lacks_queue, members[name], "lost")
            within(READY_TIMEOUT_S, is_gone, f"it goes at {name}")
            assert there(members[name], "lost") == {"exchange"}
            assert there(members[name], "kept") == BOTH
        for member in members.values():
            member.kill()
        for member in members.values():
            member.start()
        within(READY_TIMEOUT_S, lambda: all(map(is_ready, members.values())), "all are back")
        for name in "abc":
            assert there(members[name], "kept") == BOTH
        digests = {facts(each)["digest"] for each in members.values()}
        assert len(digests) == 1


def lacks_queue(member: Member, name: str) -> bool:
    rows = member.served.run("queue", "list", member.url, "--json")
    return f"queue/{name}" not in rows


def there(member: Member, exchange: str, queue: str = "") -> set[str]:
    """Return which of an exchange and a queue a container has."""
    found = set()
    for kind, name in (("exchange", exchange), ("queue", queue or exchange)):
        with basic_channel(member.served) as channel, contextlib.suppress(ChannelClosedByBroker):
            getattr(channel, f"{kind}_declare")(name, passive=True)
            found.add(kind)
    return found


def test_without_a_majority_it_is_said_soon_that_nothing_can_be_declared(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc") as members:
        with basic_channel(members["a"].served) as channel:
            channel.exchange_declare("there", "direct")
        members["b"].kill()
        members["c"].kill()
        with basic_channel(members["a"].served) as channel:
            channel.exchange_declare("there", "direct")  # nobody is asked
            channel.queue_declare("mine", exclusive=True)
            with pytest.raises(ChannelClosedByBroker, match="no majority of the cluster"):
                channel.exchange_declare("nowhere", passive=True)
        with (
            pytest.raises(AMQPError, match="the cluster does not answer"),
            basic_channel(members["a"].served) as channel,
        ):
            channel.exchange_declare("new", "direct")


def test_of_exclusive_consumers_at_all_containers_at_once_one_is_let_in(
    members: dict[str, Member],
) -> None:
    homed = {"x-queue-type": "classic"}
    with basic_channel(members["a"].served) as channel:
        channel.queue_declare("alone", durable=True, arguments=homed)
    for _ in range(ROUNDS):
        start = threading.Barrier(len(members))
        with ThreadPoolExecutor(len(members)) as pool:
            ends = threading.Barrier(len(members))
            asked = [pool.submit(_consumed, each, start, ends) for each in members.values()]
            codes = sorted(each.result() for each in asked)
        assert codes == [0, 403, 403, 403]
    with basic_channel(members["a"].served) as channel:
        channel.queue_delete("alone")


def _consumed(member: Member, start: threading.Barrier, ends: threading.Barrier) -> int:
    """Ask for a queue alone with all others; return what was answered, 0 for a consumer."""
    with basic_channel(member.served) as channel:
        start.wait()
        code = 0
        try:
            channel.basic_consume("alone", lambda *_: None, exclusive=True)
        except ChannelClosedByBroker as error:
            code = error.reply_code
        ends.wait()  # none has gone by then
        return code
