"""Receiving messages: subscriptions of topics, consumers and browsers of queues."""
