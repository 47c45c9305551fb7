"""Connections by AMQP 0-9-1, through pika: to containers, and to brokers of other makes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pika

from cogwork.cli.options.certificates import given_context
from cogwork.cli.options.passwords import with_passwords
from cogwork.client.errors import InvalidUrlError
from cogwork.tls.contexts import client_context

if TYPE_CHECKING:
    from cogwork.client.connection.url import Endpoint

__all__ = ("endpoint_parameters", "parameters_of")

DEFAULT_VHOST = "/"
GUEST = "guest"

# What pika logs it also raises, and people are told that.
logging.getLogger("pika").addHandler(logging.NullHandler())

TIMEOUT_S = 10.0
HEARTBEAT_S = 30


def parameters_of(url: str, vhost: str = "") -> pika.ConnectionParameters:
    """Read a URL; the password and the certificates are those of the command line.

    Args:
        url: `amqp://` or `amqps://`.
        vhost: The virtual host, as AMQP 0-9-1 calls it; empty takes that of the URL.

    Raises:
        InvalidUrlError: There are several, or it is of another scheme.
    """
    endpoints = with_passwords(url)
    if len(endpoints) != 1 or endpoints[0].scheme not in ("amqp", "amqps"):
        raise InvalidUrlError("AMQP 0-9-1 needs one URL with amqp:// or amqps://")
    return endpoint_parameters(endpoints[0], vhost)


def endpoint_parameters(endpoint: Endpoint, vhost: str = "") -> pika.ConnectionParameters:
    """Say how pika connects to an endpoint.

    Args:
        endpoint: Where, and with which login; without a user it is RabbitMQ's guest.
        vhost: The virtual host; empty takes that of the endpoint, `/` if it names none.
    """
    encryption = None
    if endpoint.is_encrypted:
        encryption = pika.SSLOptions(given_context() or client_context(), endpoint.name)
    login = (GUEST, GUEST) if endpoint.user is None else (endpoint.user, endpoint.password)
    return pika.ConnectionParameters(
        host=endpoint.host,
        port=endpoint.port,
        virtual_host=vhost or endpoint.vhost or DEFAULT_VHOST,
        credentials=pika.PlainCredentials(*login),
        ssl_options=encryption,
        heartbeat=HEARTBEAT_S,
        blocked_connection_timeout=None,
        socket_timeout=TIMEOUT_S,
        stack_timeout=2 * TIMEOUT_S,
    )
