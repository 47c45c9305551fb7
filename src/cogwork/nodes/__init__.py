"""The built-in nodes: topic, queue, stream, sink, management, claims."""
