"""Topics: a message goes to everybody whose pattern matches its subject.

Theory of operation. One node serves every address below its prefix; what follows the prefix is the
subject, `flights.JFK.LAX`. A subscriber's source address may hold the wildcards of AMQP 0-10 in its
place, and more patterns can be bound to its link while it is attached. The patterns stand in one
trie. An address that is published to has an entry of its own, which matches anew only after the
trie has changed. A second trie holds this container's subscribers alone: what comes from another
container goes to them, and not out again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.dataplane.addresses.entry import MULTICAST_CODE, AddressEntry
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable
from cogwork.plugin.node import Refused
from cogwork.router.topics import PatternTooLongError, TopicTrie

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("TopicNode",)

PATTERNS_MAX = 100_000
"""Of one subscriber: some ten megabytes, where each is as long as patterns are."""


class TopicNode(Bindable):
    """Every topic below one prefix."""

    serves_prefix = True

    def __init__(self, context: NodeContext) -> None:
        """Start without a subscriber.

        Args:
            context: Its prefix and options: `accept` is `sent` or `settled`, `unmatched` `accept`
                or `release`.
        """
        self._core = context.core
        self._prefix = context.address
        self._awaits_settlement = context.options.get("accept") == "settled"
        self._releases = context.options.get("unmatched") == "release"
        self._trie = TopicTrie()
        self._near = TopicTrie()
        self._reach = context.reach
        self._bound: dict[Terminus, set[bytes]] = {}
        self.root = self._make_entry(f"{self._prefix}/", b"", self._trie)
        self.near_root = self._make_entry(f"{self._prefix}/", b"", self._near)

    def _make_entry(self, name: str, subject: bytes, trie: TopicTrie) -> AddressEntry:
        entry = AddressEntry(self._core, name, MULTICAST_CODE, trie, subject)
        entry.awaits_settlement = self._awaits_settlement
        entry.release_unmatched = self._releases
        return entry

    def subject_of(self, address: str) -> bytes:
        """Cut the prefix and its separator off an address."""
        return address[len(self._prefix) + 1 :].encode()

    def entry(self, address: str) -> AddressEntry:
        """Return a new entry for a topic that is published to.

        Raises:
            Refused: The address names no topic, or holds wildcards.
        """
        return self._make_entry(address, self._named(address), self._trie)

    def near_entry(self, address: str) -> AddressEntry:
        """Return a new entry for what other containers send to a topic.

        Raises:
            Refused: The address names no topic, or holds wildcards.
        """
        return self._make_entry(address, self._named(address), self._near)

    def _named(self, address: str) -> bytes:
        subject = self.subject_of(address)
        if not subject:
            raise Refused(f"{address!r} names no topic: {self._prefix}/SUBJECT is expected")
        if b"*" in subject.split(b".") or b"#" in subject.split(b"."):
            raise Refused(f"{address!r} holds wildcards, which only subscribers may use")
        return subject

    def subscribe(self, subscription: Subscription) -> None:
        """Bind the pattern of a subscriber's source; the bare prefix binds none yet.

        Raises:
            Refused: The pattern has too many words.
        """
        self.add_outlet(subscription.link)
        pattern = self.subject_of(subscription.address)
        try:
            if pattern:
                self.bind(subscription.link, pattern)
        except Refused:
            self.remove_outlet(subscription.link)
            raise

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscriber with all its patterns."""
        self.remove_outlet(subscription.link)

    def add_outlet(self, outlet: Terminus) -> None:
        """Let a subscriber bind patterns: a link, or another node."""
        self._bound.setdefault(outlet, set())

    def remove_outlet(self, outlet: Terminus) -> None:
        """Forget a subscriber with all its patterns."""
        for pattern in list(self._bound.get(outlet, ())):
            self.unbind(outlet, pattern)
        self._bound.pop(outlet, None)

    def bind(self, link: Terminus, pattern: bytes) -> bool:
        """Give a subscriber one more pattern; return whether it is new.

        Raises:
            Refused: It has too many words, or the subscriber too many patterns.
        """
        bound = self._bound[link]
        if len(bound) >= PATTERNS_MAX and pattern not in bound:
            raise Refused(
                f"{PATTERNS_MAX} patterns of a subscriber are the limit",
                Condition.RESOURCE_LIMIT_EXCEEDED,
            )
        try:
            is_new = self._trie.bind(pattern, link)
        except PatternTooLongError as error:
            raise Refused(str(error), Condition.INVALID_FIELD) from error
        bound.add(pattern)
        if is_new:
            self._near.bind(pattern, link)
            if self._reach is not None:
                self._reach.subscribe(f"{self._prefix}/{pattern.decode()}")
        return is_new

    def unbind(self, link: Terminus, pattern: bytes) -> bool:
        """Take a pattern from a subscriber; return whether it had it."""
        self._bound.get(link, set()).discard(pattern)
        was_bound = self._trie.unbind(pattern, link)
        if was_bound:
            self._near.unbind(pattern, link)
            if self._reach is not None:
                self._reach.unsubscribe(f"{self._prefix}/{pattern.decode()}")
        return was_bound

    def announce(self) -> None:
        """Tell other containers what was bound while there was nobody to tell: by captures."""
        if self._reach is not None:
            for patterns in self._bound.values():
                for pattern in patterns:
                    self._reach.subscribe(f"{self._prefix}/{pattern.decode()}")

    def bind_far(self, pattern: bytes, outlet: Terminus) -> None:
        """Let copies of what matches a pattern go to another container.

        One that is too long is nobody's subscription: whoever told it gets nothing by it.
        """
        with suppress(PatternTooLongError):
            self._trie.bind(pattern, outlet)

    def unbind_far(self, pattern: bytes, outlet: Terminus) -> None:
        """Take a pattern from a way to another container."""
        self._trie.unbind(pattern, outlet)

    def touch(self) -> None:
        """Have every entry look for its outlets again."""
        self._trie.touch()

    @property
    def subscribers(self) -> list[OutgoingLink]:
        """This container's subscribers."""
        return [each for each in self._bound if isinstance(each, OutgoingLink)]

    def patterns_of(self, link: Terminus) -> list[str]:
        """List a subscriber's patterns."""
        return sorted(pattern.decode() for pattern in self._bound.get(link, ()))

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Do nothing."""
        return ()

    def status(self) -> Mapping[str, object]:
        """Count subscribers, patterns, and what senders to the null target sent."""
        return {
            "subscribers": len(self._bound),
            "patterns": len(self._near),
            "relayed": self.root.received,
            "relayed_out": self.root.delivered,
            "relayed_unmatched": self.root.unmatched,
        }

    def close(self) -> None:
        """Give the root entries back."""
        self.root.close()
        self.near_root.close()
