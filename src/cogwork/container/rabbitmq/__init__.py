"""RabbitMQ 4's `/management`: queues, exchanges and bindings for clients of AMQP 1.0."""
