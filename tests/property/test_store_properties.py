"""The store against a dumb model: nothing lost, nothing confirmed twice, order kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import peers
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from cogwork.amqp.message import (
    Data,
    Header,
    Properties,
    Sections,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.outcomes import Modified, Received, Rejected, Released
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import KEEP_CODE, SETTLE_CODE, STALE_CODE, UNKNOWN_CODE, Store

if TYPE_CHECKING:
    from cogwork.dataplane.transport.outgoing import OutgoingLink

RECEIVED = Received(section_number=0, section_offset=0)
DOUBT_S = 30.0


@dataclass
class Item:
    """What the model knows of a message."""

    name: int
    priority: int
    group: str
    failures: int = 0
    attempts: int = 0
    number: int | None = None


@dataclass
class Worker:
    """A consumer, and what is out at it."""

    peer: peers.Peer
    link: OutgoingLink
    marks: bool
    out: dict[int, peers.Arrival] = field(default_factory=dict)
    received: set[int] = field(default_factory=set)
    resumed: dict[int, int] = field(default_factory=dict)
    came_back: set[int] = field(default_factory=set)
    excluded: set[int] = field(default_factory=set)


class StoreMachine(RuleBasedStateMachine):
    """Publishers, workers that fail in every way, and time."""

    @initialize(
        is_ordered=st.booleans(),
        redelivers=st.booleans(),
        keeps_dead=st.booleans(),
        delivery_count=st.sampled_from([0, 1, 3]),
    )
    def start(
        self, is_ordered: bool, redelivers: bool, keeps_dead: bool, delivery_count: int
    ) -> None:
        self.core = Core()
        self.store = Store(self.core, 1, is_ordered=is_ordered)
        self.store.redelivers_in_doubt = redelivers
        self.store.keeps_dead = keeps_dead
        self.store.maximum_delivery_count = delivery_count
        self.store.in_doubt_timeout_s = DOUBT_S
        self.store.handler = self
        self.is_ordered = is_ordered
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.publisher = peers.Peer(self.core)
        self.link = self.publisher.publisher(self.entry, 10_000)
        self.now_s = time.monotonic()
        self.workers: list[Worker] = []
        self.left: list[tuple[int, Worker]] = []
        self.items: dict[int, Item] = {}
        self.in_doubt: dict[int, int] = {}
        self.left_in_doubt: set[int] = set()
        self.confirmed: set[int] = set()
        self.gone: set[int] = set()
        self.dead: list[int] = []
        self.first_attempts: dict[tuple[int, str], list[int]] = {}
        self.sent = 0

    # -- what happens

    @rule(
        priority=st.sampled_from([4, 4, 4, 9, 0]),
        group=st.sampled_from("ab"),
        count=st.integers(1, 4),
    )
    def publish(self, priority: int, group: str, count: int) -> None:
        for _ in range(count):
            name = self.sent
            self.sent += 1
            self.items[name] = Item(name, priority, group)
            self.publisher.send(
                self.link,
                encode_sections(
                    Sections(
                        header=Header(priority=priority),
                        properties=Properties(group_id=group),
                        body=Data([b"%d" % name]),
                    )
                ),
            )
        self.collect()

    @precondition(lambda self: len(self.workers) < 4)
    @rule(marks=st.booleans(), credit=st.integers(0, 5))
    def attach(self, marks: bool, credit: int) -> None:
        peer = peers.Peer(self.core)
        self.workers.append(
            Worker(peer, peer.consumer(self.store, credit, marks_received=marks), marks)
        )
        self.collect()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), credit=st.integers(0, 6), drain=st.booleans())
    def flow(self, data: st.DataObject, credit: int, drain: bool) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        worker.peer.flow(worker.link, credit, drain=drain)
        self.collect()

    def some_out(self, data: st.DataObject) -> tuple[Worker, Item, peers.Arrival] | None:
        held = [(w, name) for w in self.workers for name in sorted(w.out)]
        if not held:
            return None
        worker, name = data.draw(st.sampled_from(held))
        return worker, self.items[name], worker.out[name]

    @rule(data=st.data(), settled=st.booleans())
    def accept(self, data: st.DataObject, settled: bool) -> None:
        if found := self.some_out(data):
            worker, item, arrival = found
            del worker.out[item.name]
            self.confirm(item)
            worker.peer.settle(arrival, settled=settled)
            if not settled:
                assert worker.peer.dispositions[-1].first == arrival.delivery_id
            self.collect()

    @rule(data=st.data())
    def mark_received(self, data: st.DataObject) -> None:
        if found := self.some_out(data):
            worker, item, arrival = found
            worker.received.add(item.name)
            worker.peer.settle(arrival, RECEIVED, settled=False)
            self.collect()

    @rule(data=st.data(), failed=st.booleans(), excluded=st.booleans())
    def give_back(self, data: st.DataObject, failed: bool, excluded: bool) -> None:
        if found := self.some_out(data):
            worker, item, arrival = found
            del worker.out[item.name]
            if excluded:
                worker.excluded.add(item.name)
            if failed:
                self.fail(item)
                outcome: Modified | Released = Modified(
                    delivery_failed=True, undeliverable_here=excluded
                )
            else:
                outcome = Modified(undeliverable_here=True) if excluded else Released()
            worker.peer.settle(arrival, outcome)
            self.collect()

    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        if found := self.some_out(data):
            worker, item, arrival = found
            del worker.out[item.name]
            self.dead_letter(item)
            worker.peer.settle(arrival, Rejected())
            self.collect()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), only_link=st.booleans())
    def vanish(self, data: st.DataObject, only_link: bool) -> None:
        self.lose(data.draw(st.sampled_from(self.workers)), only_link)

    def lose(self, worker: Worker, only_link: bool) -> None:
        self.workers.remove(worker)
        self.doubt(worker)
        if only_link:
            worker.peer.detach(self.store, worker.link)
        else:
            worker.peer.vanish(self.store)
        self.collect()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def end_in_order(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        self.workers.remove(worker)
        self.give_up(worker)
        worker.peer.end(self.store, worker.link)
        self.collect()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        self.workers.remove(worker)
        serial = worker.peer.leave(self.store, worker.link)
        assert bool(serial) == bool(worker.out or worker.resumed)
        if serial:
            self.left.append((serial, worker))
        self.collect()

    @precondition(lambda self: self.left)
    @rule(data=st.data(), is_lost=st.booleans())
    def wait_no_longer(self, data: st.DataObject, is_lost: bool) -> None:
        serial, worker = data.draw(st.sampled_from(self.left))
        self.left.remove((serial, worker))
        if is_lost:
            self.doubt(worker)
            self.store.lose_kept(serial)
        else:
            self.store.end_kept(serial)
            self.give_up(worker)
        self.core.flush()
        self.collect()

    @rule(data=st.data(), credit=st.integers(0, 3))
    def come_back(self, data: st.DataObject, credit: int) -> None:
        peer = peers.Peer(self.core)
        worker = Worker(peer, peer.consumer(self.store, 0, marks_received=True), marks=True)
        self.workers.append(worker)
        known = [item for item in self.items.values() if item.number is not None]
        chosen = data.draw(st.lists(st.sampled_from(known), unique_by=id)) if known else []
        tags = [
            b"\x00\x00\x00\x01%b%b"
            % ((item.number or 0).to_bytes(8, "big"), item.attempts.to_bytes(4, "big"))
            for item in chosen
        ]
        for item, answer in zip(chosen, self.store.resume(worker.link, tags), strict=True):
            holders = [w for w in self.holding if item.name in w.out or item.name in w.resumed]
            is_open = item.name in self.in_doubt or bool(holders)
            if is_open:
                assert answer == KEEP_CODE
            else:
                assert answer in self.answers(item, KEEP_CODE)
            if answer == KEEP_CODE:
                self.in_doubt.pop(item.name, None)
                for holder in holders:
                    holder.out.pop(item.name, None)
                    holder.resumed.pop(item.name, None)
                worker.resumed[item.name] = item.attempts
                worker.came_back.add(item.name)
        peer.flow(worker.link, credit)
        self.collect()

    @rule(data=st.data(), back=st.integers(0, 1))
    def claim(self, data: st.DataObject, back: int) -> None:
        known = [item for item in self.items.values() if item.number is not None]
        if not known:
            return
        item = data.draw(st.sampled_from(known))
        attempt = item.attempts - back
        holders = [w for w in self.holding if item.name in w.out or item.name in w.resumed]
        is_open = (bool(holders) or item.name in self.in_doubt) and back == 0
        assert item.number is not None
        answer = self.store.claim(item.number, attempt)
        if back:
            assert answer in self.answers_before(item)
        elif not is_open:
            assert answer in self.answers(item, SETTLE_CODE)
        else:
            assert answer == SETTLE_CODE
        if answer == SETTLE_CODE and item.name not in self.confirmed:
            for holder in holders:
                holder.out.pop(item.name, None)
                holder.resumed.pop(item.name, None)
            self.in_doubt.pop(item.name, None)
            self.confirm(item)
        self.core.flush()
        self.collect()

    def answers(self, item: Item, code: int) -> set[int]:
        """What may be said of an item's newest attempt that is not open.

        It goes on, by that code, where nobody has the item: unless others of its group come first.
        """
        if item.name in self.confirmed:
            return {SETTLE_CODE, UNKNOWN_CODE}
        if item.name in self.gone:
            return {UNKNOWN_CODE}
        return {code, UNKNOWN_CODE} if self.is_ordered else {code}

    def answers_before(self, item: Item) -> set[int]:
        """What may be said of the attempt before an item's newest: stale only with proof."""
        if item.name in self.confirmed:
            return {STALE_CODE, UNKNOWN_CODE}
        return {UNKNOWN_CODE} if item.name in self.gone else {STALE_CODE}

    @rule(seconds=st.sampled_from([0.0, DOUBT_S + 1]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        before = self.store.counts() if self.store.is_idle else None
        self.store.tick(self.now_s)
        assert before in (None, self.store.counts()), "an idle store has nothing to do"
        if seconds > DOUBT_S:
            for name in list(self.in_doubt):
                if self.store.redelivers_in_doubt:
                    del self.in_doubt[name]
                    self.fail(self.items[name])
                elif self.store.keeps_dead:
                    del self.in_doubt[name]
                    self.dead_letter(self.items[name])
                else:
                    self.left_in_doubt.add(name)
        self.core.flush()
        self.collect()

    # -- the model

    @property
    def holding(self) -> list[Worker]:
        """All that have items: those that are there, and those that may resume their links."""
        return [*self.workers, *(worker for _, worker in self.left)]

    def doubt(self, worker: Worker) -> None:
        """Have in doubt what a worker had that was lost."""
        for name, arrival in worker.out.items():
            if not worker.marks or name in worker.received:
                self.in_doubt[name] = arrival.parts.attempt
        self.in_doubt.update(worker.resumed)

    def give_up(self, worker: Worker) -> None:
        """Have what a worker had that left in order back, or abandoned."""
        for name in [*worker.out, *worker.resumed]:
            if not worker.marks or (name in worker.out and name not in worker.received):
                continue
            if self.store.redelivers_in_doubt:
                self.fail(self.items[name])
            elif self.store.keeps_dead:
                self.dead_letter(self.items[name])
            else:
                self.in_doubt[name] = self.items[name].attempts
                self.left_in_doubt.add(name)

    def confirm(self, item: Item) -> None:
        assert item.name not in self.confirmed | self.gone
        self.confirmed.add(item.name)

    def dead_letter(self, item: Item) -> None:
        assert item.name not in self.confirmed | self.gone
        self.gone.add(item.name)

    def fail(self, item: Item) -> None:
        item.failures += 1
        if self.store.maximum_delivery_count and item.failures >= self.store.maximum_delivery_count:
            self.dead_letter(item)

    def on_batch(self, store: Store) -> None:
        for _, message, _, failures in store.take_exceptions():
            name = name_of(message)
            assert failures == self.items[name].failures
            self.dead.append(name)

    def collect(self) -> None:
        for worker in self.workers:
            for arrival in worker.peer.take():
                self.arrive(worker, arrival)

    def arrive(self, worker: Worker, arrival: peers.Arrival) -> None:
        name = name_of(arrival.message)
        item = self.items[name]
        tag = arrival.parts
        if name in worker.resumed:
            assert tag.attempt == worker.resumed.pop(name) == item.attempts
            worker.out[name] = arrival
            worker.received.add(name)
            return
        assert name not in self.confirmed | self.gone | self.in_doubt.keys()
        assert not any(name in each.out or name in each.resumed for each in self.holding)
        assert name not in worker.excluded
        assert tag.shard == 1
        assert tag.attempt == item.attempts + 1
        assert item.number in (None, tag.item)
        item.attempts, item.number = tag.attempt, tag.item
        header = decode_sections(arrival.message).header or Header()
        assert (header.priority, header.delivery_count) == (item.priority, item.failures)
        if tag.attempt == 1:
            kind = (0, item.group) if self.is_ordered else (id(worker), f"{item.priority}")
            self.first_attempts.setdefault(kind, []).append(name)
        worker.out[name] = arrival
        self.left_in_doubt.discard(name)
        worker.received.discard(name)
        worker.came_back.discard(name)

    # -- what always holds

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "store"):
            return
        counts = self.store.counts()
        alive = self.items.keys() - self.confirmed - self.gone
        assert counts["depth"] == len(alive)
        assert counts["in"] == self.sent
        assert counts["accepted"] == len(self.confirmed)
        out = sum(len(each.out) + len(each.resumed) for each in self.holding)
        assert (counts["unsettled"], counts["in-doubt"]) == (out, len(self.in_doubt))
        assert counts["ready"] + counts["waiting-for-group"] == len(alive) - out - len(
            self.in_doubt
        )
        if self.store.keeps_dead:
            assert sorted(self.dead) == sorted(self.gone)

    @invariant()
    def first_attempts_are_in_order(self) -> None:
        for names in getattr(self, "first_attempts", {}).values():
            assert names == sorted(names)

    @invariant()
    def a_group_is_in_one_place(self) -> None:
        if not getattr(self, "is_ordered", False):
            return
        for group in "ab":
            places = [
                id(worker)
                for worker in self.holding
                if any(self.items[n].group == group for n in worker.out.keys() - worker.came_back)
            ]
            assert len(places) <= 1

    @invariant()
    def no_consumer_with_credit_waits_for_what_it_could_have(self) -> None:
        if not hasattr(self, "store") or self.is_ordered:
            return
        ready = {name_of(m) for m, facts in self.store.peek(1000) if facts["state"] == "ready"}
        for worker in self.workers:
            assert worker.link.credit == 0 or ready <= worker.excluded

    @invariant()
    def no_group_stands_still(self) -> None:
        """A group of which nothing is out, nor in doubt for a while yet, goes on."""
        if not getattr(self, "is_ordered", False):
            return
        held = {name for each in self.holding for name in (*each.out, *each.resumed)}
        alive = self.items.keys() - self.confirmed - self.gone
        for group in "ab":
            members = {name for name in alive if self.items[name].group == group}
            waiting = members - held - self.in_doubt.keys()
            if not waiting or members & (held | self.in_doubt.keys()) - self.left_in_doubt:
                continue
            for worker in self.workers:
                assert worker.link.credit == 0 or waiting & worker.excluded

    def teardown(self) -> None:
        """In the end every item is confirmed, dead, can be had, or can be claimed."""
        if not hasattr(self, "store"):
            return
        for worker in self.workers:
            worker.peer.vanish(self.store)
        for serial, _ in self.left:
            self.store.lose_kept(serial)
        may_strand = not (self.store.redelivers_in_doubt or self.store.keeps_dead)
        self.store.redelivers_in_doubt = True
        self.store.maximum_delivery_count = 0
        last = peers.Peer(self.core)
        last.consumer(self.store, 100_000)
        self.now_s += 2 * DOUBT_S
        self.store.tick(self.now_s)
        self.core.flush()
        left = {name_of(arrival.message) for arrival in last.take()}
        stranded = self.items.keys() - self.confirmed - self.gone - left
        assert stranded <= (self.in_doubt.keys() if may_strand else set())
        for item in (self.items[name] for name in stranded):
            assert item.number is not None
            assert self.store.claim(item.number, item.attempts) == SETTLE_CODE
        assert left.isdisjoint(self.confirmed | self.gone)
        self.store.close()


def name_of(message: bytes) -> int:
    body = decode_sections(message).body
    assert isinstance(body, Data)
    return int(body.parts[0])


def test_a_group_goes_on_after_one_of_it_was_left_in_doubt() -> None:
    """A history that was found at random: the second of the group was given to nobody."""
    state = StoreMachine()
    state.start(is_ordered=True, redelivers=False, keeps_dead=False, delivery_count=0)
    state.attach(marks=False, credit=1)
    state.publish(priority=4, group="b", count=1)
    state.lose(state.workers[0], only_link=False)
    state.wait(DOUBT_S + 1)
    state.wait(0.0)
    state.publish(priority=4, group="b", count=1)
    state.attach(marks=False, credit=1)
    state.no_group_stands_still()
    state.nothing_is_lost()
    state.teardown()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=settings().max_examples,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
