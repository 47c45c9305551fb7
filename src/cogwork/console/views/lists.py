"""Lists: one view for all kinds of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.console.actions.registry import ACTIONS
from cogwork.console.kinds import KINDS
from cogwork.console.listing import Asked, listing_of
from cogwork.console.rendering import is_fragment, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session

__all__ = ("listed",)

FIRST_CONTENT_S = 0.5
"""A page with a longer list comes without it, and fetches it by itself."""


async def listed(request: Request, session: Session) -> Response:
    """Show a page of a list."""
    kind = KINDS[request.url.path.removeprefix("/")]
    asked = Asked.of(request.query_params, kind)
    wait_s = None if is_fragment(request) else FIRST_CONTENT_S
    rows = await session.rows_soon(kind.type, kind.attributes, wait_s)
    return page(
        request,
        "list.html",
        session,
        kind=kind,
        asked=asked,
        listing=None if rows is None else listing_of(kind, rows, asked),
        actions=[ACTIONS[each] for each in kind.actions],
    )
