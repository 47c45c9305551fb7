"""The options of commands that speak TLS with certificates of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from cogwork.cli.options.passwords import password_option
from cogwork.cli.options.tokens import token_option
from cogwork.client.connection.certificates import Certificates

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

__all__ = ("certificate_options", "certificates_of", "certified", "given_context", "given_files")

C = TypeVar("C", bound="Callable[..., Any]")

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)

OPTIONS = {
    "--ca-file": "Trusted certificate authorities for amqps:// (PEM).",
    "--cert-file": "Client certificate (PEM).",
    "--key-file": "Private key, if the certificate file does not hold it (PEM).",
}

KEPT = "cogwork.certificates"
"""Where click's context keeps what a command's function has no parameters for."""


def certificate_options(command: C) -> C:
    """Add them to a command; they arrive as `ca_file`, `cert_file` and `key_file`.

    The one for the password is added, too, which arrives by `cogwork.cli.options.passwords`.
    """
    command = password_option(command)
    for name, text in reversed(OPTIONS.items()):
        command = click.option(name, type=FILE, help=text)(command)
    return command


def certified(command: C) -> C:
    """Add them to a command that does not ask for them: whatever connects it takes them.

    So it does a password and a token.
    """
    command = token_option(password_option(command))
    for name, text in reversed(OPTIONS.items()):
        option = click.option(name, type=FILE, help=text, expose_value=False, callback=_keep)
        command = option(command)
    return command


def _keep(ctx: click.Context, parameter: click.Parameter, file: str | None) -> None:
    ctx.meta.setdefault(KEPT, {})[parameter.name] = file


def given_context() -> ssl.SSLContext | None:
    """Read the files that the command line names; None where it names none.

    Raises:
        click.UsageError: A key has no certificate.
        TlsFilesError: A file cannot be used.
    """
    context = click.get_current_context(silent=True)
    files = cast("dict[str, str | None]", {} if context is None else context.meta.get(KEPT, {}))
    return certificates_of(**files).context() if files else None


def given_files() -> list[str]:
    """Return the options that were given, as they stand on a command line."""
    context = click.get_current_context(silent=True)
    files = cast("dict[str, str | None]", {} if context is None else context.meta.get(KEPT, {}))
    given = [(f"--{name.replace('_', '-')}", file) for name, file in files.items()]
    return [word for name, file in given if file is not None for word in (name, file)]


def certificates_of(
    ca_file: str | None, cert_file: str | None, key_file: str | None
) -> Certificates:
    """Read the options.

    Raises:
        click.UsageError: A key has no certificate.
    """
    if key_file is not None and cert_file is None:
        context = click.get_current_context(silent=True)
        raise click.UsageError("--key-file needs --cert-file", context)
    return Certificates(ca_file, cert_file, key_file)
