"""Schemas at the edge: a container holds its own publishers' messages to what is registered."""
