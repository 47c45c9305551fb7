"""The client for programs without an event loop: the same calls, and they block.

    with cogwork.sync.connect("amqp://localhost") as mesh:
        mesh.publish("topic/hello", b"world")

Theory of operation. A facade over the asyncio client, which runs on a loop in a thread of its own:
each call is handed to that loop and waited for. Receivers take what has arrived in batches, so that
most messages cost no hand-over between the threads. A mesh may be used by several threads.
"""

from cogwork.sync.ends import Consumer, Publisher, Receiver
from cogwork.sync.mesh import Mesh, connect
from cogwork.sync.schemas import Schemas
from cogwork.sync.stream import Stream

__all__ = ("Consumer", "Mesh", "Publisher", "Receiver", "Schemas", "Stream", "connect")
