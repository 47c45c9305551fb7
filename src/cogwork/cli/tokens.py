"""Tokens to log in by, from a file or the environment: never on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cogwork.client.tokens import is_token
from cogwork.io.secret_file import SecretFileError, read_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client.tokens import Token

__all__ = ("TOKEN", "given_token", "token_option")

C = TypeVar("C", bound="Callable[..., Any]")

TOKEN = "COGWORK_TOKEN"  # the name of a variable
"""The environment variable."""

_KEPT = "cogwork.token_file"


def token_option(command: C) -> C:
    """Adds `--token-file` to a command: whatever connects it takes the token."""
    return click.option(
        "--token-file",
        metavar="FILE",
        help="Token to log in by (SASL OAUTHBEARER): FILE is read for each connection. "
        f"Default: the environment variable {TOKEN}.",
        expose_value=False,
        callback=_keep,
    )(command)


def _keep(ctx: click.Context, _parameter: click.Parameter, file: str | None) -> None:
    if file is not None:
        ctx.meta[_KEPT] = file


def given_token() -> Token | None:
    """Return the token that was given, or what reads it for each connection; None without one.

    Raises:
        click.UsageError: It is none, or cannot be read.
    """
    context = click.get_current_context(silent=True)
    file = None if context is None else context.meta.get(_KEPT)
    if file is None:
        text = os.environ.get(TOKEN)
        if text and not is_token(text):
            raise click.UsageError(f"{TOKEN} holds no token", context)
        return text or None
    path = Path(file)
    try:
        first = read_secret(path).text
    except SecretFileError as error:
        raise click.BadParameter(str(error), context, param_hint="--token-file") from error
    if not is_token(first):
        text = f"'{file}' holds no token"
        raise click.BadParameter(text, context, param_hint="--token-file")
    return lambda: read_secret(path).text
