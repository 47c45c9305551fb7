"""A connection's life around its transfers: SASL, open, begin, attach, close.

Everything here blocks, with a time-out: a load generator has nothing else to do meanwhile. Then
the compiled roles take over the descriptor.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Open,
    Role,
    SenderSettleMode,
)
from cogwork.amqp.redirect import FORCE
from cogwork.amqp.sasl import (
    ANONYMOUS,
    PLAIN,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    build_plain,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.bench.stream import MAX_FRAME_SIZE, Stream, farewell
from cogwork.bench.url import PeerError, UnreachableError, Url
from cogwork.tls.contexts import TlsFilesError, client_context

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("TIMEOUT_S", "WINDOW", "Link", "Peer", "dial", "receiver_attach")

TIMEOUT_S: Final = 10.0
"""How long a step of the handshake may take."""

WINDOW: Final = 2**31 - 1
"""Session windows that never close: credit is what bounds us, as in most clients."""

_ATTACH_BATCH: Final = 100
"""Attaches under way at once: neither end's socket buffer can fill with them."""


@dataclass(frozen=True, slots=True)
class Link:
    """An attached link.

    Attributes:
        handle: Ours.
        peer_handle: The peer's.
        delivery_count: The sender's initial one.
        address: Where the peer's answer says that it leads.
    """

    handle: int
    peer_handle: int
    delivery_count: int = 0
    address: str = ""


class Peer(Stream):
    """A connection with one session, on channel 0; this is the client's end.

    Attributes:
        channel: Our channel.
        window: Transfer frames that the peer takes.
        max_frame_size: What the peer takes, in bytes.
        idle_timeout_s: The silence after which the peer gives the connection up; 0: never.
    """

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected)
        self.channel = 0
        self.window = 0
        self.max_frame_size = 512
        self.idle_timeout_s = 0.0
        self._next_handle = 0

    @property
    def fd(self) -> int:
        """The socket's file descriptor."""
        return self.socket.fileno()

    @property
    def received(self) -> bytes:
        """What arrived during the handshake and belongs to the role."""
        return self.early

    def close(self) -> None:
        """Say goodbye and close the socket; the peer may be gone already."""
        with contextlib.suppress(OSError, PeerError):
            self.socket.settimeout(TIMEOUT_S)
            self.send([Close()])
            self.socket.shutdown(socket.SHUT_WR)
        self.socket.close()

    def authenticate(self, url: Url) -> None:
        """Pass the SASL layer (AMQP 1.0 §5.3.2)."""
        self.write(SASL_HEADER)
        self.read_header(SASL_HEADER)
        offered = self.receive_sasl()
        chosen = PLAIN if url.user else ANONYMOUS
        if not isinstance(offered, SaslMechanisms) or chosen not in offered.sasl_server_mechanisms:
            raise PeerError(f"the server does not offer SASL {chosen}")
        response = build_plain(url.user, url.password) if url.user else b"loadgen"
        self.send_sasl(SaslInit(mechanism=chosen, initial_response=response, hostname=url.host))
        outcome = self.receive_sasl()
        if not isinstance(outcome, SaslOutcome) or outcome.code is not SaslCode.OK:
            raise PeerError(f"the server refused SASL {chosen}", Condition.UNAUTHORIZED_ACCESS)

    def open_session(self, container_id: str, hostname: str) -> None:
        """Open connection and session (AMQP 1.0 §2.4.1, §2.5.1)."""
        self.write(AMQP_HEADER)
        self.send(
            [
                Open(
                    container_id=container_id,
                    hostname=hostname,
                    max_frame_size=MAX_FRAME_SIZE,
                    channel_max=0,
                    properties={FORCE: True},
                ),
                Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW),
            ]
        )
        self.read_header(AMQP_HEADER)
        self.take_open(self.expect(Open))
        self.window = self.expect(Begin).incoming_window

    def take_open(self, opened: Open) -> None:
        """Note what the peer takes."""
        self.max_frame_size = min(opened.max_frame_size, MAX_FRAME_SIZE)
        self.idle_timeout_s = (opened.idle_time_out or 0) / 1000

    def attach_sender(self, address: str | None, *, settled: bool, name: str = "out") -> Link:
        """Attach a sending link; None is the anonymous relay."""
        handle = self.take_handle()
        attach = Attach(
            name=f"{name}-{handle}",
            handle=handle,
            role=Role.SENDER,
            snd_settle_mode=SenderSettleMode.SETTLED if settled else SenderSettleMode.UNSETTLED,
            source=Source(),
            target=Target(address=address),
            initial_delivery_count=0,
        )
        return self._attach([attach])[0]

    def attach_receivers(self, addresses: Sequence[str], name: str = "in") -> list[Link]:
        """Attach a receiving link for each address."""
        links: list[Link] = []
        for start in range(0, len(addresses), _ATTACH_BATCH):
            attaches = [
                self._receiver(Source(address=address), name)
                for address in addresses[start : start + _ATTACH_BATCH]
            ]
            links += self._attach(attaches)
        return links

    def attach_dynamic(self, name: str = "reply") -> Link:
        """Attach a receiving link with an address of the peer's choice."""
        return self._attach([self._receiver(Source(dynamic=True), name)])[0]

    def detach(self, links: Sequence[Link]) -> None:
        """Close links and wait for the answers."""
        self.send([Detach(handle=link.handle, closed=True) for link in links])
        for _ in links:
            self.expect(Detach)

    def take_handle(self) -> int:
        """Return the next free handle."""
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        return handle

    def _receiver(self, source: Source, name: str) -> Attach:
        return receiver_attach(self.take_handle(), source, name)

    def _attach(self, attaches: list[Attach]) -> list[Link]:
        """Send attaches and pairs the answers by name (AMQP 1.0 §2.6.1)."""
        self.send(attaches)
        handles = {attach.name: attach.handle for attach in attaches}
        links = [self._linked(handles, self.expect(Attach)) for _ in attaches]
        return sorted(links, key=lambda link: link.handle)

    def _linked(self, handles: dict[str, int], answer: Attach) -> Link:
        is_refused = (answer.source if answer.role is Role.SENDER else answer.target) is None
        if is_refused:
            self._explain_refusal()
        return Link(
            handle=handles[answer.name],
            peer_handle=answer.handle,
            delivery_count=answer.initial_delivery_count or 0,
            address=(answer.source.address if answer.source else None) or "",
        )

    def _explain_refusal(self) -> NoReturn:
        """Raise what the detach behind an attach without terminus says (AMQP 1.0 §2.6.3)."""
        raise farewell(self.expect(Detach))


