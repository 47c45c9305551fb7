"""Options that name a file with a secret, which is read wherever a command connects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("SecretFileOption",)

C = TypeVar("C", bound="Callable[..., Any]")


@dataclass(frozen=True)
class SecretFileOption:
    """An option that commands do not get: its file's name is kept with the command's context.

    Attributes:
        flag: What it is called, with its dashes.
        help: What it is for.
    """

    flag: str
    help: str

    @property
    def key(self) -> str:
        """What the file's name is kept under."""
        return f"cogwork.{self.flag.lstrip('-')}"

    def add_to(self, command: C) -> C:
        """Add it to a command."""
        return click.option(
            self.flag, metavar="FILE", help=self.help, expose_value=False, callback=self._keep
        )(command)

    def _keep(self, context: click.Context, _parameter: click.Parameter, file: str | None) -> None:
        if file is not None:
            context.meta[self.key] = file

    def given(self) -> tuple[click.Context | None, str | None]:
        """Return the context of the command that runs, and the file that it was given."""
        context = click.get_current_context(silent=True)
        return context, None if context is None else context.meta.get(self.key)
