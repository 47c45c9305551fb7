"""Addresses as arguments: what no container would take is refused before one is asked."""

from __future__ import annotations

import click

from cogwork.router.addresses import InvalidAddressError, normalize

__all__ = ("an_address",)


def an_address(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Refuse, as a parameter's callback, what is no address."""
    try:
        normalize(text)
    except InvalidAddressError as error:
        raise click.BadParameter(str(error)) from error
    return text
