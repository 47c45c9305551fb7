"""A consumer of work items that keeps a ledger on disk, and may be killed at any moment.

Arguments: the URL, the address, and the ledger's file. Before it accepts an item, it writes
`taken ID` and waits for the disk. Once the container confirms the accept by settling (the receiver
settles second, AMQP 1.0 §2.6.12), it writes `confirmed ID`. SIGTERM ends it in good order.
"""

from __future__ import annotations

import os
import signal
import sys

from proton import Delivery, Event, Handler, Link, Message
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

CREDIT = 100


class SettlesSecond(LinkOption):
    """Asks the container to settle first: its settlement confirms our accept."""

    def apply(self, link: Link) -> None:
        """Sets the mode on a link."""
        link.rcv_settle_mode = Link.RCV_SECOND


class Ledger(Handler):
    """Takes deliveries, writes them down, accepts them, and writes down the confirmations.

    Args:
        file: Descriptor of the ledger's file, opened to append.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._taken: list[tuple[Delivery, str]] = []
        self._confirmed: list[str] = []
        self.unconfirmed = 0

    def on_delivery(self, event: Event) -> None:
        """Notes a delivery that came, or a settlement of one that was accepted."""
        delivery, receiver = event.delivery, event.receiver
        assert delivery is not None
        assert receiver is not None
        if delivery.settled:
            self._confirmed.append(delivery.item)
            self.unconfirmed -= 1
            delivery.settle()
            receiver.flow(1)
        elif delivery.readable and not delivery.partial:
            message = Message()
            message.decode(bytes(receiver.recv(delivery.pending) or b""))
            receiver.advance()
            delivery.item = str(message.body)
            self._taken.append((delivery, delivery.item))

    def turn(self) -> None:
        """Writes down what happened since the last turn, then accepts what was taken."""
        lines = [f"confirmed {item}\n" for item in self._confirmed]
        lines += [f"taken {item}\n" for _, item in self._taken]
        if lines:
            os.write(self._file, "".join(lines).encode())
        if self._taken:
            os.fsync(self._file)
        for delivery, _ in self._taken:
            delivery.update(Delivery.ACCEPTED)
        self.unconfirmed += len(self._taken)
        self._taken.clear()
        self._confirmed.clear()


def main(url: str, address: str, path: str) -> None:
    """Consumes until SIGTERM, then waits for what is still unconfirmed."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    ledger = Ledger(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    connection = BlockingConnection(url, timeout=20, allowed_mechs="ANONYMOUS")
    receiver = connection.create_receiver(
        address, credit=CREDIT, handler=ledger, options=SettlesSecond()
    )
    connection.container.timeout = 0.1
    while not ending or ledger.unconfirmed:
        connection.container.process()
        ledger.turn()
    receiver.close()  # which also holds it until here: proton takes the handler from a lost one
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
