"""Queues: each message to one consumer, kept until that one has confirmed it."""

from cogwork.nodes.queue.node import QueueNode
from cogwork.plugin.queue_options import QueueOptions

__all__ = ("QueueNode", "QueueOptions")
