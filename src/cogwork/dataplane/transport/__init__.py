"""Connections, sessions and links as bytes and counters (AMQP 1.0 part 2)."""
