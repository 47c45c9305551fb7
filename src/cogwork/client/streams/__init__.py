"""Streams: appending to them, and reading them from any place."""
