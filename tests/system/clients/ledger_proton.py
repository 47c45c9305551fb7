"""A ledger worker on python-qpid-proton: a stock client, that settles second to be confirmed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from proton import Delivery, Event, Handler, Link, Message
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection

if TYPE_CHECKING:
    from ledger import Ledger

CREDIT = 100
TURN_S = 0.1

CLOSES_AFTER = 50
"""Confirmations after which a worker that closes in good order does so."""

TAKEN_AT_ONCE = 3
"""As many deliveries such a worker looks at in a turn, so that it always holds some it has not."""

CONTAINER = Container()
"""Made before the workers are forked: it takes its time to make two TLS contexts."""


class SettlesSecond(LinkOption):
    """Asks the container to settle first: its settlement confirms our accept (§2.6.12)."""

    def apply(self, link: Link) -> None:
        """Set the mode on a link."""
        link.rcv_settle_mode = Link.RCV_SECOND


class Worker(Handler):
    """Takes deliveries, writes them down, accepts them, and writes down the confirmations.

    Args:
        ledger: Where it writes.
        at_once: As many deliveries are taken in a turn.
    """

    def __init__(self, ledger: Ledger, at_once: int = CREDIT) -> None:
        self._ledger = ledger
        self._at_once = at_once
        self._taken: list[tuple[Delivery, int]] = []
        self._confirmed: list[str] = []
        self.unconfirmed = 0
        self.confirmed = 0

    def on_delivery(self, event: Event) -> None:
        """Note a delivery that came, or a settlement of one that was accepted."""
        delivery, receiver = event.delivery, event.receiver
        assert delivery is not None
        assert receiver is not None
        if delivery.settled:
            if delivery.remote_state == Delivery.ACCEPTED:  # else the claim came too late
                self._confirmed.append(delivery.item)
            self.unconfirmed -= 1
            delivery.settle()
            receiver.flow(1)
        elif delivery.readable and not delivery.partial:
            message = Message()
            message.decode(bytes(receiver.recv(delivery.pending) or b""))
            receiver.advance()
            delivery.item = str(message.body)
            self._taken.append((delivery, message.delivery_count))

    def turn(self) -> None:
        """Write down what happened since the last turn, then accept what was taken."""
        taken = self._taken[: self._at_once]
        if self._confirmed:
            self._ledger.confirm(self._confirmed)
        if taken:
            self._ledger.take((delivery.item, count) for delivery, count in taken)
        for delivery, _ in taken:
            delivery.update(Delivery.ACCEPTED)
        self.unconfirmed += len(taken)
        self.confirmed += len(self._confirmed)
        del self._taken[: len(taken)]
        self._confirmed.clear()

    def rest(self) -> None:
        """Take nothing more: what it has been sent stays as it is."""
        self._at_once = 0


def work(url: str, queue: str, ledger: Ledger) -> None:
    """Work until SIGTERM, then wait for what is still unconfirmed."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    worker = Worker(ledger)
    connection = BlockingConnection(url, timeout=20, container=CONTAINER, allowed_mechs="ANONYMOUS")
    receiver = connection.create_receiver(
        queue, credit=CREDIT, handler=worker, options=SettlesSecond()
    )
    connection.container.timeout = TURN_S
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while not ending or worker.unconfirmed:
        connection.container.process()
        worker.turn()
    del receiver  # held until here: proton takes the handler from a lost one
    connection.close()


def work_in_turns(url: str, queue: str, ledger: Ledger) -> None:
    """Work until SIGTERM, and again and again closes in good order what it has not looked at."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    closes_link = False
    while not ending:
        worker = Worker(ledger, TAKEN_AT_ONCE)
        connection = BlockingConnection(url, timeout=20, allowed_mechs="ANONYMOUS")
        receiver = connection.create_receiver(
            queue, credit=CREDIT, handler=worker, options=SettlesSecond()
        )
        connection.container.timeout = TURN_S
        while not ending and worker.confirmed < CLOSES_AFTER:
            connection.container.process()
            worker.turn()
        worker.rest()
        while worker.unconfirmed:
            connection.container.process()
            worker.turn()
        connection.container.timeout = 20
        if closes_link:
            receiver.close()
        connection.close()
        closes_link = not closes_link
