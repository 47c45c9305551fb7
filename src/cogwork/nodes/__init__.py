"""The built-in nodes: topic, queue, sink, management."""
