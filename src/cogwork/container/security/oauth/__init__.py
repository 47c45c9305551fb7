"""Logins by token: keys, checks, and what a token's claims stand for."""
