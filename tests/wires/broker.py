"""The least host that the data plane needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Attach, Open, ReceiverSettleMode, Role, SenderSettleMode
from cogwork.dataplane.addresses.entry import (
    BALANCED_CODE,
    CLOSEST_CODE,
    MULTICAST_CODE,
    AddressEntry,
)
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink

from .peer import Peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.sasl import SaslInit, SaslResponse
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.terminus import Terminus
    from cogwork.dataplane.transport.session_end import Session


DISTRIBUTIONS = {"all": MULTICAST_CODE, "one": CLOSEST_CODE, "least": BALANCED_CODE}
BLOCK, DROP_OLDEST, DETACH = range(3)


class Broker:
    """A host that accepts everything.

    Attributes:
        core: Its data plane.
        links: The compiled ends of what is attached, by link name.
        faults: What went wrong on our side; tests want none.
        closed: Why connections ended, in order.
        taken: Messages that arrived at `whole/` addresses: `(message, token, source, settled)`.
    """

    def __init__(self, *, window: int = 100, max_message_size: int = 0) -> None:
        self.core = Core(lambda _port, error: self.faults.append(error))
        self.space = AddressSpace(self.core, self._resolve)
        self.window = window
        self.max_message_size = max_message_size
        self.policy = BLOCK
        self.backlog_bytes_max = 1 << 20
        self.selector: Callable[[bytes], bool] | None = None
        self.no_local = False
        self.awaits_settlement = False
        self.peers: list[Peer] = []
        self.links: dict[str, Any] = {}
        self.faults: list[BaseException] = []
        self.closed: list[AmqpError | None] = []
        self.drained: list[object] = []
        self.node = Port(self.core, self)
        self.taken: list[tuple[bytes, int, Terminus | None, bool]] = []

    def entry(self, address: str) -> AddressEntry:
        found = self.space.entries.get(address.encode())
        if found is None:
            prefix = address.partition("/")[0]
            found = AddressEntry(self.core, address, DISTRIBUTIONS.get(prefix, CLOSEST_CODE))
            found.awaits_settlement = self.awaits_settlement
            if prefix == "whole":
                found.add_outlet(self.node)
            self.space.entries[address.encode()] = found
        return found

    def _resolve(self, address: bytes) -> AddressEntry | None:
        return None if address.startswith(b"nowhere") else self.entry(address.decode())

    def peer(self, **settings: Any) -> Peer:
        """Connect a peer; it has opened and begun a session."""
        peer = Peer(self, **settings)
        peer.greet()
        return peer

    def connect(self, **settings: Any) -> Connection:
        """Make this side of a connection; `fd` is a socket's, all else is a setting."""
        fd = settings.pop("fd", -1)
        return Connection(
            self.core, self, ConnectionSettings(**{"max_frame_size_bytes": 65536, **settings}), fd
        )

    def settle_down(self) -> None:
        """Let every peer hear what there is to hear."""
        self.core.flush()
        while sum(peer.hear() for peer in self.peers):
            self.core.flush()
        assert not self.faults, self.faults

    def assert_clean(self) -> None:
        """Assert that nothing is left of what was held or unsettled."""
        self.core.flush()
        assert self.core.held_bytes == 0
        assert self.core.held_deliveries == 0
        assert self.core.open_fanouts == 0
        for entry in self.space.entries.values():
            assert entry.held == 0, entry.name

    # -- the data plane's host

    def on_batch(self, port: Port) -> None:
        self.taken += port.arrivals
        port.arrivals = []
        port.outcomes = []
        port.woken = []

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        return ()

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        raise AssertionError(frame)

    def may_skip_sasl(self, connection: Connection) -> bool:
        return True

    def on_sasl_challenge(self, connection: Connection, challenge: bytes) -> None:
        raise NotImplementedError

    def on_sasl_success(self, connection: Connection, data: bytes | None) -> None:
        pass

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        raise AssertionError(offered)

    def on_open(self, connection: Connection, opened: Open) -> None:
        connection.open(Open(container_id="broker", max_frame_size=connection.wire.max_frame_in))

    def on_attach(self, link: Link, attach: Attach) -> None:
        terminus = attach.target if attach.role is Role.SENDER else attach.source
        address = getattr(terminus, "address", None)
        if address is not None and address.startswith("forbidden"):
            link.refuse(Condition.UNAUTHORIZED_ACCESS, f"{address} is forbidden")
        elif attach.role is Role.SENDER:
            self._take_publisher(link, attach, address)
        else:
            self._take_consumer(link, attach, address or "")

    def _take_publisher(self, link: Link, attach: Attach, address: str | None) -> None:
        entry = self.entry(address) if address is not None else None
        end = self.publisher_end(link, address, entry)
        end.settles_second = attach.rcv_settle_mode is ReceiverSettleMode.SECOND
        link.attach(
            source=attach.source, target=attach.target, rcv_settle_mode=attach.rcv_settle_mode
        )
        link.carry(end)
        if entry is not None:
            entry.add_source(end)
        end.open_credit()
        self.links[link.name] = end

    def publisher_end(
        self, link: Link, _address: str | None, entry: AddressEntry | None
    ) -> IncomingLink:
        """Make the compiled end of a link on which a peer sends."""
        return IncomingLink(
            link.session.end, link.handle, entry, self.space, self.window, self.max_message_size
        )

    def _take_consumer(self, link: Link, attach: Attach, address: str) -> None:
        end = OutgoingLink(
            link.session.end, link.handle, attach.snd_settle_mode is SenderSettleMode.SETTLED
        )
        end.policy = self.policy
        end.backlog_bytes_max = self.backlog_bytes_max
        end.selector = self.selector
        end.no_local = self.no_local
        link.context = self.entry(address)
        link.attach(
            source=attach.source, target=attach.target, snd_settle_mode=attach.snd_settle_mode
        )
        link.carry(end)
        link.context.add_outlet(end)
        self.links[link.name] = end

    def on_attached(self, link: Link) -> None:
        raise AssertionError(link)

    def on_stopping(self, link: Link) -> None:
        if isinstance(link.context, AddressEntry):
            link.context.remove_outlet(cast("Terminus", link.end))
            link.context = None

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        self.links.pop(link.name, None)

    def on_begun(self, session: SessionEndpoint) -> None:
        pass

    def on_session_begun(self, session: SessionEndpoint) -> None:
        pass

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        pass

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        self.closed.append(error)

    def on_fault(self, connection: Connection, error: BaseException) -> None:
        self.faults.append(error)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        pass

    def on_drained(self, link: Link) -> None:
        self.drained.append(link)
