"""Hooks around what a client sends, receives, calls and serves."""
