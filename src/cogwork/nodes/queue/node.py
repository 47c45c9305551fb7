"""The queue node: a store with policies.

Theory of operation. The compiled store takes messages, gives them to consumers on credit and keeps
the account of attempts by itself. The node decides what is not hot: who is a browser, which
attempts a consumer that came back may go on with, and where the dead go: to the dead-letter
address, with the reason, as an effect.
"""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import structs

from cogwork.amqp.errors import Condition
from cogwork.amqp.terminus import COPY
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.partitions import PartitionedInlet
from cogwork.dataplane.default_outcome import outcome_of
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.transport.credit import CreditingEnd
from cogwork.nodes.queue.dead_letter_sender import DeadLetterSender
from cogwork.nodes.queue.home import HomedPart
from cogwork.plugin.capabilities import (
    Governed,
    Partitioned,
    Removable,
    Replicated,
    Resumable,
)
from cogwork.plugin.dead_letters import dead_letter
from cogwork.plugin.effects import Detach, Send
from cogwork.plugin.node import Departure, Refused
from cogwork.plugin.queue_options import ACQUISITIONS_MAX, QueueOptions
from cogwork.plugin.resumption import resume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.plugin.effects import Effect
    from cogwork.plugin.journals import JournalHandle, Journals, ReplicaHandle
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("QueueNode",)

NOT_HELD = MappingProxyType(
    {"voters": [], "learners": [], "wanted": [], "wanted_learners": [], "moving": False}
)
"""Who holds a queue that is not replicated."""

AHEAD = frozenset({"auto", "disk"})
"""Durabilities where what is delivered again need not wait for the record that it went out."""

SHED_AT_ONCE = 8_192
"""Items that a lower bound leaves no room for: so many go before others get their turn."""

CUT_OFF_MIN = 64
"""Consumers that were cut off are kept below this number without a look at what they have."""


