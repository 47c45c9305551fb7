"""Random histories of exchanges and bindings, by the same client at RabbitMQ and at Cogwork.

Replies, reply texts, returned messages and what each queue has got are compared after each step.
"""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pika
import pytest
from rabbitmq import RabbitMq

from cogwork.bench.servers.process import Missing
from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HISTORIES = 12
STEPS = 120

OWN = ["x1", "x2", "x3"]
EXCHANGES = [*OWN, "amq.topic", "amq.direct", "amq.headers", "amq.new", "", "missing"]
QUEUES = ["q1", "q2", "q3"]
TYPES = ["direct", "fanout", "topic", "headers"]
WORDS = ["a", "b", "", "*", "#"]
VALUES: list[object] = [1, 2, True, "1", None, [1], {"t": 1}, b"x"]

Step = tuple[str, tuple[str, ...], dict[str, Any]]


class Broker:
    """What a history is played to."""

    def __init__(self, port: int) -> None:
        self.connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self.open()

    def open(self) -> None:
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def close(self) -> None:
        self.connection.close()

    def clear(self) -> None:
        for name in OWN:
            self.channel.exchange_delete(name)
        for name in QUEUES:
            self.channel.queue_delete(name)
            self.channel.queue_declare(name)

    def play(self, step: Step) -> object:
        """Take a step; return all that is seen of it."""
        name, places, options = step
        try:
            if name == "publish":
                exchange, key = places
                return self._publish(exchange, key, options["headers"]), self._got()
            return str(getattr(self.channel, name)(*places, **options).method.NAME)
        except pika.exceptions.ChannelClosedByBroker as error:
            self.open()
            return error.reply_code, error.reply_text

    def _publish(self, exchange: str, key: str, headers: dict[str, object] | None) -> object:
        properties = pika.BasicProperties(headers=headers)
        try:
            self.channel.basic_publish(exchange, key, b"m", properties, mandatory=True)
        except pika.exceptions.UnroutableError as error:
            method = error.messages[0].method
            return method.reply_code, method.reply_text, method.exchange, method.routing_key
        return "routed"

    def _got(self) -> dict[str, int]:
        got = dict.fromkeys(QUEUES, 0)
        for name in QUEUES:
            while self.channel.basic_get(name, auto_ack=True)[0]:
                got[name] += 1
        return got


class Author:
    """Writes histories."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _key(self) -> str:
        return ".".join(self._random.choice(WORDS) for _ in range(self._random.randint(0, 3)))

    def _exchange(self) -> str:
        return self._random.choices(EXCHANGES, [5, 5, 5, 2, 2, 2, 0.5, 0.5, 0.5])[0]

    def _queue(self) -> str:
        return self._random.choices([*QUEUES, "missing"], [5, 5, 5, 0.5])[0]

    def _headers(self) -> dict[str, object]:
        count = self._random.randint(0, 2)
        names = ["h", "i", "x-j"]
        return {self._random.choice(names): self._random.choice(VALUES) for _ in range(count)}

    def _binding(self) -> dict[str, object]:
        arguments = self._headers()
        modes: list[object] = ["all", "any", "all-with-x", "any-with-x", "bad", 5]
        if self._random.random() < 0.7:
            arguments["x-match"] = self._random.choices(modes, [9, 9, 9, 9, 1, 1])[0]
        return {"routing_key": self._key(), "arguments": arguments or None}

    def _properties(self) -> dict[str, Any]:
        chance, arguments = self._random.random, dict[str, object]()
        if chance() < 0.3:
            arguments["alternate-exchange"] = self._random.choice([*OWN, *OWN, "missing", 5])
        return {
            "exchange_type": self._random.choice(TYPES),
            "durable": chance() < 0.3,
            "auto_delete": chance() < 0.3,
            "internal": chance() < 0.15,
            "arguments": arguments or None,
        }

    def step(self) -> Step:
        """Write one step; what it is about need not be there."""
        name = self._random.choices(
            [*("declare", "passive", "delete", "bind", "unbind", "bind_exchange"), "publish"],
            [16, 4, 6, 18, 7, 10, 30],
        )[0]
        match name:
            case "declare":
                return "exchange_declare", (self._exchange(),), self._properties()
            case "passive":
                return "exchange_declare", (self._exchange(),), {"passive": True}
            case "delete":
                options = {"if_unused": self._random.random() < 0.5}
                return "exchange_delete", (self._exchange(),), options
            case "bind" | "unbind":
                return f"queue_{name}", (self._queue(), self._exchange()), self._binding()
            case "bind_exchange":
                what = self._random.choice(["exchange_bind", "exchange_bind", "exchange_unbind"])
                return what, (self._exchange(), self._exchange()), self._binding()
            case _:
                key = self._key().replace("*", "star").replace("#", "hash")
                return "publish", (self._exchange(), key), {"headers": self._headers() or None}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    folder: Path = tmp_path_factory.mktemp("rabbitmq")
    server = RabbitMq(folder)
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        with (
            container() as url,
            closing(Broker(server.port)) as theirs,
            closing(Broker(int(url.rpartition(":")[2]))) as ours,
        ):
            yield theirs, ours
    finally:
        server.kill()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_both_brokers_do_the_same(brokers: tuple[Broker, Broker], seed: int) -> None:
    theirs, ours = brokers
    author = Author(seed)
    theirs.clear()
    ours.clear()
    for number in range(STEPS):
        step = author.step()
        assert ours.play(step) == theirs.play(step), f"seed {seed}, step {number}: {step}"
