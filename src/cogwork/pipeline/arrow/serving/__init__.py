"""Processes beside a container that serve its streams as Arrow record batches."""
