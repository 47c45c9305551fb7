"""Rows as messages."""
