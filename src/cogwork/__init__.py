"""Cogwork: a distributed message broker that speaks AMQP 1.0."""
