"""Orders with a schema, containers that know it, and publishers that do not."""

from __future__ import annotations

import json
from typing import Any

from proton import Delivery, Message, symbol
from proton.utils import BlockingConnection

from .served import Served, within

ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer", "minimum": 1}},
}
CONFIGURATION = """
[[schema]]
address = "*/orders.#"

[[schema]]
address = "*/orders.free"
policy = "ignore"

[[schema]]
address = "*/known.#"
policy = "enforce-registered"

[[stream]]
address = "stream/orders.kept"
"""


class Peer:
    """A foreign client."""

    def __init__(self, edge: Served) -> None:
        self.connection = BlockingConnection(edge.url, timeout=10)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.connection.close()

    def send(self, address: str | None, message: Message) -> tuple[str, str, dict[str, Any]]:
        """Send a message; return the outcome, and of a rejection the error's parts."""
        sender = self.connection.create_sender(address)
        delivery: Any = sender.link.send(message)
        self.connection.wait(lambda: delivery.settled, msg="the outcome")
        found = delivery.remote
        state = {
            Delivery.ACCEPTED: "accepted",
            Delivery.REJECTED: "rejected",
            Delivery.RELEASED: "released",
        }[delivery.remote_state]
        condition = found.condition
        sender.close()
        if condition is None:
            return state, "", {}
        info = {str(key): value for key, value in (condition.info or {}).items()}
        return f"{state} {condition.name}", condition.description or "", info


def json_message(value: object, address: str | None = None) -> Message:
    body, kind = json.dumps(value).encode(), symbol("application/json")
    return Message(body=body, inferred=True, content_type=kind, address=address)


MISMATCH = "rejected cogwork:schema-mismatch"


def known(edge: Served, count: int) -> None:
    """Wait until the container knows of so many schemas."""

    def facts() -> dict[str, Any]:
        found: dict[str, Any] = edge.status()["container"]["schemas"][""]
        return found

    within(30, lambda: facts()["is_current"] and facts()["registered"] >= count, "it knows")


ENFORCED = """
[[schema]]
address = "topic/orders.#"
"""
