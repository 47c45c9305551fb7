"""`cogwork passwd`: a password becomes a block of the configuration."""

from __future__ import annotations

import json
import sys
import tomllib

import click

from cogwork.container.users import hash_password

__all__ = ("passwd",)

BLOCK = """\
[[user]]
name = {name}
password_hash = {password_hash}
permissions = [{{ address = "#", rights = ["send", "receive"] }}]
"""


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the block as one JSON object.")
def passwd(name: str, as_json: bool) -> None:
    """Hash a password for the configuration file.

    Prints a [[user]] block for NAME. Prompts for the password, or reads the first line of stdin if
    it is not a terminal.
    """
    if not name or not name.isprintable():
        raise click.BadParameter("a name needs printable characters", param_hint="NAME")
    password = _ask() if sys.stdin.isatty() else _first_line()
    if not password or "\0" in password:
        raise click.UsageError("the password is empty, or holds a NUL character")
    block = {"name": name, "password_hash": hash_password(password)}
    # A string of printable characters is written alike in JSON and TOML.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in block.items()}
    text = BLOCK.format(**quoted)
    if as_json:
        (user,) = tomllib.loads(text)["user"]
        click.echo(json.dumps(user, ensure_ascii=False))
    else:
        click.echo(text, nl=False)


def _first_line() -> str:
    """Return the first line of stdin, without a byte order mark and without its end."""
    return sys.stdin.readline().removeprefix("\ufeff").rstrip("\r\n")


def _ask() -> str:
    """Asks on stderr, so that stdout can be appended to a file."""
    answer: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return answer
