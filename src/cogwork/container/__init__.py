"""The composition root: configuration, wiring and the life cycle of a container."""