class QueueNode(Partitioned, Replicated, Governed, Resumable, Removable):
    """One queue.

    Attributes:
        address: Its address.
        options: Its policies, those of a policy of the virtual host among them.
        store: Its items.
        inlet: Where its messages are told apart by the container that takes them; None while it
            is not shared with others.
        replica: This container's part in a queue that is replicated or has a home; None for any
            other.
    """

    serves_prefix = False

    def __init__(self, context: NodeContext) -> None:
        """Start empty.

        Args:
            context: Its address, and options as in `QueueOptions`.

        Raises:
            Refused: An option is wrong.
        """
        self.address = context.address
        self._own_options = _options(context)
        self.options = structs.replace(self._own_options, **context.policy)
        self._is_shedding = False
        self._emit = context.emit
        self._cut_off: dict[str, int] = {}
        self._kept: dict[Subscription, int] = {}
        self._cut_off_max = CUT_OFF_MIN
        self._dead_letter = _dead_letter_of(self.address, self.options)
        self.store = _store(context, self.options)
        self.store.keeps_dead = self._dead_letter is not None
        self.store.handler = self
        self._journal: JournalHandle | None = None
        self._watch = None
        if context.audits is not None:
            self._watch = context.audits.watch(self.address, self.store, self.when_durable)
        self._dead_letter_sender: DeadLetterSender | None = None
        if self._dead_letter is not None:
            self._dead_letter_sender = DeadLetterSender(self, self._dead_letter, self._emit)
        self._entry = AddressEntry(context.core, context.address, CLOSEST_CODE)
        self._entry.add_outlet(self.store)
        self.store.inlet = self._entry
        self._entry.stored = self.store
        self.inlet: PartitionedInlet | None = None
        self._near_entry = self._entry
        self.replica: ReplicaHandle | None = None
        home = self.options.home
        if home is not None:
            self._lead_to(home, context.container_id)
        if home is not None and home != context.container_id:
            return  # its disk is the home's
        if context.journals is not None and self.options.durability == "memory":
            self.store.on_durable = partial(context.journals.note_in_memory, self.address)
        elif context.journals is not None:
            try:
                self._write_down(context.journals, context.options)
            except Refused:
                self.close()
                raise

    def _write_down(self, journals: Journals, given: Mapping[str, object]) -> None:
        facts = {**given, **structs.asdict(self._own_options)}
        if self.options.durability != "replicated":
            self._journal = journals.open(self.address, facts, self.store)
        else:
            inlet = self._divide(1, is_whole=True)
            self._journal = self.replica = journals.replicate(
                self.address, facts, self.store, inlet
            )

    # -- the contract of nodes

    def entry(self, _address: str) -> AddressEntry:
        """Return where the queue's messages come in."""
        return self._entry

    @property
    def is_partitioned(self) -> bool:
        """Whether each message has one container of a mesh that takes it, by what it says."""
        if self.replica is not None:
            return False
        return self.options.ordering != "none" or self.options.deduplication_window_s is not None

    @property
    def is_on_disk(self) -> bool:
        """Whether its items outlive the container."""
        return self._journal is not None

    @property
    def durability(self) -> str:
        """How its items are kept."""
        return self.options.durability

    @property
    def is_ordered(self) -> bool:
        """Whether each group-id goes to one consumer at a time."""
        return self.options.ordering != "none"

    @property
    def deduplication_window_s(self) -> float:
        """How long it remembers message-ids; 0 if it remembers none."""
        return self.options.deduplication_window_s or 0.0

    @property
    def in_doubt_timeout_s(self) -> float:
        """How long a vanished consumer may take to come back and settle."""
        return self.options.in_doubt_timeout_s

    def share(self) -> PartitionedInlet:
        """Share a partitioned queue with other containers; `set_owners` says who takes what."""
        return self._divide(self.options.partitions, is_whole=False)

    def _divide(self, count: int, *, is_whole: bool) -> PartitionedInlet:
        assert self.inlet is None
        self.inlet = PartitionedInlet(self.store, self._entry, count, is_whole)
        self._entry.stored = self.inlet
        self._entry.add_outlet(self.inlet)
        self._entry.remove_outlet(self.store)
        self._near_entry = AddressEntry(self._entry.core, self.address, CLOSEST_CODE)
        self._near_entry.stored = self.store
        self._near_entry.add_outlet(self.inlet.near)
        self.store.near_inlet = self._near_entry
        return self.inlet

    def settle_at(self, home: str) -> None:
        """Become a queue whose home this container is, with all that it has."""
        if self.inlet is not None:
            raise Refused(
                f"{self.address!r:.200} is divided among containers: it cannot get a home",
                Condition.PRECONDITION_FAILED,
            )
        self.options = structs.replace(self.options, home=home)
        self._own_options = structs.replace(self._own_options, home=home)
        self._lead_to(home, home)

    def _lead_to(self, home: str, own: str) -> None:
        """Have messages go to the home, which is this container or another one."""
        self.replica = HomedPart(own, home, self.address)
        inlet = self._divide(1, is_whole=True)
        if home == own:
            inlet.set_owners([self.store])
            self.store.feed_alike()

    def govern(self, options: Mapping[str, Any]) -> None:
        """Have some options hold in the place of the queue's own, until the next call."""
        wanted = structs.replace(self._own_options, **options)
        if wanted == self.options:
            return
        self.options = wanted
        self.store.policy = wanted.maximum_length_policy
        _pass_on(wanted, self.store)
        self.store.maximum_acquisitions = _acquisitions_of(self.address, wanted)
        self._lead_dead_to(_dead_letter_of(self.address, wanted))
        self._shed()
        self.store.reopen()

    def _lead_dead_to(self, target: str | None) -> None:
        """Have the dead go to another address from now on; None drops them.

        What has died already, and waits, goes where it can: to the last address that there was.
        """
        self._dead_letter = target
        self.store.keeps_dead = target is not None
        if target is None:
            return
        if self._dead_letter_sender is None:
            self._dead_letter_sender = DeadLetterSender(self, target, self._emit)
        self._dead_letter_sender.target = target

    def _shed(self) -> None:
        """Drop what there is no room for any more, if it is this container's to drop."""
        is_here = self.replica is None or self.replica.epoch is not None
        drops = is_here and self.options.maximum_length_policy == "drop-oldest"
        self._is_shedding = drops and self.store.shed(SHED_AT_ONCE)
        self.wants_ticks = bool(self._cut_off) or self._is_shedding

    def near_entry(self) -> AddressEntry:
        """Return where the messages come in that other containers send."""
        return self._near_entry

    def subscribe(self, subscription: Subscription) -> None:
        """Feed a consumer, or a browser; give back the attempts that it still has."""
        self.store.add_consumer(
            subscription.link,
            marks_received=subscription.marks_received,
            is_browser=subscription.source.distribution_mode == COPY,
            is_far=subscription.is_far,
        )
        if self._watch is not None:
            self._watch.consumer(self.store.serial_of(subscription.link), subscription)
        resume(self.store, subscription, subscription.unsettled)
        earlier = self._cut_off.pop(subscription.remote_consumer, None)
        if earlier is not None:
            self.store.take_back(earlier)
            self.wants_ticks = bool(self._cut_off) or self._is_shedding

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let a consumer go.

        What is out at one that has gone in order gets its source's default outcome at once, or when
        it is given up that its link is resumed: then this is called again. At any other it stays so
        until its link has ended.
        """
        kept = self._kept.pop(subscription, None)
        if kept is not None and subscription.departure is Departure.LOST:
            self.store.lose_kept(kept)
        elif kept is not None:
            self.store.end_kept(kept, *outcome_of(subscription.source))
        elif subscription.departure is Departure.KEPT:
            self._kept[subscription] = self.store.keep_consumer(subscription.link)
        elif subscription.departure is Departure.ORDERLY:
            self.store.end_consumer(subscription.link, *outcome_of(subscription.source))
        else:
            self._lose(subscription)

    def keeps(self, subscription: Subscription) -> bool:
        """Tell whether anything is out at a consumer whose link may be resumed."""
        return bool(self._kept.get(subscription))

    def _lose(self, subscription: Subscription) -> None:
        if subscription.is_cut_off and subscription.remote_consumer:
            self._cut_off[subscription.remote_consumer] = self.store.serial_of(subscription.link)
            self.wants_ticks = True
        self.store.remove_consumer(subscription.link, is_over=not subscription.is_cut_off)

    def tick(self, now_s: float) -> Iterable[Effect]:
        """Let items expire, ripen and cease to be in doubt."""
        self.store.tick(now_s)
        self._forget_cut_off()
        if self._is_shedding:
            self._shed()
        effects = self._dead_letters_of(self.store)
        if self._dead_letter_sender is not None:
            self._dead_letter_sender.tick(now_s)
        return effects

    def _forget_cut_off(self) -> None:
        """Forget consumers of other containers of which nothing is in doubt any more.

        They are looked through once they have doubled: where items stay in doubt, there are many.
        """
        if self._cut_off and not self.store.counts()["in-doubt"]:
            self._cut_off.clear()
        if len(self._cut_off) > self._cut_off_max:
            leased = self.store.leased_to()
            self._cut_off = {who: each for who, each in self._cut_off.items() if each in leased}
            self._cut_off_max = max(CUT_OFF_MIN, 2 * len(self._cut_off))
        self.wants_ticks = bool(self._cut_off) or self._is_shedding

    def status(self) -> Mapping[str, object]:
        """Count items by where they stand, and what has happened so far."""
        replica = self.replica
        return {
            **self.store.counts(),
            "misdirected": 0 if self.inlet is None else self.inlet.near.misdirected,
            "held": self._entry.held,
            "durability": self.options.durability,
            "owner": None if replica is None else replica.owner,
            "problem": self.problem,
            **(NOT_HELD if replica is None else replica.held()),
            "options": structs.asdict(self.options),
        }

    @property
    def problem(self) -> str | None:
        """Why the queue takes no messages; None where it does."""
        if self._journal is not None and self._journal.problem is not None:
            return self._journal.problem
        journal = self.store.journal
        if journal is not None and journal.is_failed:
            return "its disk has failed: it takes and gives nothing"
        if journal is not None and not journal.is_open:
            return "there is no room on its disk: it takes and gives nothing"
        if journal is not None and journal.is_low:
            return "its disk is full: it takes no messages until there is space"
        if self.store.is_held_up:
            return "those who made it have too much in their queues (queue_memory in [limits])"
        return self._fullness()

    def _fullness(self) -> str | None:
        """Say by what the queue is full; None where it is not, or drop what is in the way."""
        options = self.options
        lengths, sizes = options.maximum_length, options.maximum_bytes
        dead = self.store.counts()["leaving"]
        if self._journal is not None and lengths and dead >= lengths:
            return f"{dead} of its dead wait, as {self._dead_letter} does not accept them"
        if options.maximum_length_policy == "drop-oldest":
            return None
        count, octets = self.store.bounded
        if lengths and count >= lengths:
            return f"full: it has {count} of {lengths} items (maximum_length)"
        if sizes and octets >= sizes:
            return f"full: it has {octets} of {sizes} octets (maximum_bytes)"
        return None

    def delete(self) -> None:
        """Give up what is on disk of the queue, for good; `close` comes next."""
        if self._journal is not None:
            self._journal.delete()

    def end_links(self, why: str = "was deleted") -> None:
        """End all links: the queue is no more, perhaps at another container."""
        text = f"{self.address} {why}"
        links = [*(link for link, _, _ in self.store.holders()), *self._entry.sources]
        self._emit([Detach(link, Condition.RESOURCE_DELETED, text) for link in links])

    def end_credit(self) -> bool:
        """Have clients send no more; tell whether any could. What they have sent is taken."""
        sources = self._entry.sources
        ends = [end for end in sources if isinstance(end, CreditingEnd) and end.window]
        for end in ends:
            end.end_credit()
        return bool(ends)

    def close(self) -> None:
        """Give up the queue with its items; what is sent from now on is released."""
        if self.replica is not None:
            self.replica.close()
        if self.inlet is not None:
            self._near_entry.remove_outlet(self.inlet.near)
            self._near_entry.close()
            self._entry.remove_outlet(self.inlet)
            self.inlet.close()
        self._entry.remove_outlet(self.store)
        if self._watch is not None:
            self._watch.close()
        self.store.close()
        self._entry.close()

    # -- what the data plane hands over

    def on_batch(self, store: Store) -> None:
        """Send the dead to the dead-letter address."""
        self._emit(self._dead_letters_of(store))
        if self._dead_letter_sender is not None:
            self._dead_letter_sender.send()

    def _dead_letters_of(self, store: Store) -> list[Effect]:
        target = self._dead_letter
        dead = store.take_exceptions()
        if target is None:
            return []
        died_ms = time.time_ns() // 1_000_000
        return [
            Send(
                target,
                dead_letter(
                    message, self.address, reason, error, failures, died_ms=died_ms, target=target
                ),
            )
            for reason, message, error, failures in dead
        ]

    # -- for management

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""
        if self._journal is None:
            call(True)  # the contract's
        else:
            self._journal.when_durable(call)

    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        """Give up an item that was put aside and accepted elsewhere, once that is durable.

        Args:
            number: The item's.
            keep: Is called instead where it was not accepted after all.
        """
        self.when_durable(partial(self._end_move, number, keep))

    def _end_move(self, number: int, keep: Callable[[int], None], is_durable: bool) -> None:
        if is_durable:
            self.store.moved([number])
        else:
            keep(number)

    def purge(self) -> int:
        """Drop the items that no consumer holds; return how many."""
        return self.store.purge()


def _options(context: NodeContext) -> QueueOptions:
    """Return a queue's options, `auto` being `memory` where there is no disk.

    So it is for a temporary queue, which has a name of the container's own: it ends with who made
    it.
    """
    options = QueueOptions.of(context.options)
    if options.home is not None and options.durability == "replicated":
        raise Refused(
            f"{context.address!r:.200} is to have a home ({options.home}) and to be replicated: "
            "a replicated queue has none",
            Condition.INVALID_FIELD,
        )
    has_disk = context.journals is not None and context.journals.has_disk
    if options.durability == "auto" and (not has_disk or context.address.startswith("_")):
        return structs.replace(options, durability="memory")
    return options


def _dead_letter_of(address: str, options: QueueOptions) -> str | None:
    """Return where the dead of a queue go; None where they are dropped.

    A rule for many addresses may name one of them for all: that one's own dead would come back to
    it for ever, or wait for room that only they take.
    """
    target = options.dead_letter
    return None if target is None or target.removeprefix("/") == address else target


def _acquisitions_of(address: str, options: QueueOptions) -> int:
    """Say how often an item may be given back uncounted; 0 for no bound.

    Without a dead-letter address an item would be dropped then: nobody has that who did not ask.
    """
    if options.maximum_acquisitions is not None:
        return options.maximum_acquisitions
    return 0 if _dead_letter_of(address, options) is None else ACQUISITIONS_MAX


def _store(context: NodeContext, options: QueueOptions) -> Store:
    shard = context.shard
    if options.durability != "memory":
        if context.journals is None:
            raise Refused(
                f"{context.address!r:.200} is to be kept on disk, and there is none here",
                Condition.NOT_IMPLEMENTED,
            )
        shard = context.journals.shard
    if context.journals is not None and (options.durability == "replicated" or options.home):
        # Whoever comes from another container presents tags that begin as they do there.
        shard = context.journals.shard_of(context.address)
    store = Store(
        context.core,
        shard,
        priorities=options.priorities,
        delays=options.delay,
        is_ordered=options.ordering == "group-id",
        deduplication_window_s=options.deduplication_window_s or 0.0,
        deduplication_count=options.deduplication_count,
    )
    store.waits_for_all = options.durability != "auto"
    # What is replicated is numbered by whoever owns it, and parks need to know what went out.
    store.delivers_ahead = options.in_doubt == "redeliver" and options.durability in AHEAD
    store.policy = options.maximum_length_policy
    _pass_on(options, store)
    store.maximum_acquisitions = _acquisitions_of(context.address, options)
    store.redelivers_in_doubt = options.in_doubt == "redeliver"
    return store


def _pass_on(options: QueueOptions, store: Store) -> None:
    """Give the store the options that it heeds by itself: those that it has by the same name.

    What is None as an option is 0 there: no bound.
    """
    for name, value in structs.asdict(options).items():
        if hasattr(store, name):
            setattr(store, name, value or 0)
