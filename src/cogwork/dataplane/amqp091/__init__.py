"""AMQP 0-9-1 where messages pass: a connection's octets, its channels, their consumers."""
