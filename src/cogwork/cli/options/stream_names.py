"""How people name streams on the command line: `orders`, or `stream/orders`."""

from __future__ import annotations

import click

from cogwork.cli.options.given_addresses import an_address
from cogwork.router.addresses import DEFAULT_RULES, AddressTable, InvalidAddressError
from cogwork.router.patterns import is_pattern

__all__ = ("PREFIX", "a_name", "address_of", "is_elsewhere", "is_stream", "new_name")

PREFIX = "stream/"

_BUILT_IN = AddressTable(DEFAULT_RULES)


def address_of(name: str) -> str:
    """Return a stream's address: `orders` is `stream/orders`."""
    return name if "/" in name else PREFIX + name


def is_elsewhere(address: str) -> bool:
    """Return whether an address is something else than a stream, by the built-in prefixes.

    What none of them knows may be a stream by the configuration: the container says.

    Raises:
        InvalidAddressError: It is no address at all.
    """
    rule = _BUILT_IN.resolve(address)
    return bool(rule.prefix) and rule.kind != "stream"


def is_stream(address: str) -> bool:
    """Return whether an address is a stream's, by the built-in prefixes."""
    try:
        return _BUILT_IN.resolve(address).kind == "stream"
    except InvalidAddressError:
        return False


def a_name(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Refuse, as a parameter's callback, what names no stream at all."""
    if not name:
        raise click.BadParameter("'' is not a stream's name (expected NAME or stream/NAME)")
    return an_address(ctx, parameter, name)


def new_name(_ctx: click.Context, _parameter: click.Parameter, name: str) -> str:
    """Refuse, as a parameter's callback, what no stream can be named."""
    try:
        is_good = not (name.endswith("/") or is_pattern(name) or is_elsewhere(address_of(name)))
    except InvalidAddressError as error:
        raise click.BadParameter(str(error)) from error
    if not name or not is_good or not name.isprintable():
        raise click.BadParameter(
            f"{name!r:.200} is not a stream's name (expected NAME or stream/NAME)"
        )
    return name
