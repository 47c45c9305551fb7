"""A container's figures for Prometheus: read from `$management`, and served over HTTP."""
