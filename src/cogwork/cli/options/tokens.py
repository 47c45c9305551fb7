"""Tokens to log in by, from a file or the environment: never on the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cogwork.cli.options.secret_files import SecretFileOption
from cogwork.client.connection.tokens import TokenFile, is_token
from cogwork.io.secret_file import SecretFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.client.connection.tokens import Token

__all__ = ("TOKEN", "given_token", "given_token_file", "token_option")

C = TypeVar("C", bound="Callable[..., Any]")

TOKEN = "COGWORK_TOKEN"  # the name of a variable
"""The environment variable."""

_FILE = SecretFileOption(
    "--token-file",
    "Token to log in by (SASL OAUTHBEARER): FILE is read for each connection. "
    f"Default: the environment variable {TOKEN}.",
)


def token_option(command: C) -> C:
    """Add `--token-file` to a command: whatever connects it takes the token."""
    return _FILE.add_to(command)


def given_token() -> Token | None:
    """Return the token that was given, or what reads it for each connection; None without one.

    Raises:
        click.UsageError: It is none, or cannot be read.
    """
    context, file = _FILE.given()
    if file is None:
        text = os.environ.get(TOKEN)
        if text and not is_token(text):
            raise click.UsageError(f"{TOKEN} holds no token", context)
        return text or None
    token = TokenFile(file)
    try:
        token()
    except SecretFileError as error:
        raise click.BadParameter(str(error), context, param_hint=_FILE.flag) from error
    return token


def given_token_file() -> list[str]:
    """Return the option, as it stands on a command line; nothing without it."""
    file = _FILE.given()[1]
    return [] if file is None else [_FILE.flag, file]
