"""Takes items by pika with manual acknowledgements, and writes down what it does.

    basic_worker.py PORT QUEUE SEED LEDGER

An acknowledgement has no answer, but the commit of a transaction has one: an item is confirmed once
that has come. Some items are given back.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import TextIO

import pika
from pika.exceptions import AMQPError

PREFETCH = 60
BATCH = 25
GIVEN_BACK = 0.05


class Worker:
    def __init__(self, port: int, queue: str, seed: str, ledger: TextIO) -> None:
        self.parameters = pika.ConnectionParameters("127.0.0.1", port)
        self.queue = queue
        self.chance = random.Random(seed)
        self.ledger = ledger
        self.is_ending = False

    def end(self, _number: int, _frame: object) -> None:
        self.is_ending = True

    def run(self) -> None:
        while not self.is_ending:
            try:
                with pika.BlockingConnection(self.parameters) as connection:
                    self._work(connection.channel())
            except (AMQPError, OSError):
                time.sleep(0.05)
        self.ledger.write("ended\n")

    def _work(self, channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
        channel.basic_qos(prefetch_count=PREFETCH)
        channel.tx_select()
        acknowledged: list[str] = []
        is_open = False  # an item that is given back waits for a commit, too
        for method, _properties, body in channel.consume(self.queue, inactivity_timeout=0.1):
            if method is not None:
                item = body.decode()
                self.ledger.write(f"taken {item} {int(method.redelivered)}\n")
                is_open = True
                if self.chance.random() < GIVEN_BACK:
                    channel.basic_nack(method.delivery_tag)
                else:
                    channel.basic_ack(method.delivery_tag)
                    acknowledged.append(item)
            if is_open and (method is None or len(acknowledged) >= BATCH):
                channel.tx_commit()
                is_open = False
                self.ledger.write("".join(f"confirmed {item}\n" for item in acknowledged))
                acknowledged.clear()
            if self.is_ending and method is None:
                return


if __name__ == "__main__":
    port, queue, seed, ledger = sys.argv[1:]
    with open(ledger, "a", buffering=1) as file:
        worker = Worker(int(port), queue, seed, file)
        signal.signal(signal.SIGTERM, worker.end)
        worker.run()
