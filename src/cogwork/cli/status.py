"""`cogwork status`: what a container holds and has done."""

from __future__ import annotations

import click

from cogwork.cli.unfinished import unfinished

__all__ = ("status",)


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="The whole state as one JSON object.")
def status(url: str, as_json: bool) -> None:
    """Show what a container holds and has done.

    Connections, links, and addresses with their counts: in, out, released, dropped, unsettled,
    depth.
    """
    unfinished("ask for a status", url=url, as_json=as_json)
