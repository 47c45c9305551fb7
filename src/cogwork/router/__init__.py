"""Addresses and patterns: pure decisions, handed to the data plane as plans."""
