"""A queue that several containers share: which of them takes a message."""

from __future__ import annotations

import time
import uuid
from typing import Any

import peers
import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Data, Properties, Sections, decode_sections, encode_sections
from cogwork.amqp.outcomes import Accepted, Released
from cogwork.amqp.types import ULong
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.partitions import COUNT_MAX, PartitionedInlet
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.transport.outgoing import OutgoingLink

COUNT = 8
QUIET_S = 5.0


def message(text: str, group: str | None = None, **properties: Any) -> bytes:
    said = Properties(group_id=group, **properties)
    return encode_sections(Sections(properties=said, body=Data([text.encode()])))


def texts(messages: list[bytes]) -> list[str]:
    bodies = [decode_sections(each).body for each in messages]
    return [body.parts[0].decode() for body in bodies if isinstance(body, Data)]


class Shared:
    """This container's part of a queue, and another container as a peer."""

    def __init__(self, **options: Any) -> None:
        self.core = Core()
        self.store = Store(self.core, **{"is_ordered": True, **options})
        self.entry = AddressEntry(self.core, "work/a", CLOSEST_CODE)
        self.near = AddressEntry(self.core, "work/a", CLOSEST_CODE)
        self.inlet = PartitionedInlet(self.store, self.entry, COUNT)
        self.entry.add_outlet(self.inlet)
        self.near.add_outlet(self.inlet.near)
        self.store.inlet, self.store.near_inlet = self.entry, self.near
        self.client, self.other = peers.Peer(self.core), peers.Peer(self.core)
        self.publisher = self.client.publisher(self.entry)
        self.near_publisher = self.other.publisher(self.near)
        self.way = OutgoingLink(self.other.session, 100)
        self.way.feeder = self.entry
        self.other.session.map_link(100, self.way)

    def own(self, *partitions: int, rest: OutgoingLink | None) -> None:
        """Give these partitions to the store, and all others to another container."""
        self.inlet.set_owners([self.store if at in partitions else rest for at in range(COUNT)])
        self.core.flush()

    def send(self, *messages: bytes) -> list[int]:
        first = self.client.send_run(self.publisher, list(messages))
        return list(range(first, first + len(messages)))

    def stored(self) -> list[str]:
        return texts([each for each, _ in self.store.peek(1000)])

    def passed_on(self) -> list[str]:
        return texts([each.message for each in self.other.take()])


@pytest.fixture
def shared() -> Shared:
    return Shared()


GROUPS = [f"group-{number}" for number in range(40)]


def partition_of(group: str) -> int:
    """Find a group's partition by where it goes."""
    for partition in range(COUNT):
        shared = Shared()
        shared.own(partition, rest=shared.way)
        shared.send(message("x", group))
        if shared.stored():
            return partition
    raise AssertionError("no partition")


