"""The options of commands that speak TLS with certificates of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from cogwork.client.certificates import Certificates

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("certificate_options", "certificates_of")

C = TypeVar("C", bound="Callable[..., Any]")

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)

OPTIONS = (
    click.option("--ca-file", type=FILE, help="For amqps://: the authorities to trust, PEM."),
    click.option("--cert-file", type=FILE, help="A certificate of one's own, PEM."),
    click.option("--key-file", type=FILE, help="Its private key, where that is not in there."),
)


def certificate_options(command: C) -> C:
    """Adds them to a command; they arrive as `ca_file`, `cert_file` and `key_file`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def certificates_of(
    ca_file: str | None, cert_file: str | None, key_file: str | None
) -> Certificates:
    """Reads the options.

    Raises:
        click.UsageError: A key has no certificate.
    """
    if key_file is not None and cert_file is None:
        raise click.UsageError("--key-file needs --cert-file")
    return Certificates(ca_file, cert_file, key_file)
