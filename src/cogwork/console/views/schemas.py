"""What is registered of the messages at each address."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.console.rendering import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session
    from cogwork.schema.events import Registered

__all__ = ("schemas",)

SHOWN_MAX = 200


async def schemas(request: Request, session: Session) -> Response:
    """Show the newest schema of each address."""
    async with session.reaching() as client:
        found = await client.schemas.all()
    search = request.query_params.get("search", "")
    fitting = [each for each in found if search.casefold() in each.address.casefold()]
    return page(
        request,
        "schemas.html",
        session,
        search=search,
        shown=[(each, _written(each)) for each in fitting[:SHOWN_MAX]],
        found=len(fitting),
        total=len(found),
    )


def _written(registered: Registered) -> bytes:
    """Return the definition for people: JSON with line ends, anything else as it is."""
    octets = registered.definition
    with suppress(ValueError):
        return json.dumps(json.loads(octets), indent=2, ensure_ascii=False).encode()
    return octets
