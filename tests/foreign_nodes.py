"""Nodes that another project might have written: one for each optional capability.

They know `cogwork.plugin` and the compiled primitives, and none of the built-in nodes.
"""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from cogwork.amqp.types import Symbol
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, MULTICAST_CODE, AddressEntry
from cogwork.dataplane.addresses.partitions import PartitionedInlet
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.default_outcome import outcome_of
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.transport.credit import CreditingEnd
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin import MessageNode
from cogwork.plugin.capabilities import (
    Bindable,
    Capturing,
    Exchanging,
    Governed,
    Partitioned,
    Removable,
    Replicated,
    Resumable,
    Shareable,
    Storing,
    Streaming,
)
from cogwork.plugin.effects import Detach, Effect
from cogwork.plugin.engine.contract import Bounds
from cogwork.plugin.node import Departure, NodeContext, Refused, Subscription
from cogwork.plugin.resumption import resume
from cogwork.plugin.stream_options import StreamOptions
from cogwork.router.exchanges.binding import Routed
from cogwork.router.exchanges.graph import ExchangeGraph
from cogwork.router.topics import TopicTrie

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.engine.contract import Engine
    from cogwork.plugin.journals import ReplicaHandle

DELETED = "amqp:resource-deleted"


class LocalItems(Storing):
    """Keeps items in memory for the consumers of its container."""

    serves_prefix = False
    HAS_GROUPS: ClassVar[bool] = False

    def __init__(self, context: NodeContext) -> None:
        self.address = context.address
        self.emit = context.emit
        self.store = Store(context.core, context.shard, is_ordered=self.HAS_GROUPS)
        self.front = AddressEntry(context.core, context.address, CLOSEST_CODE)
        self.front.add_outlet(self.store)
        self.front.stored = self.store
        self.store.inlet = self.front
        self._watch = None
        if context.audits is not None:
            self._watch = context.audits.watch(
                self.address,
                self.store,
                lambda call: call(True),  # in memory all is said at once
            )

    @property
    def durability(self) -> str:
        return "memory"

    @property
    def is_on_disk(self) -> bool:
        return False

    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        self.store.moved([number])

    def entry(self, address: str) -> AddressEntry:
        return self.front

    def subscribe(self, subscription: Subscription) -> None:
        link = subscription.link
        self.store.add_consumer(
            link, marks_received=subscription.marks_received, is_far=subscription.is_far
        )
        if self._watch is not None:
            self._watch.consumer(self.store.serial_of(link), subscription)
        resume(self.store, subscription, subscription.unsettled)

    def unsubscribe(self, subscription: Subscription) -> None:
        if subscription.departure is Departure.ORDERLY:
            self.store.end_consumer(subscription.link, *outcome_of(subscription.source))
        else:
            self.store.remove_consumer(subscription.link)

    def tick(self, now_s: float) -> Iterable[Effect]:
        self.store.tick(now_s)
        return ()

    def status(self) -> Mapping[str, object]:
        return self.store.counts()

    def close(self) -> None:
        self.front.remove_outlet(self.store)
        if self._watch is not None:
            self._watch.close()
        self.store.close()
        self.front.close()


class ResumableItems(LocalItems, Resumable, Removable):
    """Keeps what a consumer holds until its link is resumed."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._kept: dict[Subscription, int] = {}

    @property
    def in_doubt_timeout_s(self) -> float:
        return 30.0

    def keeps(self, subscription: Subscription) -> bool:
        return bool(self._kept.get(subscription))

    def unsubscribe(self, subscription: Subscription) -> None:
        kept = self._kept.pop(subscription, None)
        if kept is not None:
            self.store.end_kept(kept)
        elif subscription.departure is Departure.KEPT:
            self._kept[subscription] = self.store.keep_consumer(subscription.link)
        else:
            super().unsubscribe(subscription)

    def end_links(self, why: str = "was deleted") -> None:
        links = [*(link for link, _, _ in self.store.holders()), *self.front.sources]
        self.emit([Detach(link, Symbol(DELETED), why) for link in links])

    def delete(self) -> None:
        self.store.clear()


class BoundedItems(LocalItems, Governed):
    """Has no more items than a policy allows."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.store.policy = "drop-oldest"
        self.govern(context.policy)

    def govern(self, options: Mapping[str, Any]) -> None:
        self.store.maximum_length = options.get("maximum_length", 0)


class SharedItems(LocalItems, Shareable):
    """Shares its items with the nodes of linked containers."""

    @property
    def is_ordered(self) -> bool:
        return self.HAS_GROUPS

    def near_entry(self) -> AddressEntry:
        return self.front

    def end_credit(self) -> bool:
        ends = [end for end in self.front.sources if isinstance(end, CreditingEnd) and end.window]
        for end in ends:
            end.end_credit()
        return bool(ends)


