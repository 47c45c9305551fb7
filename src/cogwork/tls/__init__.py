"""Certificates: the one place that builds TLS contexts, and what certificates say."""
