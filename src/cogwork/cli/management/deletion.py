"""Giving up a stream or a queue, and saying so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach

if TYPE_CHECKING:
    from cogwork.client import Client

__all__ = ("delete", "tell")


def delete(url: str, kind: str, address: str, *, as_json: bool) -> None:
    """Give up a stream or a queue with all that it holds.

    Args:
        url: The container's.
        kind: What it is, as `$management` calls it.
        address: Which one.
        as_json: Whether to say so in an object.
    """

    async def work(client: Client) -> None:
        await Manager(client).ask("DELETE", kind, address)

    reach(url, work, force=True)
    tell(address, as_json=as_json)


def tell(address: str, *, as_json: bool) -> None:
    """Say that a stream or a queue is given up.

    Args:
        address: Which one.
        as_json: Whether to say so in an object.
    """
    if as_json:
        click.echo(json.dumps({"address": address, "deleted": True}, ensure_ascii=False))
    else:
        click.echo(f"{address} deleted")
