"""What clients written for RabbitMQ 4 are told: they look for its name and version.

Most of them say the virtual host in their open as `vhost:NAME`, where the default one is `/`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from cogwork.amqp.types import Symbol

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Open

__all__ = ("as_rabbitmq", "is_of_rabbitmq", "names_vhost", "vhost_names")

VHOST_PREFIX: Final = "vhost:"

PRODUCT: Final = "RabbitMQ"

OWN_PRODUCTS: Final = ("cogwork", "cogwork-client")

VERSION: Final = "4.0.9"
"""Clients use what later versions have (filters by property, SQL filters) only from those on."""


def names_vhost(hostname: str) -> bool:
    """Return whether an open's hostname is a virtual host's name for sure."""
    return hostname.startswith(VHOST_PREFIX)


def is_of_rabbitmq(opened: Open) -> bool:
    """Return whether a client may be written for RabbitMQ 4.

    Some of these say nothing of themselves; the others name their virtual host as RabbitMQ does.
    This project's own say what they are.
    """
    product = (opened.properties or {}).get(Symbol("product"))
    if product is None:
        return True
    return names_vhost(opened.hostname or "") and product not in OWN_PRODUCTS


def vhost_names(hostname: str) -> tuple[str, str]:
    """Return the names that a virtual host may have which such a client asks for."""
    name = hostname.removeprefix(VHOST_PREFIX)
    return ("", "") if name == "/" else (name, unquote(name))


def as_rabbitmq(opening: Open) -> Open:
    """Return the open that such a client is answered with."""
    told: dict[Symbol, object] = {
        Symbol("product"): PRODUCT,
        Symbol("version"): VERSION,
        Symbol("node"): opening.container_id,
        Symbol("cluster_name"): opening.container_id,
    }
    return replace(opening, properties={**(opening.properties or {}), **told})
