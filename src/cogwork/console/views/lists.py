"""Lists: one view for all kinds of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.console.actions.registry import ACTIONS
from cogwork.console.kinds import KINDS
from cogwork.console.listing import Asked, listing_of
from cogwork.console.rendering import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session

__all__ = ("listed",)


async def listed(request: Request, session: Session) -> Response:
    """Show a page of a list."""
    kind = KINDS[request.url.path.removeprefix("/")]
    rows = await session.rows(kind.type, kind.attributes)
    listing = listing_of(kind, rows, Asked.of(request.query_params, kind))
    return page(
        request,
        "list.html",
        session,
        kind=kind,
        listing=listing,
        actions=[ACTIONS[each] for each in kind.actions],
    )
