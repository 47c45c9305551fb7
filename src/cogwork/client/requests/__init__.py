"""Requests and their replies as messages, and what is asked of `$management`."""
