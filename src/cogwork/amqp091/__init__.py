"""AMQP 0-9-1 without I/O: frames, field tables, methods, content, state tables."""
