"""The policies of a virtual host: what its queues and exchanges have besides their own arguments.

Theory of operation. Of the policies whose pattern is found in a name, and that are for its kind,
the one of the highest priority holds, and no other. What it says goes together with what was
declared, by RabbitMQ's rule: of two numbers the smaller holds, and of all else what was declared.
The result is worked out in RabbitMQ's words, and becomes the options of the node. Policies are
looked at when a queue or an exchange is made, and for all of them when policies change; so what a
policy said is gone with it.

A queue is matched by the name that AMQP 0-9-1 gives it: its address without `queue/`.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogwork.amqp091.errors import ProtocolError
from cogwork.config.policy_checks import EXCHANGE_KEYS, IGNORED_KEYS
from cogwork.container.amqp091.queue_arguments import MILLISECONDS, arguments_of, options_of
from cogwork.plugin.capabilities import Governed
from cogwork.plugin.node_kinds import provides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.config.settings import Policy
    from cogwork.plugin.capabilities import Storing
    from cogwork.router.addresses import AddressRule

__all__ = ("Policies", "governed_options", "in_order")

QUEUE_PREFIX: Final = "queue/"

QUORUM, CLASSIC = "quorum_queues", "classic_queues"

DEAD_LETTER_EXCHANGE: Final = "x-dead-letter-exchange"

GOVERNED: Final = (
    *("ttl_s", "maximum_length", "maximum_bytes", "maximum_length_policy"),
    *("maximum_delivery_count", "dead_letter"),
)
"""Options of a queue's node that a policy may replace."""

log = logging.getLogger("cogwork")


def in_order(policies: Iterable[Policy]) -> list[Policy]:
    """Return policies with those first that go before others."""
    return sorted(policies, key=lambda each: (-each.priority, each.name))


class _Compiled(NamedTuple):
    policy: Policy
    pattern: re.Pattern[str]


class Policies:
    """Those of one virtual host.

    Attributes:
        on_changed: Called when others hold, once queues go by them.
        version: Increases whenever others hold.
    """

    def __init__(self, queues: Mapping[str, Storing], rules: Mapping[str, AddressRule]) -> None:
        """Start without any.

        Args:
            queues: The nodes that keep items, by address.
            rules: The rule of each.
        """
        self._queues = queues
        self._rules = rules
        self.on_changed: Callable[[], None] = _do_nothing
        self._policies: list[_Compiled] = []
        self._given: list[Policy] = []
        self.version = 0

    def take(self, policies: Iterable[Policy]) -> None:
        """Have these hold from now on, and no others."""
        given = in_order(policies)
        if given == self._given:
            return
        self._given = given
        self.version += 1
        self._policies = [_Compiled(each, re.compile(each.pattern)) for each in given]
        for address, node in list(self._queues.items()):
            if isinstance(node, Governed):
                node.govern(self.options_for(address, self._rules[address]))
        self.on_changed()

    # -- which one holds

    def of_queue(self, address: str, rule: AddressRule | None = None) -> Policy | None:
        """Return the policy that holds for a queue; None where none does.

        Args:
            address: The queue's.
            rule: Its rule; None for that of the one that is there.
        """
        rule = rule or self._rules.get(address)
        if rule is None or not provides(rule.kind, Governed):
            return None
        if not address.startswith(QUEUE_PREFIX):
            return None
        kind = QUORUM if rule.options.get("durability") == "replicated" else CLASSIC
        return self._first(address.removeprefix(QUEUE_PREFIX), ("queues", kind))

    def of_exchange(self, name: str) -> Policy | None:
        """Return the policy that holds for an exchange; None where none does."""
        return self._first(name, ("exchanges",))

    @property
    def let_expire(self) -> bool:
        """Whether any queue may go that nobody uses."""
        return any("expires" in each.definition for each in self._given)

    def expires_s(self, address: str) -> float | None:
        """Return after how long without use a queue goes, as its policy has it."""
        policy = self.of_queue(address) if self._policies else None
        value = None if policy is None else policy.definition.get("expires")
        return None if value is None else float(value / MILLISECONDS)

    def _first(self, name: str, kinds: tuple[str, ...]) -> Policy | None:
        for policy, pattern in self._policies:
            if policy.apply_to in ("all", *kinds) and pattern.search(name):
                return policy
        return None

    # -- what it says

    def options_for(self, address: str, rule: AddressRule) -> dict[str, Any]:
        """Return the options of a queue that its policy replaces.

        Args:
            address: The queue's.
            rule: Its own.
        """
        policy = self.of_queue(address, rule) if self._policies else None
        if policy is None:
            return {}
        try:
            return governed_options(rule, policy.definition)
        except ProtocolError as error:
            log.error("policy %r has no effect on %s: %s", policy.name, address, error.explanation)
            return {}

    def alternate_of(self, name: str) -> str | None:
        """Return the alternate exchange that an exchange has by its policy; None for none."""
        policy = self.of_exchange(name) if self._policies else None
        return None if policy is None else policy.definition.get("alternate-exchange")


def _do_nothing() -> None:
    """Tell nobody."""


def governed_options(rule: AddressRule, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a queue that a policy replaces, with what is declared considered.

    Args:
        rule: The queue's own.
        definition: What the policy says.

    Raises:
        ProtocolError: Both together cannot be.
    """
    own = {**rule.options, "ttl_s": rule.ttl_s, "dead_letter": rule.dead_letter}
    own = {name: value for name, value in own.items() if value is not None}
    declared = arguments_of(own)
    said = definition.keys() - IGNORED_KEYS - EXCHANGE_KEYS.keys()
    if "dead_letter" in own and DEAD_LETTER_EXCHANGE not in declared:
        said -= {"dead-letter-exchange", "dead-letter-routing-key"}  # it is no exchange's
    arguments = _combined(declared, {f"x-{key}": definition[key] for key in said})
    wanted = options_of(arguments, str(rule.pattern))
    is_bounded = not declared.keys().isdisjoint(("x-max-length", "x-max-length-bytes"))
    if is_bounded and "x-overflow" not in arguments and own.get("maximum_length_policy") == "block":
        del wanted["maximum_length_policy"]
    return {name: wanted[name] for name in GOVERNED if name in wanted} if said else {}


def _combined(declared: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as a queue has them that a policy holds for."""
    arguments = dict(declared)
    for name, value in said.items():
        there = declared.get(name, value)
        arguments[name] = min(there, value) if isinstance(there, int) else there
    if DEAD_LETTER_EXCHANGE not in arguments:
        arguments.pop("x-dead-letter-routing-key", None)
    return arguments
