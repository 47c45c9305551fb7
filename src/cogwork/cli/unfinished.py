"""What a command says whose work is not written yet."""

from __future__ import annotations

from typing import NoReturn

import click

__all__ = ("unfinished",)


def unfinished(command: str, **arguments: object) -> NoReturn:
    """Refuses to go on.

    Args:
        command: Which one.
        arguments: What it would have worked with.

    Raises:
        click.ClickException: Always.
    """
    given = ", ".join(arguments)
    raise click.ClickException(f"this version cannot {command} yet (given: {given})")
