"""Hostile bytes at every point of a connection, while bystanders' messages go on.

`seeds` says good conversations by code and keeps them in `corpus/`; `mutation` spoils them by a
seeded generator; `victim` is a whole container in process; `python -m fuzz` feeds it a million of
them, under AddressSanitizer with `make fuzz`.
"""
