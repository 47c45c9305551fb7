"""A pair of links at `/management`, as clients of RabbitMQ 4 attach it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self

from proton import Link, Message, PropertyDict, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

if TYPE_CHECKING:
    from .served import Served

__all__ = ("Pair",)

ADDRESS = "/management"


class _Paired(LinkOption):
    """Makes a link one of a pair, whose messages are settled when they are sent."""

    def apply(self, link: Link) -> None:
        link.source.address = link.target.address = ADDRESS
        link.snd_settle_mode = Link.SND_SETTLED
        link.properties = PropertyDict({symbol("paired"): True})


class Pair:
    """Two links of one connection.

    Attributes:
        connection: Theirs.
    """

    def __init__(self, container: Served) -> None:
        self.connection = BlockingConnection(container.url, timeout=20, virtual_host="vhost:/")
        name = str(uuid.uuid4())
        self.requests = self.connection.create_sender(ADDRESS, name=name, options=_Paired())
        self.answers = self.connection.create_receiver(
            ADDRESS, credit=100, name=name, options=_Paired()
        )

    def send(self, method: str, path: str, body: Any = None, reply_to: str = "$me") -> str:
        """Send a request; return its id."""
        number = str(uuid.uuid4())
        message = Message(id=number, subject=method, address=path, body=body, inferred=False)
        message.reply_to = reply_to
        self.requests.send(message)
        return number

    def receive(self) -> tuple[str, int, object]:
        """Return which request was answered, with which status, and the body."""
        answer = self.answers.receive()
        assert answer.properties == {"http:response": "1.1"}
        return str(answer.correlation_id), int(answer.subject or ""), answer.body

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, object]:
        """Send a request; return the status of its answer and the body."""
        number = self.send(method, path, body)
        answered, status, found = self.receive()
        assert answered == number
        return status, found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.connection.close()
