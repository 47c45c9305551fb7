"""Connections and links of python-qpid-proton, as the commands ask for them."""

from __future__ import annotations

import collections
import contextlib
from typing import TYPE_CHECKING

import proton
from commands import Json, PeerError
from proton import Delivery, Event, Handler, Link, SSLDomain
from proton.reactor import Container, Copy, Filter, LinkOption, Selector
from proton.utils import BlockingConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 40.0


class Settling(LinkOption):
    """Sets both settle modes of a link.

    Args:
        settle: `presettled`, `unsettled`, or `second` for the receiver that settles second.
    """

    def __init__(self, settle: str) -> None:
        self.settle = settle

    def apply(self, link: Link) -> None:
        presettled = self.settle == "presettled"
        link.snd_settle_mode = Link.SND_SETTLED if presettled else Link.SND_UNSETTLED
        link.rcv_settle_mode = Link.RCV_SECOND if self.settle == "second" else Link.RCV_FIRST


class NoLocal(Filter):
    """The no-local filter of the AMQP filter registry."""

    def __init__(self) -> None:
        described = proton.Described(proton.symbol("apache.org:no-local-filter:list"), [])
        super().__init__({proton.symbol("no-local"): described})


class Inbox(Handler):
    """Collects complete deliveries with their encoded bytes; `MessagingHandler` hides those."""

    def __init__(self) -> None:
        self.deliveries: collections.deque[tuple[Delivery, bytes]] = collections.deque()
        self.aborted = 0
        self._parts: list[bytes] = []

    def any(self) -> bool:
        """Return whether there is a delivery to take."""
        return bool(self.deliveries)

    def on_delivery(self, event: Event) -> None:
        delivery = event.delivery
        assert delivery is not None
        if delivery.aborted:
            self._parts.clear()
            self.aborted += 1
            delivery.settle()
        elif delivery.readable and event.receiver is not None:
            self._take(event.receiver, delivery)

    def _take(self, receiver: Link, delivery: Delivery) -> None:
        self._parts.append(bytes(receiver.recv(delivery.pending) or b""))
        if not delivery.partial:
            self.deliveries.append((delivery, b"".join(self._parts)))
            self._parts.clear()
            receiver.advance()


def ssl_domain(options: Json) -> SSLDomain | None:
    """Return the TLS settings of a command's `connection`."""
    if "ca" not in options:
        return None
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(options["ca"])
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if "certificate" in options:
        domain.set_credentials(options["certificate"], options["key"], None)
    return domain


@contextlib.contextmanager
def connected(options: Json) -> Iterator[BlockingConnection]:
    """Open a connection for the length of a `with` block. Raises `PeerError`."""
    container = Container()
    connection = None
    try:
        connection = BlockingConnection(
            options["url"],
            timeout=TIMEOUT_S,
            container=container,
            ssl_domain=ssl_domain(options),
            allowed_mechs=options.get("sasl", "ANONYMOUS"),
            user=options.get("user"),
            password=options.get("password"),
            virtual_host=options.get("hostname"),
            max_frame_size=options.get("max_frame_size"),
            heartbeat=options.get("idle_timeout_s"),
        )
        yield connection
    except proton.Timeout as error:
        raise PeerError("timeout", str(error)) from error
    except proton.LinkException as error:
        raise PeerError("link", str(error), getattr(error, "condition", None)) from error
    except proton.ConnectionException as error:
        raise _connection_error(error) from error
    finally:
        if connection is not None:
            with contextlib.suppress(proton.ProtonException):
                connection.close()


def _connection_error(error: proton.ConnectionException) -> PeerError:
    unauthorized = "Authentication failed" in str(error) or "amqp:unauthorized-access" in str(error)
    kind = "authentication" if unauthorized else "connection"
    return PeerError(kind, str(error), getattr(error, "condition", None))


def receiver_options(command: Json) -> list[LinkOption]:
    """Return settle mode, filters and distribution mode as a command names them."""
    options: list[LinkOption] = [Settling(command.get("settle", "unsettled"))]
    if "selector" in command:
        options.append(Selector(command["selector"]))
    if command.get("no_local"):
        options.append(NoLocal())
    if command.get("mode") == "copy":
        options.append(Copy())
    return options
