"""AMQP 1.0 without I/O: types, performatives, message sections, state tables."""
