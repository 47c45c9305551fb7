"""Servers of other makes, started for measurements and tests: own ports, own directories."""
