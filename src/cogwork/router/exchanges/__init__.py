"""Exchanges: which queues a message goes to, by its keys and headers. Nothing here does I/O."""
