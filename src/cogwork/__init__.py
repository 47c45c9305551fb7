"""Cogwork: a distributed message broker that speaks AMQP 1.0."""

__version__ = "0.1.0.dev0"