class PartitionedItems(SharedItems, Partitioned):
    """Has one of several containers take each message, by its group."""

    HAS_GROUPS = True
    PARTS: ClassVar[int] = 8

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._context = context
        self.inlet: PartitionedInlet | None = None
        self._near = self.front

    @property
    def is_partitioned(self) -> bool:
        return True

    @property
    def deduplication_window_s(self) -> float:
        return 0.0

    def share(self) -> PartitionedInlet:
        return self.divide(self.PARTS, is_whole=False)

    def divide(self, count: int, *, is_whole: bool) -> PartitionedInlet:
        inlet = self.inlet = PartitionedInlet(self.store, self.front, count, is_whole)
        self.front.stored = inlet
        self.front.add_outlet(inlet)
        self.front.remove_outlet(self.store)
        self._near = AddressEntry(self._context.core, self.address, CLOSEST_CODE)
        self._near.stored = self.store
        self._near.add_outlet(inlet.near)
        self.store.near_inlet = self._near
        return inlet

    def near_entry(self) -> AddressEntry:
        return self._near

    def close(self) -> None:
        if self.inlet is not None:
            self._near.remove_outlet(self.inlet.near)
            self._near.close()
            self.front.remove_outlet(self.inlet)
            self.inlet.close()
        super().close()


class OwnedItems(PartitionedItems, Replicated):
    """Belongs to the container that its option names: what others take goes there.

    Only the ownership is here; a real one would have copies of the items, too.
    """

    HAS_GROUPS = False

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        owner = str(context.options["owner"])
        is_owner = context.container_id in (owner, "loopback")
        self.replica: ReplicaHandle | None = cast(
            "Any",
            SimpleNamespace(
                epoch=1 if is_owner else None,
                home=None,
                owner=owner,
                wake=lambda: None,
                close=lambda: None,
            ),
        )
        inlet = self.divide(1, is_whole=True)
        inlet.set_owners([self.store if is_owner else None])

    @property
    def is_partitioned(self) -> bool:
        return False

    def settle_at(self, home: str) -> None:
        raise Refused(f"belongs to the container of its option, and not to {home!r}")

    def when_durable(self, call: Callable[[bool], object]) -> None:
        call(True)


class PatternCopies(Bindable):
    """Copies each message to whoever has a pattern for its subject."""

    serves_prefix = True

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._all, self._here = TopicTrie(), TopicTrie()
        self._bound: dict[Terminus, set[bytes]] = {}
        self.root = self._made(f"{context.address}/", b"", self._all)
        self.near_root = self._made(f"{context.address}/", b"", self._here)

    def _made(self, name: str, subject: bytes, trie: TopicTrie) -> AddressEntry:
        return AddressEntry(self._context.core, name, MULTICAST_CODE, trie, subject)

    def subject_of(self, address: str) -> bytes:
        return address[len(self._context.address) + 1 :].encode()

    def entry(self, address: str) -> AddressEntry:
        return self._made(address, self._named(address), self._all)

    def near_entry(self, address: str) -> AddressEntry:
        return self._made(address, self._named(address), self._here)

    def _named(self, address: str) -> bytes:
        if not (subject := self.subject_of(address)):
            raise Refused(f"{address!r} names nothing")
        return subject

    def subscribe(self, subscription: Subscription) -> None:
        self.add_outlet(subscription.link)
        self.bind(subscription.link, self.subject_of(subscription.address))

    def unsubscribe(self, subscription: Subscription) -> None:
        self.remove_outlet(subscription.link)

    def add_outlet(self, outlet: Terminus) -> None:
        self._bound[outlet] = set()

    def remove_outlet(self, outlet: Terminus) -> None:
        for pattern in list(self._bound.get(outlet, ())):
            self.unbind(outlet, pattern)
        self._bound.pop(outlet, None)

    def bind(self, link: Terminus, pattern: bytes) -> bool:
        self._bound[link].add(pattern)
        is_new = self._all.bind(pattern, link)
        self._here.bind(pattern, link)
        if is_new and self._context.reach is not None:
            self._context.reach.subscribe(f"{self._context.address}/{pattern.decode()}")
        return is_new

    def unbind(self, link: Terminus, pattern: bytes) -> bool:
        self._bound[link].discard(pattern)
        self._here.unbind(pattern, link)
        was_bound = self._all.unbind(pattern, link)
        if was_bound and self._context.reach is not None:
            self._context.reach.unsubscribe(f"{self._context.address}/{pattern.decode()}")
        return was_bound

    def bind_far(self, pattern: bytes, outlet: Terminus) -> None:
        self._all.bind(pattern, outlet)

    def unbind_far(self, pattern: bytes, outlet: Terminus) -> None:
        self._all.unbind(pattern, outlet)

    def touch(self) -> None:
        self._all.touch()

    def announce(self) -> None:
        if self._context.reach is not None:
            for pattern in {each for bound in self._bound.values() for each in bound}:
                self._context.reach.subscribe(f"{self._context.address}/{pattern.decode()}")

    @property
    def subscribers(self) -> Iterable[OutgoingLink]:
        return [each for each in self._bound if isinstance(each, OutgoingLink)]

    def patterns_of(self, link: Terminus) -> list[str]:
        return sorted(each.decode() for each in self._bound.get(link, ()))

    def tick(self, now_s: float) -> Iterable[Effect]:
        return ()

    def status(self) -> Mapping[str, object]:
        return {"subscribers": len(self._bound)}

    def close(self) -> None:
        self.root.close()
        self.near_root.close()


