"""Passwords that do not stand on the command line, where every user of the machine can read them.

A URL names the user; the password comes from `--password-file`, or from the environment variable
`COGWORK_PASSWORD`. A URL that holds one itself is still taken.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click

from cogwork.cli.options.secret_files import SecretFileOption
from cogwork.client.connection.url import (
    BETWEEN,
    PASSWORD_VARIABLE,
    Endpoint,
    endpoints_of,
    parse_url,
)
from cogwork.io.secret_file import SECRET_BYTES_MAX, SecretFileError, one_secret

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = (
    "STDIN",
    "hide",
    "password_option",
    "read_password",
    "with_password",
    "with_passwords",
)

C = TypeVar("C", bound="Callable[..., Any]")

STDIN = "-"

_FILE = SecretFileOption(
    "--password-file",
    "Password of the user in URL: the first line of FILE; - prompts, or reads stdin. "
    f"Default: the environment variable {PASSWORD_VARIABLE}.",
)


def password_option(command: C) -> C:
    """Add `--password-file` to a command: whatever connects it takes the password."""
    return _FILE.add_to(command)


def with_passwords(urls: str) -> list[Endpoint]:
    """Return where URLs lead, with the password that was given beside them.

    Args:
        urls: One, or several between commas.

    Raises:
        InvalidUrlError: One of them is none.
        click.UsageError: `--password-file` was given, and cannot be read or has no user.
    """
    endpoints = endpoints_of(urls)
    password = _given_for(endpoints)
    if password is None:
        return endpoints
    return [replace(each, password=password) if _lacks(each) else each for each in endpoints]


def with_password(urls: str) -> str:
    """Write the password into URLs, for those who take only such; never to be shown."""
    password = _given_for(endpoints_of(urls))
    if password is None:
        return urls
    return ",".join(
        _written(each, password) if _lacks(parse_url(each)) else each
        for each in BETWEEN.split(urls)
    )


def hide(urls: str) -> str:
    """Write URLs without users and passwords, for messages."""
    return ", ".join(map(str, endpoints_of(urls)))


def _lacks(endpoint: Endpoint) -> bool:
    return endpoint.user is not None and not endpoint.password


def _written(url: str, password: str) -> str:
    scheme, _, rest = url.partition("://")
    login, _, place = rest.partition("@")
    return f"{scheme}://{login.removesuffix(':')}:{quote(password, safe='')}@{place}"


def _given_for(endpoints: list[Endpoint]) -> str | None:
    """Return the password that users without one get; None where there is none."""
    context, file = _FILE.given()
    is_wanted = any(map(_lacks, endpoints))
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE) or None if is_wanted else None
    if not is_wanted:
        raise click.UsageError(
            "--password-file needs a user without a password in URL, such as amqps://alice@host",
            context,
        )
    assert context is not None
    kept = f"{_FILE.key}.{file}"
    if kept not in context.meta:  # stdin is read once
        context.meta[kept] = read_password(file, context)
    password: str = context.meta[kept]
    return password


def read_password(file: str, context: click.Context | None = None, *, is_new: bool = False) -> str:
    """Read a password from a file, or from stdin or a prompt for `-`.

    Args:
        file: Its name.
        context: Of the command, for errors.
        is_new: Whether a prompt asks for it twice.

    Raises:
        click.BadParameter: It cannot be read, or is none.
    """
    try:
        if file != STDIN:
            # May be a pipe, as of a shell's <(...).
            with Path(file).open("rb") as opened:
                return _first_line(opened.readline(SECRET_BYTES_MAX + 2), file)
        if sys.stdin.isatty():
            answer: str = click.prompt(
                "Password", hide_input=True, confirmation_prompt=is_new, err=True
            )
            return answer
        binary = getattr(sys.stdin, "buffer", None)
        line = sys.stdin.readline().encode() if binary is None else binary.readline()
        return _first_line(line, "stdin")
    except OSError as error:
        text = f"cannot read '{file}': {error.strerror}"
        raise click.BadParameter(text, context, param_hint="--password-file") from error
    except SecretFileError as error:
        if file == STDIN:
            text = "the password is empty, or holds a NUL character"
            raise click.UsageError(text, context) from error
        raise click.BadParameter(str(error), context, param_hint="--password-file") from error


def _first_line(data: bytes, name: str) -> str:
    return one_secret(data, name)
