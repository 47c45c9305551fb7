"""Sending messages: publishers, the links that single messages leave on, outcomes."""
