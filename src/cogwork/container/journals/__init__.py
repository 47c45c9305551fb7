"""Queues on disk: each one's journal in the write-ahead log, and what is read back from it."""
