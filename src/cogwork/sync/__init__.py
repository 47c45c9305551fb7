"""The client for programs without an event loop: the same calls, and they block.

    with cogwork.sync.connect("amqp://localhost") as client:
        client.publish("topic/hello", b"world")

Theory of operation. A facade over the asyncio client, which runs on a loop in a thread of its own:
each call is handed to that loop and waited for. Receivers take what has arrived in batches, so that
most messages cost no hand-over between the threads. A client may be used by several threads.
"""

from typing import TYPE_CHECKING

from cogwork.moved import renamed
from cogwork.sync.client import Client, connect
from cogwork.sync.ends import Consumer, Publisher, Receiver
from cogwork.sync.schemas import Schemas
from cogwork.sync.stream import Stream

__all__ = ("Client", "Consumer", "Publisher", "Receiver", "Schemas", "Stream", "connect")

if TYPE_CHECKING:
    Mesh = Client
else:

    def __getattr__(name: str) -> object:
        return renamed(__name__, name)
