"""Where a command serves HTTP: `--listen HOST:PORT`."""

from __future__ import annotations

import click

__all__ = ("http_place", "shown_host")

PORT_MAX = 65_535


def http_place(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Read an address to listen on; without a host it is this machine's own.

    Args:
        listen: What was given.
        option: How it was given.

    Raises:
        click.BadParameter: It is none.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > PORT_MAX:
        raise click.BadParameter(
            f"{listen!r} is no address (expected HOST:PORT)", param_hint=option
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def shown_host(host: str) -> str:
    """Write a host as it stands in a URL (RFC 3986 §3.2.2)."""
    return f"[{host}]" if ":" in host else host
