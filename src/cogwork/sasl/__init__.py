"""SASL mechanisms, without I/O: one file for each, and a table of them (RFC 4422)."""
