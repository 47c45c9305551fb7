"""Queues that are declared while the container runs.

Theory of operation. A declared queue has a rule of its own, which is before the address table's:
what its declaration leaves open is as the table says for its address. To declare it again with the
same options changes nothing; with others, it is refused, as a queue that holds items keeps the
options it was made with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from cogwork.amqp.errors import Condition
from cogwork.config.declared_options import check_options
from cogwork.container.vhost.managed_queue import ManagedQueue
from cogwork.plugin.capabilities import Removable, Storing, replica_of
from cogwork.plugin.management import BAD_REQUEST, CONFLICT, NOT_FOUND, TOO_MANY, ManagementError
from cogwork.plugin.node import Refused
from cogwork.plugin.queue_options import QueueOptions
from cogwork.router.addresses import AddressRule, AddressRuleError, Distribution
from cogwork.router.patterns import is_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Declarations", "error_of")

QUEUE = "queue"


class Declarations:
    """Makes and deletes the queues of one virtual host."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Start with none.

        Args:
            vhost: Where the queues are.
        """
        self._vhost = vhost

    def has(self, address: str) -> bool:
        """Return whether a queue is there."""
        return isinstance(self._vhost.nodes.get(address.removeprefix("/")), Storing)

    def queue(self, address: str) -> ManagedQueue | None:
        """Find a queue; None where there is none yet.

        Raises:
            ManagementError: Its items are in another container.
        """
        name = address.removeprefix("/")
        node = self._vhost.nodes.get(name)
        if not isinstance(node, Storing):
            return None
        replica = replica_of(node)
        if replica is not None and replica.epoch is None:
            owner = replica.owner
            where = (
                "nobody owns it now" if owner is None else f"container {owner} owns it: ask there"
            )
            raise ManagementError(CONFLICT, f"{name!r:.200} is replicated, and {where}")
        return ManagedQueue(node)

    async def relocate(self, address: str, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold a replicated queue; return before they do.

        Raises:
            ConsensusError: That cannot be done, or not now.
            ManagementError: There is no such queue.
            ValueError: These cannot hold it, or it is not replicated.
        """
        name = address.removeprefix("/")
        node = self._vhost.nodes.get(name)
        if not isinstance(node, Storing):
            raise ManagementError(NOT_FOUND, f"there is no queue {name!r:.200}")
        replica = replica_of(node)
        if replica is None:
            raise ValueError(f"{name!r:.200} is not replicated: see its durability")
        await replica.relocate(voters, learners)

    def declare(self, address: str, options: Mapping[str, object], makers: Makers = ()) -> bool:
        """Make a queue; return False where it was there with these options.

        Args:
            address: Its address.
            options: As in `[[queue]]`; what is left out is as the address's rule says.
            makers: For whom it is made.

        Raises:
            ManagementError: An option is wrong, the address is none of a queue, or the queue is
                there with other options.
        """
        given = check_options("queue", options, QueueOptions)
        try:
            name, inherited = self._vhost.rule_of(address)
            rule = _rule(name, inherited, given)
            if name in self._vhost.nodes:
                self._compare(name, rule)
                return False
            self._make_way(name)
            self._vhost.declare(name, rule, makers)
        except AddressRuleError as error:
            raise ManagementError(BAD_REQUEST, str(error)) from error
        except Refused as refusal:
            raise error_of(refusal) from refusal
        return True

    def options_of(self, address: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Return all options that a queue would have, as a cluster keeps them.

        Args:
            address: Its address.
            options: As for `declare`.

        Raises:
            ManagementError: An option is wrong, or the address is none of a queue.
        """
        given = check_options("queue", options, QueueOptions)
        try:
            rule = _rule(*self._vhost.rule_of(address), given)
        except Refused as refusal:
            raise error_of(refusal) from refusal
        return {key: value for key, value in _effective(rule).items() if value is not None}

    def _make_way(self, name: str) -> None:
        """Drop a plain address of that name, unless it is in use.

        Raises:
            ManagementError: It is.
        """
        entry = self._vhost.space.entries.get(name.encode())
        if entry is not None and not entry.is_idle:
            raise ManagementError(
                CONFLICT, f"{name!r:.200} is in use as an address that stores nothing"
            )
        self._vhost.drop(name)

    def _compare(self, name: str, rule: AddressRule) -> None:
        """Refuse where the queue that is there has other options.

        Raises:
            ManagementError: It has, or is no queue.
        """
        kind = self._vhost.nodes.kind_at(name)
        if kind != QUEUE:
            raise ManagementError(CONFLICT, f"{name!r:.200} is a {kind}, and in use as that")
        there, wanted = _effective(self._vhost.nodes.rules[name]), _effective(rule)
        for key, value in wanted.items():
            if there[key] != value:
                raise ManagementError(
                    CONFLICT,
                    f"{name!r:.200} is there with {key} = {there[key]}, not {value}: delete it "
                    "first, or declare it with the options it has",
                )

    def delete(self, address: str) -> bool:
        """Give up a queue with what it holds; return False where it is not this container's.

        One that the whole cluster has goes here when it goes everywhere.

        Raises:
            ManagementError: The queue is in use.
        """
        name = address.removeprefix("/")
        node = self._vhost.nodes.get(name)
        if node is None or self._vhost.nodes.kind_at(name) != QUEUE:
            return False
        entry = self._vhost.space.entries.get(name.encode())
        senders = len(entry.sources) if entry is not None else 0
        receivers = cast("int", node.status().get("consumers", 0))
        if senders or receivers:
            raise ManagementError(
                CONFLICT, f"{name!r:.200} is in use by {senders} senders, {receivers} receivers"
            )
        if replica_of(node) is not None:
            return False
        if isinstance(node, Removable):
            node.delete()
        self._vhost.remove_node(name)
        return True


def error_of(refusal: Refused) -> ManagementError:
    """Tell of a refusal in a reply of `$management`."""
    is_limit = refusal.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    return ManagementError(TOO_MANY if is_limit else BAD_REQUEST, refusal.description)


def _rule(name: str, inherited: AddressRule, given: dict[str, Any]) -> AddressRule:
    if is_pattern(name):
        raise ManagementError(BAD_REQUEST, f"{name!r:.200} holds wildcards: one queue's address")
    if inherited.kind not in (QUEUE, "direct"):
        raise ManagementError(
            BAD_REQUEST, f"{name!r:.200} is for a {inherited.kind}, which is no queue"
        )
    options = dict(inherited.options) if inherited.kind == QUEUE else {}
    own = {key: given.pop(key, getattr(inherited, key)) for key in ("ttl_s", "dead_letter")}
    return replace(
        inherited,
        prefix=None,
        pattern=name,
        kind=QUEUE,
        distribution=Distribution.BALANCED,
        options=options | given,
        **own,
    )


def _effective(rule: AddressRule) -> dict[str, Any]:
    """List the options that hold for a queue of a rule, with the defaults filled in."""
    own = {"ttl_s": rule.ttl_s, "dead_letter": rule.dead_letter}
    return structs.asdict(QueueOptions.of(rule.options)) | own
