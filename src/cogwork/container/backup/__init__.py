"""Backups of a data directory that is in use, and what is restored from them."""
