"""What other containers want of topics, and what stands for each of them in the topics' tries.

Theory of operation. For each container that wants something of a topic there is one link, to the
null target, bound to its patterns like a subscriber. While it cannot be reached a `LostBranch`
stands there, so that who publishes learns that not all got it; once it is given up its subscribers
count as gone, and what they miss is noted for them (`subscriber_gaps`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.mesh.branch import Branch
from cogwork.dataplane.addresses.lost_branch import LostBranch
from cogwork.plugin.capabilities import Bindable
from cogwork.plugin.node import Refused
from cogwork.plugin.node_kinds import provides

if TYPE_CHECKING:
    from collections.abc import Set

    from cogwork.container.mesh.away import Away
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.mesh.subscriber_gaps import SubscriberGaps
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.terminus import Terminus

__all__ = ("Branches", "topic_of")


class Branches:
    """The branches of one virtual host's topics, by container."""

    def __init__(
        self, mesh: MeshService, vhost: VirtualHost, reach: Reach, gaps: SubscriberGaps
    ) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._reach = reach
        self._gaps = gaps
        self._by_container: dict[str, Branch] = {}

    def take(self, container: str, pattern: str) -> None:
        """Take note that a container wants something of a topic."""
        branch = self._branch_of(container)
        branch.patterns.add(pattern)
        if branch.outlet is None:
            self._connect(container, branch)
        else:
            self._bind(pattern, branch.outlet)

    def lose(self, container: str, pattern: str) -> bool:
        """Take note that it does no longer; tell whether it did."""
        branch = self._by_container.get(container)
        if branch is None or pattern not in branch.patterns:
            return False
        branch.patterns.discard(pattern)
        gone = self._gaps.take_back(container, pattern)
        for outlet in (branch.outlet, gone):
            if outlet is not None:
                self._unbind(pattern, outlet)
        if not branch.patterns:
            del self._by_container[container]
            branch.lost.close()
            if branch.way is not None:
                self._reach.leave(branch.way)
        return True

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use, if it is a branch's."""
        branch = self._by_container.get(way.container)
        if branch is not None and branch.way is way:
            branch.way = None
            self._stand(branch, branch.lost)

    def restore(self) -> None:
        """Open the links that should be open and are not."""
        for container, branch in self._by_container.items():
            if branch.way is None and self._mesh.way_to(container) is not None:
                self._connect(container, branch)

    def sweep(self, given_up: Set[str]) -> None:
        """Give up those of containers that have not been reached for long."""
        for container, branch in self._by_container.items():
            if branch.way is None and container in given_up and not branch.is_given_up:
                self._give_up(container, branch)

    def _branch_of(self, container: str) -> Branch:
        branch = self._by_container.get(container)
        if branch is None:
            # One for each: a pattern and an outlet stand in a trie once, whoever they are for.
            branch = self._by_container[container] = Branch(LostBranch(self._mesh.core))
        return branch

    def _bind(self, pattern: str, outlet: Terminus) -> None:
        node = topic_of(self._vhost, pattern)
        if node is not None:
            node.bind_far(node.subject_of(pattern), outlet)

    def _unbind(self, pattern: str, outlet: Terminus) -> None:
        node = topic_of(self._vhost, pattern)
        if node is not None:
            node.unbind_far(node.subject_of(pattern), outlet)

    def _connect(self, container: str, branch: Branch) -> None:
        """Open the way of a branch, or have the loss of it told."""
        if branch.is_given_up:
            branch.is_given_up = False
            for pattern in branch.patterns:
                gone = self._gaps.take_back(container, pattern)
                if gone is not None:
                    self._unbind(pattern, gone)
        branch.way = self._reach.open(container, None, None)
        self._stand(branch, branch.lost if branch.way is None else branch.way.end)

    def _stand(self, branch: Branch, outlet: Terminus | None) -> None:
        """Put an outlet in the place of the one that a branch has in the tries."""
        if branch.outlet is outlet:
            return
        for pattern in branch.patterns:
            if branch.outlet is not None:
                self._unbind(pattern, branch.outlet)
            if outlet is not None:
                self._bind(pattern, outlet)
        branch.outlet = outlet

    def _give_up(self, container: str, branch: Branch) -> None:
        """Let a container's subscribers count as gone, and note what they miss meanwhile."""
        self._stand(branch, None)
        branch.is_given_up = True
        for pattern in branch.patterns:
            self._bind(pattern, self._gaps.give_up(container, pattern))


def topic_of(vhost: VirtualHost, address: str) -> Bindable | None:
    """Find the node that serves a topic; None where the address is no topic's."""
    try:
        name, rule = vhost.rule_of(address)
        if not provides(rule.kind, Bindable):
            return None
        node = vhost.nodes.of(rule, name)
    except Refused:
        return None
    return node if isinstance(node, Bindable) else None
