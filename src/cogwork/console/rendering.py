"""Pages from templates."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from cogwork import __version__
from cogwork.console import text

if TYPE_CHECKING:
    from starlette.requests import Request

    from cogwork.console.session import Session

__all__ = ("FRAGMENT", "NAVIGATION", "is_fragment", "page")

FRAGMENT = "cogwork-fragment"
"""The header of requests for the live part of a page alone."""

NAVIGATION = (
    ("", (("/", "Overview"),)),
    (
        "Messages",
        (
            ("/queues", "Queues"),
            ("/streams", "Streams"),
            ("/exchanges", "Exchanges"),
            ("/bindings", "Bindings"),
            ("/addresses", "Addresses"),
            ("/schemas", "Schemas"),
        ),
    ),
    (
        "Clients",
        (("/connections", "Connections"), ("/links", "Links"), ("/readers", "Readers")),
    ),
    (
        "Containers",
        (("/mesh", "Mesh"), ("/peers", "Links"), ("/cluster", "Cluster"), ("/nodes", "Nodes")),
    ),
    (
        "Administration",
        (
            ("/users", "Users"),
            ("/permissions", "Permissions"),
            ("/vhosts", "Virtual hosts"),
            ("/policies", "Policies"),
            ("/limits", "Limits"),
        ),
    ),
)
"""Groups of pages, in the order of the menu."""


def _link(path: str, **query: object) -> str:
    pairs = {key: each for key, each in query.items() if each not in (None, "")}
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("cogwork.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= text.FORMS
    made.filters |= {
        "body": text.body,
        "line": text.line,
        "plain": text.plain,
        "sections": text.sections,
        "value": text.value,
    }
    made.globals |= {
        "forms": text.FORMS,
        "link": _link,
        "navigation": NAVIGATION,
        "version": __version__,
    }
    return made


_ENVIRONMENT = _environment()


def is_fragment(request: Request) -> bool:
    """Return whether a page fetches its live part by itself."""
    return FRAGMENT in request.headers


def page(
    request: Request,
    template: str,
    session: Session | None,
    /,
    *,
    status: int = HTTPStatus.OK,
    **context: object,
) -> HTMLResponse:
    """Make a page, or its live part where that is what is asked for.

    Args:
        request: Who asks, and for what.
        template: The page's; its live part is the one of this name in `live`.
        session: Whose; None before the login.
        status: Of the answer.
        **context: What the template shows.
    """
    name = f"live/{template}" if is_fragment(request) else template
    context |= {
        "path": request.url.path,
        "here": f"{request.url.path}?{request.url.query}".removesuffix("?"),
        "session": session,
        "problem": context.get("problem"),
        "flashes": [] if session is None or is_fragment(request) else session.take_flashes(),
    }
    return HTMLResponse(_ENVIRONMENT.get_template(name).render(context), status)
