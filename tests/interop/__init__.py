"""Foreign AMQP 1.0 clients judge the broker."""
