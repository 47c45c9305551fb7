"""The nodes of a virtual host, by address, or by prefix for those that serve one.

Theory of operation. A node is made when somebody first names an address whose rule asks for it, and
stays until it is deleted or the container ends. Whether its address is in use does not matter: a
queue keeps its items, and a topic its subscribers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.container.vhost.captures import begin_capture, end_capture
from cogwork.container.vhost.node_table import NodeTable
from cogwork.container.vhost.policies import Policies
from cogwork.dataplane.queue.store import awake
from cogwork.plugin.capabilities import Capturing, Storing
from cogwork.plugin.effects import Report
from cogwork.plugin.node import Node, NodeContext, Refused
from cogwork.plugin.node_kinds import PluginError, factory_of, kinds, serves_prefix
from cogwork.plugins import PLUGIN_FAULTS
from cogwork.router.rules import UNAVAILABLE, Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.connections.node_shares import Makers, NodeShares
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.audits import Audits
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.journals import Journals
    from cogwork.plugin.node import Emit
    from cogwork.router.addresses import AddressRule

__all__ = ("HostedNodes", "demand_visible")

log = logging.getLogger("cogwork")

VIEWERS = ("management", "cbs")
"""The kinds of nodes that see the container."""


class HostedNodes(NodeTable):
    """Makes nodes, keeps them, and lets time pass at them.

    Attributes:
        rules: The rule that each was made by.
        policies: What queues have besides their rules.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        *,
        container_id: str,
        shard: int,
        emit: Emit,
        shares: NodeShares,
        journals: Journals | None = None,
        audits: Audits | None = None,
    ) -> None:
        """Start without nodes.

        Args:
            vhost: Whose they are.
            container_id: The container's.
            shard: Of this container's parts of queues.
            emit: Carries out what a node wants done.
            shares: How many may be made, and by whom.
            journals: For the queues on disk.
            audits: For whoever follows the queues.
        """
        super().__init__()
        self.rules: dict[str, AddressRule] = {}
        self.policies = Policies(self.storing, self.rules)
        self._sorted_at = 0
        self._faults: dict[str, str] = {}
        self._queues: list[tuple[str, Storing, Store]] = []
        self._others: list[tuple[str, Node, None]] = []
        self._vhost = vhost
        self._container_id = container_id
        self._shard = shard
        self._emit = emit
        self._shares = shares
        self._makers: dict[str, Makers] = {}
        self._journals = journals
        self._audits = audits
        self._subscriptions = _Subscriptions(vhost)

    def of(self, rule: AddressRule, address: str, makers: Makers = ()) -> Node:
        """Return the node behind an address; make it where it is new.

        Args:
            rule: The address's.
            address: As normalised.
            makers: For whom it is made, if it has to be.

        Raises:
            Refused: No node of the rule's kind is there, or a maker has too many.
        """
        is_prefix = rule.prefix is not None and serves_prefix(rule.kind)
        key = rule.prefix if is_prefix and rule.prefix is not None else address
        node = self.get(key)
        if node is None:
            self._shares.demand(rule.kind, makers)
            node = self._make(rule, key, is_prefix=is_prefix)
            if isinstance(node, Capturing):
                self._begin_capture(node)
            self[key] = node
            self.rules[key] = rule
            self._makers[key] = makers
            self._shares.take(rule.kind, makers)
        return node

    def makers_of(self, key: str) -> Makers:
        """Tell for whom a node was made."""
        return self._makers.get(key, ())

    def count_for(self, key: str, makers: Makers) -> None:
        """Count a node that is there for others than before."""
        kind = self.kind_at(key)
        self._shares.give_back(kind, self._makers[key])
        self._makers[key] = makers
        self._shares.take(kind, makers)

    def _begin_capture(self, node: Capturing) -> None:
        try:
            begin_capture(self._vhost, node)
        except Refused:
            node.close()  # it is about to be opened, and in a cluster declared for all
            raise

    def kind_at(self, address: str) -> str:
        """Tell the kind of the node at an address; `direct` where there is none."""
        return rule.kind if (rule := self.rules.get(address)) else "direct"

    def make(self, rule: AddressRule, address: str) -> Node:
        """Make a node for one address that is not kept here: whoever asked for it keeps it.

        Raises:
            Refused: No node of the rule's kind is there.
        """
        return self._make(rule, address, is_prefix=False)

    def _make(self, rule: AddressRule, key: str, *, is_prefix: bool) -> Node:
        if rule.kind == UNAVAILABLE:
            text = f"{key!r:.200} is unavailable: the configuration lets nobody use this address"
            raise Refused(text, Condition.NOT_FOUND)
        if rule.kind == "queue":
            demand_visible(key)
        try:
            factory = factory_of(rule.kind)
        except PluginError as error:
            raise Refused(str(error), Condition.INTERNAL_ERROR) from error
        if factory is None:
            raise Refused(
                f"{key!r} needs a node of kind {rule.kind!r}, which this container does not have: "
                f"there are {', '.join(kinds())}",
                Condition.NOT_IMPLEMENTED,
            )
        options = dict(rule.options)
        if rule.distribution is Distribution.MULTICAST:
            options.setdefault("accept", rule.accept.value)
        options.setdefault("unmatched", rule.unmatched.value)
        for name, value in (("ttl_s", rule.ttl_s), ("dead_letter", rule.dead_letter)):
            if value is not None:
                options.setdefault(name, value)
        context = NodeContext(
            core=self._vhost.core,
            address=key,
            is_prefix=is_prefix,
            options=options,
            policy=self.policies.options_for(key, rule),
            container_id=self._container_id,
            emit=self._emit,
            container=self._vhost.view if rule.kind in VIEWERS else None,
            shard=self._shard,
            reach=self._subscriptions,
            engines=self._vhost.engines,
            journals=self._journals,
            audits=self._audits,
        )
        try:
            return factory(context)
        except CogworkError:
            raise
        except PLUGIN_FAULTS as error:  # a plug-in's: it must not take the connection with it
            text = f"cannot create the node at {key!r} of kind {rule.kind!r}: {error!r:.300}"
            log.error("%s", text)
            raise Refused(text, Condition.INTERNAL_ERROR) from error

    def remove(self, key: str) -> None:
        """Give up a node."""
        node = self.get(key)
        if node is not None:
            del self[key]
            self._shares.give_back(self.kind_at(key), self._makers.pop(key, ()))
        self.rules.pop(key, None)
        self._faults.pop(key, None)
        if isinstance(node, Capturing):
            end_capture(self._vhost, node)
        if node is not None:
            node.close()

    def tick(self, now_s: float) -> Iterator[Effect]:
        """Let time pass at every node that needs it; yield what they want done."""
        if self._sorted_at != self.changes:
            self._sort()
        for key, node, _ in (*awake(self._queues), *self._others):
            if getattr(node, "is_idle", False) or getattr(node, "due_s", now_s) > now_s:
                continue
            if self.get(key) is not node:  # one before it has had it removed
                continue
            try:
                yield from node.tick(now_s)
            except PLUGIN_FAULTS as error:  # one node's fault must not stop the others' time
                yield from self._failed(key, error)
            else:
                if self._faults:
                    self._faults.pop(key, None)

    def _failed(self, key: str, error: BaseException) -> Iterator[Effect]:
        """Tell of a node's fault, once as long as it stays the same: the next tick is soon."""
        text = f"the node at {key!r} failed: {error!r:.300}"
        if self._faults.get(key) != text:
            self._faults[key] = text
            yield Report(text, is_error=True)

    def _sort(self) -> None:
        """Tell queues from others: there may be thousands, of which hardly one needs a tick."""
        self._sorted_at = self.changes
        self._queues = [(key, node, node.store) for key, node in self.storing.items()]
        self._others = [(*item, None) for item in self.items() if item[0] not in self.storing]


def demand_visible(name: str) -> None:
    """Refuse a name that would do something to a terminal: it stands there, and in logs.

    Raises:
        Refused: It holds characters that cannot be seen.
    """
    if not name.isprintable():
        raise Refused(
            f"{name!r:.200} holds characters that cannot be seen: no name has them",
            Condition.INVALID_FIELD,
        )


class _Subscriptions:
    """Passes on what nodes say their subscribers want, once there is somebody to tell."""

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost

    def subscribe(self, address: str) -> None:
        """Count a subscription."""
        if self._vhost.reach is not None:
            self._vhost.reach.subscribe(address)

    def unsubscribe(self, address: str) -> None:
        """Count one less."""
        if self._vhost.reach is not None:
            self._vhost.reach.unsubscribe(address)
