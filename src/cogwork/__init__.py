"""Cogwork: a distributed message broker that speaks AMQP 1.0."""

__version__ = "0.1.0.dev0"

from cogwork.dataplane.messages import Message

__all__ = ("Message", "__version__")
