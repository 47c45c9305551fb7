"""`cogwork receive`: what arrives at an address, a line each."""

from __future__ import annotations

import click

from cogwork.cli.unfinished import unfinished

__all__ = ("receive",)


@click.command()
@click.argument("url")
@click.argument("address")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many messages.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Stop when nothing came for so many seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Whole messages, one JSON object a line.")
def receive(
    url: str, address: str, count: int | None, timeout_s: float | None, as_json: bool
) -> None:
    """Print what arrives at an address.

    Each message is accepted once it is printed. Without --count, runs until interrupted. Exits
    with 7 if --timeout came before --count messages did.
    """
    unfinished(
        "receive", url=url, address=address, count=count, timeout_s=timeout_s, as_json=as_json
    )
