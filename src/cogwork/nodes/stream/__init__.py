"""Streams: messages in one order, kept, for any number of receivers, from where they like."""

from cogwork.nodes.stream.node import StreamNode
from cogwork.plugin.stream_options import StreamOptions

__all__ = ("StreamNode", "StreamOptions")