class TopicRecorder(MessageNode, Capturing):
    """Counts what is published to the topics that its options name."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.capture: Terminus = Port(context.core, self)
        self._topics = cast("Sequence[str]", context.options.get("topics", ()))

    @property
    def captured(self) -> Sequence[str]:
        return self._topics

    @property
    def is_everywhere(self) -> bool:
        return False

    def close(self) -> None:
        cast("Port", self.capture).close()
        super().close()


class LastWordExchanges(MessageNode, Exchanging):
    """Sends each message on to what its exchange leads to by an empty key."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.graph = ExchangeGraph()
        self.find_queue = lambda _name: None
        self._context = context
        self._entries: dict[str, AddressEntry] = {}

    def split(self, address: str) -> tuple[str, bytes | None]:
        name, slash, key = address.removeprefix(f"{self._context.address}/").partition("/")
        return name, key.encode() if slash else None

    def address(self, name: str) -> str:
        return f"{self._context.address}/{name}"

    def entry_of(self, name: str) -> AddressEntry:
        if name not in self._entries:
            self._entries[name] = AddressEntry(
                self._context.core, self.address(name), MULTICAST_CODE
            )
            self.changed()
        return self._entries[name]

    def changed(self) -> None:
        for name, entry in self._entries.items():
            for outlet in list(entry.outlets):
                entry.remove_outlet(outlet)
            for queue in self.graph.route(name, Routed((b"",))).queues:
                if (inlet := self.find_queue(queue)) is not None:
                    for outlet in inlet.outlets:
                        entry.add_outlet(outlet)

    def removed(self, name: str, entries: Iterable[AddressEntry]) -> None:
        self._entries.pop(name, None)
        for entry in entries:
            entry.close()

    def figures(self, name: str) -> Mapping[str, int]:
        return {"delivered": self._entries[name].delivered, "unroutable": 0}


class ForeignStream(MessageNode, Streaming):
    """Is a stream to its container: what it is asked to do, it notes."""

    START = Symbol("example:start")
    asked: ClassVar[list[str]] = []

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.address = context.address
        self.options = StreamOptions(engine="foreign", rest=MappingProxyType({}))
        self.engine: Engine | None = None
        self._senders = self.entry(context.address)
        self._receivers: list[OutgoingLink] = []
        self._is_broken = context.options.get("is_broken") is True

    def subscribe(self, subscription: Subscription) -> None:
        super().subscribe(subscription)
        self._receivers.append(subscription.link)

    def unsubscribe(self, subscription: Subscription) -> None:
        super().unsubscribe(subscription)
        self._receivers.remove(subscription.link)

    @property
    def name(self) -> str:
        return self.address

    @property
    def is_everywhere(self) -> bool:
        return False

    @property
    def state(self) -> str:
        return "failed" if self._is_broken else "open"

    @property
    def problem(self) -> str | None:
        return "it is broken" if self._is_broken else None

    @property
    def filters(self) -> Set[Symbol]:
        return {self.START}

    def demand_prospects(self) -> None:
        if self._is_broken:
            raise Refused("it is broken")

    def give_back(self) -> None:
        self.asked.append("give back")

    def end_links(self, why: str = "was deleted") -> None:
        self.asked.append(f"end links: {why}")
        ends = [*self._receivers, *self._senders.sources]
        self.context.emit([Detach(end, Symbol(DELETED), why) for end in ends])

    def delete(self) -> None:
        self.asked.append("delete")

    async def move(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        self.asked.append(f"move to {', '.join((*voters, *learners))}")

    async def trim(self, before: int) -> Bounds:
        self.asked.append(f"trim below {before}")
        return Bounds(first=before, next=before)
