"""From other brokers: what their exported definitions become, and who declares it."""