def test_groups_go_to_the_owners_of_their_partitions(shared: Shared) -> None:
    shared.own(*range(COUNT // 2), rest=shared.way)
    shared.other.flow(shared.way, 100)
    shared.send(*(message(group, group) for group in GROUPS * 2))
    here, there = shared.stored(), shared.passed_on()
    assert sorted(here + there) == sorted(GROUPS * 2)
    assert here
    assert there
    assert not set(here) & set(there)
    assert {partition_of(group) for group in here[:3]} <= set(range(COUNT // 2))
    assert {partition_of(group) for group in there[:3]} <= set(range(COUNT // 2, COUNT))


def test_what_has_neither_group_nor_message_id_stays_here(shared: Shared) -> None:
    shared.own(rest=shared.way)
    shared.other.flow(shared.way, 100)
    shared.send(message("a"), message("b", message_id="one"), b"\x00\x53\x77\xa1\x01c")
    assert len(shared.stored()) == 2, "no deduplication: a message-id is not looked at"
    assert shared.store.depth == 3
    assert not shared.passed_on()


def test_every_encoding_of_a_message_id_has_one_partition() -> None:
    for message_id in (ULong(7), uuid.UUID(int=7), b"seven", "seven"):
        shared = Shared(is_ordered=False, deduplication_window_s=60.0)
        plain = message("x", message_id=message_id)
        shared.own(rest=shared.way)
        shared.other.flow(shared.way, 100)
        shared.send(plain, long_form(plain))
        assert shared.store.depth == 0
        at = next(p for p in range(COUNT) if own_takes(p, plain))
        assert own_takes(at, long_form(plain))


def own_takes(partition: int, data: bytes) -> bool:
    shared = Shared(is_ordered=False, deduplication_window_s=60.0)
    shared.own(partition, rest=shared.way)
    shared.send(data)
    return shared.store.depth == 1


def long_form(data: bytes) -> bytes:
    """Encode the message-id with as many octets as it may have."""
    start = data.index(b"\x00\x53\x73\xc0") + 6
    head, tail = data[:start], data[start:]
    if tail[0] == 0x53:
        tail, more = b"\x80" + tail[1:2].rjust(8, b"\0") + tail[2:], 7
    elif tail[0] in (0xA0, 0xA1):
        tail, more = bytes([tail[0] + 0x10, 0, 0, 0]) + tail[1:], 3
    else:
        more = 0
    return head[:-2] + bytes([head[-2] + more]) + head[-1:] + tail


def test_the_outcome_is_the_owners(shared: Shared) -> None:
    shared.own(rest=shared.way)
    shared.other.flow(shared.way, 100)
    (first,) = shared.send(message("a", "g"))
    (arrival,) = shared.other.take()
    assert first not in shared.client.outcomes()
    shared.other.settle(arrival)
    shared.core.flush()
    assert shared.client.outcomes()[first] == Accepted()


def test_an_owner_whose_link_goes_leaves_the_publisher_in_doubt(shared: Shared) -> None:
    shared.own(rest=shared.way)
    shared.other.flow(shared.way, 100)
    (first,) = shared.send(message("a", "g"))
    shared.way.detach()
    shared.core.flush()
    state = shared.client.outcomes()[first]
    assert getattr(state, "delivery_failed", False) is True


def test_what_has_to_wait_for_its_owner_goes_in_order_once_that_has_room(shared: Shared) -> None:
    shared.own(rest=None)
    shared.send(*(message(str(number), "g") for number in range(5)))
    assert shared.entry.held == 5
    shared.own(rest=shared.way)
    assert shared.entry.held == 5, "no credit yet"
    shared.other.flow(shared.way, 2)
    shared.send(message("5", "g"))
    assert shared.passed_on() == ["0", "1"]
    shared.other.flow(shared.way, 10)
    assert shared.passed_on() == ["2", "3", "4", "5"]
    assert shared.entry.held == 0


def test_what_waits_goes_into_the_store_once_that_owns_it(shared: Shared) -> None:
    shared.own(rest=None)
    shared.send(*(message(str(number), "g") for number in range(5)))
    shared.own(*range(COUNT), rest=None)
    assert sorted(shared.stored()) == ["0", "1", "2", "3", "4"]
    assert shared.client.outcomes() == dict.fromkeys(range(5), Accepted())


def test_another_containers_message_is_taken_only_by_the_owner(shared: Shared) -> None:
    mine = next(group for group in GROUPS if partition_of(group) == 0)
    foreign = next(group for group in GROUPS if partition_of(group) == 1)
    shared.own(0, rest=shared.way)
    shared.other.flow(shared.way, 100)
    run = [message(group, group) for group in (mine, foreign, mine, mine, foreign)]
    first = shared.other.send_run(shared.near_publisher, run)
    assert shared.stored() == [mine] * 3
    outcomes = shared.other.outcomes()
    expected = [Accepted(), Released(), Accepted(), Accepted(), Released()]
    assert [outcomes[first + at] for at in range(5)] == expected
    assert shared.inlet.near.misdirected == 2
    assert not shared.passed_on(), "nothing is sent on twice"
    shared.other.send(shared.near_publisher, message(foreign, foreign), settled=True)
    assert foreign in shared.stored(), "nobody would hear that it was given back"


def test_a_full_store_lets_other_containers_go_on_once_there_is_room(shared: Shared) -> None:
    shared.own(*range(COUNT), rest=None)
    shared.store.maximum_length = 1
    run = [message(text, "g") for text in "abc"]
    first = shared.other.send_run(shared.near_publisher, run)
    assert shared.near.held == 2
    assert list(shared.other.outcomes()) == [first]
    shared.store.maximum_length = 3
    shared.store.purge()
    shared.core.flush()
    assert shared.near.held == 0
    assert sorted(shared.stored()) == ["b", "c"]


def test_a_message_id_is_accepted_once_by_whichever_way_it_comes() -> None:
    shared = Shared(deduplication_window_s=60.0)
    shared.own(*range(COUNT), rest=None)
    (first,) = shared.send(message("here", message_id="one"))
    second = shared.other.send(shared.near_publisher, message("there", message_id="one"))
    assert shared.stored() == ["here"]
    assert shared.client.outcomes()[first] == Accepted()
    assert shared.other.outcomes()[second] == Accepted()


class TestHeld:
    def test_partitions_are_held_from_their_first_message_on(self, shared: Shared) -> None:
        shared.own(*range(COUNT), rest=None)
        assert shared.inlet.held(QUIET_S) == 0
        shared.send(message("x", GROUPS[0]), message("y", GROUPS[0]))
        assert shared.inlet.held(QUIET_S) == 1 << partition_of(GROUPS[0])

    def test_they_are_held_while_items_are_left_and_a_while_longer(self, shared: Shared) -> None:
        shared.own(*range(COUNT), rest=None)
        shared.send(message("x", "g"))
        held = shared.inlet.held(QUIET_S)
        shared.store.tick(shared.core.now + 100 * QUIET_S)
        assert shared.inlet.held(QUIET_S) == held
        shared.send(message("y", "g"))
        shared.store.purge()
        assert shared.inlet.held(QUIET_S) == held
        shared.store.tick(shared.core.now + 200 * QUIET_S)
        assert shared.inlet.held(QUIET_S) == 0
        shared.send(message("later", "other"))
        assert bin(shared.inlet.held(QUIET_S)).count("1") == 1, "what was let go of stays so"

    def test_where_only_ids_are_remembered_items_hold_nothing(self) -> None:
        shared = Shared(is_ordered=False, deduplication_window_s=60.0)
        shared.own(*range(COUNT), rest=None)
        shared.send(message("x", message_id="one"))
        assert shared.inlet.held(60.0)
        shared.store.tick(shared.core.now + 61.0)
        assert shared.store.depth == 1
        assert shared.inlet.held(60.0) == 0

    def test_what_others_own_is_not_held(self, shared: Shared) -> None:
        shared.own(rest=shared.way)
        shared.other.flow(shared.way, 100)
        shared.send(message("x", "g"))
        assert shared.inlet.held(QUIET_S) == 0


@pytest.mark.parametrize("count", [0, COUNT_MAX + 1])
def test_the_number_of_partitions_is_bounded(count: int) -> None:
    core = Core()
    entry = AddressEntry(core, "work/a", CLOSEST_CODE)
    with pytest.raises(ValueError, match="partitions"):
        PartitionedInlet(Store(core, is_ordered=True), entry, count)


def test_one_that_is_closed_takes_nothing(shared: Shared) -> None:
    shared.own(*range(COUNT), rest=None)
    shared.entry.remove_outlet(shared.inlet)
    shared.inlet.close()
    (first,) = shared.send(message("x", "g"))
    assert shared.store.depth == 0
    assert shared.client.outcomes()[first] == Released()


def test_what_is_held_on_disk_is_held_again_after_a_restart() -> None:
    queue = KeptQueue(is_ordered=True)

    def shared(kept: KeptQueue) -> PartitionedInlet:
        inlet = PartitionedInlet(kept.store, kept.entry, COUNT)
        kept.entry.add_outlet(inlet)
        kept.entry.remove_outlet(kept.store)
        inlet.set_owners([kept.store] * COUNT)
        return inlet

    inlet = shared(queue)
    queue.send("a", properties=Properties(group_id="one"))
    queue.send("b", properties=Properties(group_id="two"))
    held = inlet.held(QUIET_S)
    assert held.bit_count() == 2
    queue.commit()
    again = queue.checkpointed().restarted()
    inlet = shared(again)
    assert inlet.held(QUIET_S) == held
    again.store.purge()
    again.store.tick(time.monotonic() + 2 * QUIET_S)
    assert inlet.held(QUIET_S) == 0
    assert shared(again.restarted()).held(QUIET_S) == 0
