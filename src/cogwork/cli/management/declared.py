"""What `cogwork user`, `permission` and their like do alike: ask, remove, list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import console, table, widened
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.client import Client

__all__ = ("Declared",)


@dataclass(frozen=True)
class Declared:
    """A kind of thing that a cluster declares, as its commands see it.

    Attributes:
        type: Its type in `$management`.
        title: What several are called.
        columns: The attributes that are listed, with the heading of each.
    """

    type: str
    title: str
    columns: Mapping[str, str]

    def ask(
        self, url: str, operation: str, name: str, options: Mapping[str, object] | None = None
    ) -> Any:  # noqa: ANN401  # whatever the container answers
        """Have one created, updated or deleted; return what the container answers."""

        async def work(client: Client) -> Any:  # noqa: ANN401  # the same
            return (await Manager(client).ask(operation, self.type, name, body=options)).body

        return reach(url, work, force=True)

    def tell(self, row: Mapping[str, object], verb: str, *, as_json: bool) -> None:
        """Print what one is by now, or what was done to it."""
        text = json.dumps(jsonable(row), ensure_ascii=False)
        click.echo(text if as_json else visible(f"{row['name']} {verb}"))

    def remove(self, url: str, name: str, *, as_json: bool) -> None:
        """Have one deleted, and say so."""
        self.ask(url, "DELETE", name)
        text = json.dumps({"removed": name}, ensure_ascii=False)
        click.echo(text if as_json else visible(f"{name} removed"))

    def add_remove(self, group: click.Group, text: str) -> None:
        """Give a group its command `remove`, of a name.

        Args:
            group: Of commands.
            text: The help of the command.
        """

        @group.command("remove", help=text)
        @click.argument("url", callback=single_url)
        @click.argument("name")
        @certified
        @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
        def remove(url: str, name: str, as_json: bool) -> None:
            self.remove(url, name, as_json=as_json)

    def add_list(self, group: click.Group, text: str) -> None:
        """Give a group its command `list`.

        Args:
            group: Of commands.
            text: The help of the command.
        """

        @group.command("list", help=text)
        @click.argument("url", callback=single_url)
        @certified
        @widened
        @click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
        def list_(url: str, as_json: bool) -> None:
            self._list(url, as_json=as_json)

    def _list(self, url: str, *, as_json: bool) -> None:
        async def work(client: Client) -> list[dict[str, Any]]:
            return (await Manager(client).rows(self.type))[0]

        rows = reach(url, work, force=True)
        if as_json:
            click.echo(json.dumps(jsonable(rows), ensure_ascii=False))
            return
        screen = console()
        for part in table(self.title, self.columns, rows, len(rows)):
            screen.print(part)
