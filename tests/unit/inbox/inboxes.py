"""Inboxes of a database under test."""

import sqlite3

from cogwork.inbox import Inbox


def inbox_of(database: sqlite3.Connection, consumer: str = "billing") -> Inbox:
    """Make the inbox of a consumer, and its tables."""
    inbox = Inbox(database, consumer)
    inbox.create()
    return inbox
