"""Bridges between brokers: queues are taken from one, and sent to another, at least once."""
