"""Queues: what waits, who takes it, what is written down of it, and what other containers lend."""
