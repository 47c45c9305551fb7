"""What clients are told of the broker, and what they tell of themselves (AMQP 0-9-1 §1.4.2.1)."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from cogwork import __version__

if TYPE_CHECKING:
    from cogwork.amqp091.types import Table
    from cogwork.config.amqp091_settings import Amqp091Options

__all__ = ("has_capability", "product_of", "server_properties", "text_in")

CAPABILITIES: Final = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)
"""All that RabbitMQ names: clients look for each by its name."""

PRODUCT_MAX = 80
"""Characters that are shown of what a client says that it is."""


def server_properties(options: Amqp091Options, container_id: str) -> Table:
    """Return what connection.start says of this container."""
    return {
        "capabilities": dict.fromkeys(CAPABILITIES, True),
        "cluster_name": options.cluster_name or container_id,
        "copyright": "",
        "information": f"Cogwork {__version__}",
        "platform": f"Python {platform.python_version()}",
        "product": options.product,
        "version": options.version,
    }


def has_capability(client_properties: Table, name: str) -> bool:
    """Return whether a client has a capability."""
    capabilities = client_properties.get("capabilities")
    return isinstance(capabilities, dict) and capabilities.get(name) is True


def text_in(client_properties: Table, key: str) -> str:
    """Return a property that is a text, as far as it can be shown; empty where it is none."""
    value = client_properties.get(key)
    text = value if isinstance(value, str) else ""
    return text.encode(errors="replace").decode()[:PRODUCT_MAX]


def product_of(client_properties: Table) -> str:
    """Return what program a client says that it is, and of which version."""
    words = (text_in(client_properties, key) for key in ("product", "version"))
    return " ".join(filter(None, words))[:PRODUCT_MAX]
