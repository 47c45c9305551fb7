"""`cogwork call`: one request, one reply."""

from __future__ import annotations

import click

from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.given_addresses import an_address
from cogwork.cli.options.quantities import DURATION
from cogwork.cli.terminal.rendering import as_json, as_text

__all__ = ("call",)

TIMEOUT_S = 10.0
"""As long as a person waits before wondering whether anyone is there."""


@click.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.argument("body")
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default=TIMEOUT_S,
    show_default=True,
    metavar="S",
    help="Seconds to wait for the reply.",
)
@certified
@click.option(
    "--json", "wants_json", is_flag=True, help="Print the whole reply as one JSON object."
)
def call(url: str, address: str, body: str, timeout_s: float, wants_json: bool) -> None:
    """Send a request and print the reply.

    Exits with 7 if no reply arrives in time.
    """
    reply = reach(url, lambda client: client.request(address, body, timeout_s=timeout_s))
    click.echo(as_json(reply) if wants_json else as_text(reply))
