"""What the command line asks of `$management`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.client import LinkRefused
from cogwork.client.requests.management import manage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.amqp.types import Symbol
    from cogwork.client import Client, Message

__all__ = ("Manager",)

Row = dict[str, Any]


class Manager:
    """Sends requests and reads replies; errors of the container are raised as the client does."""

    def __init__(self, client: Client, worker: str = "") -> None:
        """Initialize it with a mesh.

        Args:
            client: Connected.
            worker: Who that is, for errors, where it is one of several.
        """
        self._client = client
        self._worker = worker

    async def ask(
        self,
        operation: str,
        kind: str,
        name: str = "",
        properties: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Message:
        """Have something done; return the reply.

        Args:
            operation: What.
            kind: The type of entity.
            name: Which one.
            properties: What else the operation takes; what is None is left out.
            body: Or this.

        Raises:
            LinkRefused: It was not done.
        """
        asked = {"type": kind, "name": name or None, **(properties or {})}
        present = {key: value for key, value in asked.items() if value is not None}
        try:
            return await manage(self._client, operation, present, body)
        except LinkRefused as error:
            # Who asks for it means nothing to a user; what it is about does.
            raise self.refused(type(error), name, error.condition, error.description) from error

    def refused(
        self, kind: type[LinkRefused], name: str, condition: Symbol | None, description: str
    ) -> LinkRefused:
        """Make the error that something was not done.

        Args:
            kind: Of error.
            name: What it is about.
            condition: Why, for programs.
            description: Why, for people.
        """
        about = "" if name in description else name
        whose = f"worker {self._worker}: " if self._worker else ""
        return kind(about, condition, f"{whose}{description}")

    async def get(
        self,
        operation: str,
        kind: str,
        name: str = "",
        properties: Mapping[str, object] | None = None,
    ) -> Any:  # noqa: ANN401  # whatever the operation answers
        """Have something done; return the reply's body."""
        return (await self.ask(operation, kind, name, properties)).body

    async def rows(
        self, kind: str, attributes: Sequence[str] = (), count_max: int | None = None
    ) -> tuple[list[Row], int]:
        """Query entities, page by page.

        Args:
            kind: Their type.
            attributes: Which ones; all without.
            count_max: How many at most; all without.

        Returns:
            Their attributes, and how many there are in all.
        """
        rows: list[Row] = []
        wanted = {"attributeNames": list(attributes)} if attributes else None
        while True:
            left = None if count_max is None else count_max - len(rows)
            page_asked = {"index": len(rows), "count": left}
            reply = await self.ask("QUERY", kind, properties=page_asked, body=wanted)
            page: Any = reply.body
            names = page["attributeNames"]
            rows += [dict(zip(names, row, strict=True)) for row in page["results"]]
            total = int(str(reply.properties["total"]))
            if not page["results"] or len(rows) >= min(total, count_max or total):
                return rows, total
