"""`cogwork passwd`: a password becomes a block of the configuration."""

from __future__ import annotations

import json
import os
import tomllib

import click

from cogwork.cli.options.passwords import STDIN, read_password
from cogwork.client.connection.url import PASSWORD_VARIABLE
from cogwork.config.password_hash import hash_password
from cogwork.sasl.verifier import HASHES, make_verifier

__all__ = ("passwd",)

BLOCK = """\
[[user]]
name = {name}
password_hash = {password_hash}
scram_verifiers = [
    {sha256},
    {sha512},
]
"""


@click.command()
@click.argument("name")
@click.option(
    "--password-file",
    metavar="FILE",
    show_default=f"the environment variable {PASSWORD_VARIABLE}, else a prompt or stdin",
    help="File with the password; - prompts, or reads stdin.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the block as one JSON object.")
def passwd(name: str, password_file: str | None, as_json: bool) -> None:
    """Hash a password for the configuration file.

    Prints a [[user]] block for NAME, with what SASL PLAIN and SCRAM take, and without any
    permission. Prompts for the password, or reads the first line of stdin if it is not a terminal.
    """
    if not name or not name.isprintable():
        raise click.BadParameter("a name needs printable characters", param_hint="NAME")
    password = _password(password_file)
    if not password or "\0" in password:
        raise click.UsageError("the password is empty, or holds a NUL character")
    verifiers = {each: str(make_verifier(each, password)) for each in HASHES}
    block = {"name": name, "password_hash": hash_password(password), **verifiers}
    # A string of printable characters is written alike in JSON and TOML.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in block.items()}
    text = BLOCK.format(**quoted)
    if as_json:
        (user,) = tomllib.loads(text)["user"]
        click.echo(json.dumps(user, ensure_ascii=False))
    else:
        click.echo(text, nl=False)


def _password(file: str | None) -> str:
    """Return the password: of a file, of the environment, or what stdin or a prompt brings."""
    context = click.get_current_context(silent=True)
    if file is not None:
        return read_password(file, context, is_new=True)
    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        # Whoever has set it for other commands may not expect it here.
        click.echo(f"cogwork: the password is that of {PASSWORD_VARIABLE}", err=True)
        return given
    return read_password(STDIN, context, is_new=True)
