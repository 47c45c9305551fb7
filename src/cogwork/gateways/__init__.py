"""Gateways: programs of other protocols talk to the addresses of a container through them."""
