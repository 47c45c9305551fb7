"""Connections by AMQP 0-9-1: login, channels, and what each method does to queues and exchanges."""
