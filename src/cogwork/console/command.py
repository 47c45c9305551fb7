"""`cogwork console`: a web console for a container."""

from __future__ import annotations

import asyncio
import json
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from cogwork.amqp.loopback import is_loopback
from cogwork.cli.options.certificates import FILE, certificates_of
from cogwork.cli.options.http_place import http_place, shown_host
from cogwork.cli.options.log_format import log_format
from cogwork.cli.process.companions import end_with_stdin
from cogwork.cli.process.log_lines import start_log
from cogwork.client.connection.url import endpoints_of

if TYPE_CHECKING:
    from cogwork.client.connection.url import Endpoint

__all__ = ("console",)

PORT = 9420
BACKLOG = 128
NEEDED = ("starlette", "uvicorn", "jinja2")


@click.command()
@click.argument("url")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{PORT}",
    show_default=True,
    help="Address to serve HTTP on; port 0 takes a free one.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name that browsers open it by, besides localhost and addresses; repeatable.",
)
@click.option("--https-cert", type=FILE, help="Certificate to serve HTTPS with (PEM).")
@click.option("--https-key", type=FILE, help="Its private key, if the file does not hold it (PEM).")
@click.option("--ca-file", type=FILE, help="Trusted certificate authorities for amqps:// (PEM).")
@log_format
@click.option("--companion", is_flag=True, hidden=True, help="Stop when stdin ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON object.")
def console(
    url: str,
    *,
    listen: str,
    hosts: tuple[str, ...],
    https_cert: str | None,
    https_key: str | None,
    ca_file: str | None,
    logs_json: bool,
    companion: bool,
    as_json: bool,
) -> None:
    """Serve a web console for the browser.

    It shows the container at URL. Browsers log in with users and passwords of the container, and
    may do there what the container lets them. URL names no user: the console has no rights of its
    own. Beyond this machine it serves HTTPS only.
    """
    missing = [each for each in NEEDED if find_spec(each) is None]
    if missing:
        raise click.UsageError(f"{missing[0]} is missing: pip install 'cogwork[console]'")
    endpoints = _nobodys(url)
    place = http_place(listen)
    if https_key is not None and https_cert is None:
        raise click.UsageError("--https-key needs --https-cert")
    if https_cert is None and not is_loopback(place[0]):
        raise click.UsageError(
            f"{listen!r} is reached from other machines: give --https-cert, or let a proxy on this "
            "machine serve HTTPS"
        )
    from cogwork.console.app import Console  # noqa: PLC0415  # needs the extra
    from cogwork.console.serving import serve  # noqa: PLC0415  # the same
    from cogwork.console.settings import Settings  # noqa: PLC0415  # with them

    settings = Settings(
        endpoints,
        certificates_of(ca_file, None, None).context() if ca_file is not None else None,
        frozenset(each.lower() for each in (*hosts, place[0])),
        is_secure=https_cert is not None,
    )
    start_log("console", (), as_json=logs_json)
    if companion:
        end_with_stdin()
    with _listening(*place) as listener:
        scheme = "http" if https_cert is None else "https"
        address = f"{scheme}://{shown_host(place[0])}:{listener.getsockname()[1]}/"
        click.echo(json.dumps({"url": address}) if as_json else f"console at {address}")
        asyncio.run(serve(Console(settings), listener, https_cert, https_key))


def _nobodys(url: str) -> tuple[Endpoint, ...]:
    """Read the URL, in which nobody may be named."""
    endpoints = tuple(endpoints_of(url))
    if any(each.user is not None for each in endpoints):
        raise click.BadParameter(
            "found a user in URL, expected none: each browser logs in by itself", param_hint="URL"
        )
    return endpoints


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)
