"""From a target of oslo.messaging to the address of a node.

Three kinds of address: (A) one server, (B) any server of a topic, (C) all servers of a topic. They
come in two notations: *legacy* with dots, where a broker is told by the first word what to do, and
*routable* with slashes, where a router finds a long prefix. Where a target has a server and is a
fanout too, the server counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cogwork.oslo.brokers import dialect_of

if TYPE_CHECKING:
    from oslo_messaging import Target

    from cogwork.oslo.brokers import Dialect

__all__ = ("AddressOptions", "Addresser", "Service", "addresser_for")

Service = Literal["rpc", "notify"]


@dataclass(frozen=True, slots=True)
class AddressOptions:
    """What the configuration says of addresses; the names are the options'.

    Attributes:
        vhost: The virtual host, where addresses name it.
        rpc_exchange: The exchange of RPC whose target names none.
        notify_exchange: The exchange of notifications whose target names none.
    """

    addressing_mode: str = "dynamic"
    server_request_prefix: str = "exclusive"
    broadcast_prefix: str = "broadcast"
    group_request_prefix: str = "unicast"
    rpc_address_prefix: str = "openstack.org/om/rpc"
    notify_address_prefix: str = "openstack.org/om/notify"
    multicast_address: str = "multicast"
    unicast_address: str = "unicast"
    anycast_address: str = "anycast"
    reply_prefix: str | None = None
    vhost: str = ""
    rpc_exchange: str = "rpc"
    notify_exchange: str = "notify"


class Addresser:
    """Makes the addresses for one intermediary.

    Attributes:
        is_legacy: Whether they are in the notation with dots.
        reply_prefix: What addresses of replies begin with; None for a dynamic source.
        drains: Whether a link there can be drained.
    """

    def __init__(self, options: AddressOptions, dialect: Dialect, *, is_legacy: bool) -> None:
        """Initialize it; it knows all that it needs.

        Args:
            options: The configuration.
            dialect: What the intermediary wants where an option was left at its default.
            is_legacy: Which of the two notations to use.
        """
        self.is_legacy = is_legacy
        self.drains = dialect.drains
        self.reply_prefix = options.reply_prefix or dialect.reply_prefix
        self._options = options
        self._dialect = dialect

    def server(self, target: Target, service: Service) -> str:
        """Return the address of one server (A)."""
        options, exchange = self._options, self._exchange(target, service)
        if self.is_legacy:
            prefix = self._prefix("server_request_prefix")
            return _joined(".", prefix, options.vhost, exchange, target.topic, target.server)
        return _joined(
            "/",
            self._service_prefix(service),
            options.unicast_address,
            options.vhost,
            exchange,
            target.topic,
            target.server,
        )

    def group(self, target: Target, service: Service) -> str:
        """Return the address of any server of the topic (B)."""
        options, exchange = self._options, self._exchange(target, service)
        if self.is_legacy:
            prefix = self._prefix("group_request_prefix")
            return _joined(".", prefix, options.vhost, exchange, target.topic)
        return _joined(
            "/",
            self._service_prefix(service),
            options.anycast_address,
            options.vhost,
            exchange,
            target.topic,
        )

    def all(self, target: Target, service: Service) -> str:
        """Return the address of all servers of the topic (C)."""
        options, exchange = self._options, self._exchange(target, service)
        if self.is_legacy:
            prefix = self._prefix("broadcast_prefix")
            return _joined(".", prefix, options.vhost, exchange, target.topic, "all")
        return _joined(
            "/",
            self._service_prefix(service),
            options.multicast_address,
            options.vhost,
            exchange,
            target.topic,
        )

    def of(self, target: Target, service: Service) -> str:
        """Return where a message for this target goes."""
        if target.server:
            return self.server(target, service)
        return self.all(target, service) if target.fanout else self.group(target, service)

    def _exchange(self, target: Target, service: Service) -> str:
        options = self._options
        default = options.rpc_exchange if service == "rpc" else options.notify_exchange
        return str(target.exchange or default)

    def _service_prefix(self, service: Service) -> str:
        options = self._options
        return options.rpc_address_prefix if service == "rpc" else options.notify_address_prefix

    def _prefix(self, name: str) -> str:
        """Return an option, or what the intermediary wants where it was left alone."""
        given = str(getattr(self._options, name))
        if given != getattr(_DEFAULTS, name):
            return given
        return self._dialect.prefixes.get(name, given)


_DEFAULTS = AddressOptions()


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)


def addresser_for(options: AddressOptions, product: str | None) -> Addresser:
    """Choose the notation.

    Args:
        options: The configuration; `dynamic` leaves it to the intermediary.
        product: What the intermediary calls itself in its open; None where it says nothing.
    """
    dialect = dialect_of(product)
    mode = options.addressing_mode
    is_legacy = dialect.is_legacy if mode == "dynamic" else mode == "legacy"
    return Addresser(options, dialect, is_legacy=is_legacy)
