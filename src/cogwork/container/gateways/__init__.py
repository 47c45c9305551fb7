"""Gateways in their container: their life, and the door that they come in by."""
