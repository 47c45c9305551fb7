"""Queues: what waits, who takes it, what is journaled, and remote items."""
