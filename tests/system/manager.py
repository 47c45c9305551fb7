"""A foreign client of `$management`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

if TYPE_CHECKING:
    from types import TracebackType

Json: TypeAlias = Any

TIMEOUT_S = 30.0


class Manager:
    """Asks one container.

    Args:
        url: Where it listens, with user and password where they are needed.
    """

    def __init__(self, url: str, **options: Json) -> None:
        self.connection = BlockingConnection(url, timeout=TIMEOUT_S, **options)
        self._client = SyncRequestResponse(self.connection, "$management")

    def __enter__(self) -> Manager:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    def ask(self, operation: str, kind: str = "", body: Json = None, **properties: Json) -> Json:
        """Send a request; return the reply whole."""
        asked = {"operation": operation, **({"type": kind} if kind else {}), **properties}
        return self._client.call(Message(properties=asked, body=body))

    def get(self, operation: str, kind: str = "", body: Json = None, **properties: Json) -> Json:
        """Send a request; return the body of a reply that says it was carried out."""
        reply = self.ask(operation, kind, body, **properties)
        status = reply.properties["statusCode"]
        assert 200 <= status < 300, f"{status} {reply.properties['statusDescription']}"
        return reply.body

    def refusal(
        self, operation: str, kind: str = "", body: Json = None, **properties: Json
    ) -> tuple[int, str]:
        """Send a request; return the status and the text of a reply that says it was not."""
        reply = self.ask(operation, kind, body, **properties)
        return reply.properties["statusCode"], reply.properties["statusDescription"]

    def rows(self, kind: str, **properties: Json) -> list[dict[str, Json]]:
        """Query all entities of a type, page by page."""
        rows: list[dict[str, Json]] = []
        while True:
            reply = self.ask("QUERY", kind, index=len(rows), **properties)
            assert reply.properties["statusCode"] == 200, reply.properties["statusDescription"]
            page = reply.body["results"]
            rows += [dict(zip(reply.body["attributeNames"], row, strict=True)) for row in page]
            if not page or len(rows) >= reply.properties["total"]:
                return rows

    def row(self, kind: str, **wanted: Json) -> dict[str, Json]:
        """Find the one entity that has these attributes."""
        (found,) = (
            row
            for row in self.rows(kind)
            if all(row[key] == value for key, value in wanted.items())
        )
        return found
