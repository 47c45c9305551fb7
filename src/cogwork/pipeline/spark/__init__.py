"""Spark: streams as tables, rows as messages.

Nothing is imported here, so that a Spark worker loads what its task needs and no more.
"""
