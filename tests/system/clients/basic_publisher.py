"""Publishes durable items by pika with confirms, and writes down what was confirmed.

    basic_publisher.py PORT EXCHANGE KEY PREFIX COUNT LEDGER

Each item is published once; what a lost connection leaves unanswered is in doubt.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

import pika
from pika.exceptions import AMQPError

OUTSTANDING_MAX = 300
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Publisher:
    def __init__(self, port: int, exchange: str, key: str, ledger: TextIO) -> None:
        self.place = (exchange, key)
        self.parameters = pika.ConnectionParameters("127.0.0.1", port)
        self.ledger = ledger
        self.outstanding: dict[int, str] = {}

    def run(self, items: list[str]) -> None:
        items.reverse()
        while items or self.outstanding:
            try:
                with pika.BlockingConnection(self.parameters) as connection:
                    self._publish(connection, items)
            except (AMQPError, OSError):
                time.sleep(0.05)
            self._note("doubt", list(self.outstanding))
        self.ledger.write("ended\n")

    def _publish(self, connection: pika.BlockingConnection, items: list[str]) -> None:
        channel = connection.channel()._impl  # its own confirms wait for each message
        channel.confirm_delivery(self._on_confirm)
        number = 0
        while items or self.outstanding:
            while items and len(self.outstanding) < OUTSTANDING_MAX:
                number += 1
                self.outstanding[number] = items.pop()
                body = self.outstanding[number].encode()
                channel.basic_publish(*self.place, body, PERSISTENT)
            connection.process_data_events(time_limit=0.05)

    def _on_confirm(self, frame: pika.frame.Method) -> None:
        method = frame.method
        numbers = [method.delivery_tag]
        if method.multiple:
            numbers = [each for each in self.outstanding if each <= method.delivery_tag]
        self._note("accepted" if isinstance(method, pika.spec.Basic.Ack) else "doubt", numbers)

    def _note(self, what: str, numbers: list[int]) -> None:
        for number in numbers:
            self.ledger.write(f"{what} {self.outstanding.pop(number)}\n")


if __name__ == "__main__":
    port, exchange, key, prefix, count, ledger = sys.argv[1:]
    with open(ledger, "a", buffering=1) as file:
        publisher = Publisher(int(port), exchange, key, file)
        publisher.run([f"{prefix}-{number}" for number in range(int(count))])
