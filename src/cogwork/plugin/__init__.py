"""What a plug-in may see: nodes, their effects, the base for nodes that work on messages."""

from cogwork.plugin.effects import Detach, Effect, Publish, Report, Send, Settle
from cogwork.plugin.engine.engines import Engines
from cogwork.plugin.message_node import MessageNode
from cogwork.plugin.node import Node, NodeContext, NodeFactory, Refused, Subscription

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
