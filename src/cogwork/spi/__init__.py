"""What a plug-in may see: nodes, their effects, the base for nodes that work on messages."""

from cogwork.spi.effects import Detach, Effect, Publish, Report, Send, Settle
from cogwork.spi.engines import Engines
from cogwork.spi.message_node import MessageNode
from cogwork.spi.node import Node, NodeContext, NodeFactory, Refused, Subscription

__all__ = (
    "Detach",
    "Effect",
    "Engines",
    "MessageNode",
    "Node",
    "NodeContext",
    "NodeFactory",
    "Publish",
    "Refused",
    "Report",
    "Send",
    "Settle",
    "Subscription",
)