def receiver_attach(handle: int, source: Source, name: str) -> Attach:
    """Describe a receiving link."""
    return Attach(
        name=f"{name}-{handle}",
        handle=handle,
        role=Role.RECEIVER,
        source=source,
        target=Target(),
    )


def dial(url: Url, container_id: str, ca_file: str | None = None) -> Peer:
    """Connect, authenticates and open a session.

    Args:
        url: Where to.
        container_id: Our name.
        ca_file: For TLS, the certificates to trust; the system's where None.

    Raises:
        PeerError: It failed; the text says where and why.
    """
    try:
        connected = url.connect(TIMEOUT_S)
        if url.is_tls:
            context = client_context(ca_file)
            connected = context.wrap_socket(connected, server_hostname=url.host)
    except (OSError, TlsFilesError) as error:
        reason = _reason(error) if isinstance(error, OSError) else str(error)
        text = f"cannot connect to {url.place}: {reason}"
        raise UnreachableError(text) from None
    peer = Peer(connected)
    try:
        peer.authenticate(url)
        peer.open_session(
            container_id, f"vhost:{url.virtual_host}" if url.virtual_host else url.host
        )
    except UnreachableError as error:
        connected.close()
        raise UnreachableError(f"{url.place}: {error}") from None
    except PeerError as error:
        connected.close()
        raise PeerError(f"{url.place}: {error}", error.condition) from None
    return peer


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.strerror or str(error)
