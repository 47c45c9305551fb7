"""A URL that names one container, for commands that change that very one."""

from __future__ import annotations

import click

from cogwork.client.connection.url import endpoints_of

__all__ = ("single_url",)


def single_url(_context: click.Context, _parameter: click.Parameter, url: str) -> str:
    """Return a URL as it is; a callback of click.

    Raises:
        BadParameter: There are several.
        InvalidUrlError: It is not a URL.
    """
    if len(endpoints_of(url)) > 1:
        raise click.BadParameter(
            "this command changes one container (expected one URL, not several)"
        )
    return url
