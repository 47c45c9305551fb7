"""Random histories of what AMQP 0-9-1 declares, binds and publishes, played to brokers by pika."""

from __future__ import annotations

import random
from typing import Any

import pika

from .served import within

__all__ = ("QUEUES", "Author", "Broker", "QueueAuthor", "Step")

OWN = ["x1", "x2", "x3"]
EXCHANGES = [*OWN, "amq.topic", "amq.direct", "amq.headers", "amq.new", "", "missing"]
QUEUES = ["q1", "q2", "q3"]
TYPES = ["direct", "fanout", "topic", "headers"]
WORDS = ["a", "b", "", "*", "#"]
VALUES: list[object] = [1, 2, True, "1", None, [1], {"t": 1}, b"x"]

RETURN_TIMEOUT_S = 10.0

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
            match name:
                case "publish" | "send":
                    exchange, key = places
                    outcome = self._publish(exchange, key, **options)
                    return outcome if name == "send" else (outcome, self._got())
                case "get":
                    return self._get(places[0], options["settle"])
                case _:
                    return repr(getattr(self.channel, name)(*places, **options).method)
        except pika.exceptions.ChannelClosedByBroker as error:
            self.open()
            return error.reply_code, error.reply_text

    def _publish(
        self,
        exchange: str,
        key: str,
        headers: dict[str, object] | None = None,
        body: bytes = b"m",
        delivery_mode: int | None = None,
    ) -> object:
        properties = pika.BasicProperties(headers=headers, delivery_mode=delivery_mode)
        try:
            self.channel.basic_publish(exchange, key, body, properties, mandatory=True)
        except pika.exceptions.UnroutableError as error:
            method = error.messages[0].method
            return method.reply_code, method.reply_text, method.exchange, method.routing_key
        except pika.exceptions.NackError:
            return "refused"
        return "routed"

    def _get(self, queue: str, settle: str) -> object:
        """Get a message and do with it what `settle` says; return all that is seen of it."""
        method, properties, body = self.channel.basic_get(queue)
        if method is None:
            return None
        tag = method.delivery_tag
        match settle:
            case "ack":
                self.channel.basic_ack(tag)
            case "drop":
                self.channel.basic_nack(tag, requeue=False)
            case _:
                self.channel.basic_nack(tag, requeue=True)
                # No answer says that it is back, and the next step may be another container's.
                count = method.message_count + 1
                within(RETURN_TIMEOUT_S, lambda: self._waiting(queue) == count, "it is back")
        seen = (method.exchange, method.routing_key, method.redelivered, method.message_count)
        return seen, properties.headers, properties.delivery_mode, body

    def _waiting(self, queue: str) -> int:
        return int(self.channel.queue_declare(queue, passive=True).method.message_count)

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


class QueueAuthor(Author):
    """Writes histories of queues, too: what each message does is seen by who gets it."""

    _number = 0

    def step(self) -> Step:
        """Write one step; what it is about need not be there."""
        writers = {
            super().step: 30,
            self._declare: 8,
            self._look: 2,
            self._delete: 1,
            self._purge: 1,
            self._bind: 5,
            self._send: 30,
            self._get_one: 23,
        }
        return self._random.choices(list(writers), list(writers.values()))[0]()

    def _declare(self) -> Step:
        arguments: dict[str, object] = {}
        if self._random.random() < 0.3:
            arguments["x-queue-type"] = self._random.choice(["classic", "quorum"])
        if self._random.random() < 0.15:
            arguments["x-max-length"] = self._random.choice([1, 3, "three"])
        durable = self._random.random() < 0.6 or arguments.get("x-queue-type") == "quorum"
        options = {"durable": durable, "arguments": arguments or None}
        return "queue_declare", (self._queue(),), options

    def _look(self) -> Step:
        return "queue_declare", (self._queue(),), {"passive": True}

    def _delete(self) -> Step:
        options = {
            "if_unused": self._random.random() < 0.5,
            "if_empty": self._random.random() < 0.5,
        }
        return "queue_delete", (self._queue(),), options

    def _purge(self) -> Step:
        return "queue_purge", (self._queue(),), {}

    def _bind(self) -> Step:
        return "queue_bind", (self._queue(), self._exchange()), self._binding()

    def _get_one(self) -> Step:
        settle = self._random.choices(["ack", "drop", "requeue"], [6, 1, 2])[0]
        return "get", (self._queue(),), {"settle": settle}

    def _send(self) -> Step:
        self._number += 1
        body = b"%d" % self._number
        mode = self._random.choice([1, 2])
        if self._random.random() < 0.6:
            return "send", ("", self._queue()), {"body": body, "delivery_mode": mode}
        key = self._key().replace("*", "star").replace("#", "hash")
        options = {"headers": self._headers() or None, "body": body, "delivery_mode": mode}
        return "send", (self._exchange(), key), options
