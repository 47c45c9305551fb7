"""The engine `nats`: streams on NATS JetStream.

Theory of operation. A stream of ours is a stream of JetStream with one subject; an entry is a
message, published with the last sequence that is expected, which the stream's leader compares. The
position is the sequence. JetStream answers when a majority of replicas has the message, and before
any disk has synchronised it: with three replicas that is replicated memory, with one it is memory.
A reader is a pull consumer that asks for no more than it has room for.
"""

from cogwork.engines.nats.host import NatsHost

__all__ = ("NatsHost",)
