"""The application: which path leads to which view, and what becomes of what goes wrong there."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cogwork.cli.terminal.visible import visible
from cogwork.client import ClientError, NotFound, PermissionDenied
from cogwork.console.errors import ContainerAway, SessionEnded, WrongForm
from cogwork.console.guards import Guard
from cogwork.console.kinds import KINDS
from cogwork.console.rendering import is_fragment, page
from cogwork.console.sessions import Sessions
from cogwork.console.views.details import DETAILS, detailed
from cogwork.console.views.doing import do
from cogwork.console.views.items import items, records
from cogwork.console.views.lists import listed
from cogwork.console.views.login import Login, cookie_name
from cogwork.console.views.mesh import cluster, mesh
from cogwork.console.views.overview import overview
from cogwork.console.views.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from cogwork.console.session import Session
    from cogwork.console.settings import Settings

    View = Callable[[Request, Session], Awaitable[Response]]

__all__ = ("Console",)

STATUS: dict[type[Exception], HTTPStatus] = {
    ContainerAway: HTTPStatus.SERVICE_UNAVAILABLE,
    WrongForm: HTTPStatus.BAD_REQUEST,
    PermissionDenied: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    ClientError: HTTPStatus.BAD_GATEWAY,
}
"""What a browser is told of an error; the first class that fits decides."""

TITLES = {
    HTTPStatus.SERVICE_UNAVAILABLE: "The container does not answer",
    HTTPStatus.FORBIDDEN: "You may not see this",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.BAD_REQUEST: "This cannot be done",
    HTTPStatus.BAD_GATEWAY: "The container refuses",
}


class Console:
    """The web console of one container, as an ASGI application.

    Attributes:
        sessions: Who is logged in.
    """

    def __init__(self, settings: Settings) -> None:
        """Serve nobody yet.

        Args:
            settings: Where the container is, and how browsers are treated.
        """
        self.sessions = Sessions(settings)
        self._is_secure = settings.is_secure
        place = ", ".join(map(str, settings.endpoints))
        login = Login(self.sessions, place, is_secure=settings.is_secure)
        self._guarded: ASGIApp = Guard(
            Starlette(
                routes=[
                    Route("/login", login.show, methods=["GET"]),
                    Route("/login", self._answered(login.log_in), methods=["POST"]),
                    Route("/logout", self._signed_in(login.log_out), methods=["POST"]),
                    Route("/", self._signed_in(overview)),
                    *(Route(f"/{path}", self._signed_in(listed)) for path in KINDS),
                    *(Route(f"/{path}", self._signed_in(detailed)) for path in DETAILS),
                    Route("/mesh", self._signed_in(mesh)),
                    Route("/cluster", self._signed_in(cluster)),
                    Route("/schemas", self._signed_in(schemas)),
                    Route("/queue/items", self._signed_in(items)),
                    Route("/stream/records", self._signed_in(records)),
                    Route("/do/{action}", self._signed_in(do), methods=["POST"]),
                    Mount("/static", StaticFiles(packages=[("cogwork.console", "static")])),
                ],
                lifespan=self._living,
            ),
            settings,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guarded(scope, receive, send)

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        """End sessions in time, and all of them at the end."""
        sweeping = asyncio.create_task(self.sessions.keep_swept())
        try:
            yield
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping
            await self.sessions.close()

    def _signed_in(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        """Let a view be seen by those who are logged in, and the others log in first."""

        async def answer(request: Request) -> Response:
            token = request.cookies.get(cookie_name(request, is_secure=self._is_secure), "")
            session = self.sessions.find(token, is_asked_for=not is_fragment(request))
            if session is None:
                return _log_in_first(request, "" if token == "" else "ended")
            try:
                return await view(request, session)
            except SessionEnded:
                await self.sessions.end(session)
                return _log_in_first(request, "refused")
            except tuple(STATUS) as error:
                return _problem(request, session, error)

        return answer

    def _answered(
        self, view: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Let a view without a session refuse a form."""

        async def answer(request: Request) -> Response:
            try:
                return await view(request)
            except WrongForm as error:
                return PlainTextResponse(str(error), HTTPStatus.BAD_REQUEST)

        return answer


def _log_in_first(request: Request, why: str) -> Response:
    if is_fragment(request):
        return PlainTextResponse("Your session has ended.", HTTPStatus.UNAUTHORIZED)
    back = f"{request.url.path}?{request.url.query}".removesuffix("?")
    query = {"next": back if request.method == "GET" else "/", "why": why}
    return RedirectResponse(f"/login?{urlencode(query)}", HTTPStatus.SEE_OTHER)


def _problem(request: Request, session: Session, error: Exception) -> Response:
    """Say what went wrong: in a banner where a page fetches its live part, else as a page."""
    status = next(found for kind, found in STATUS.items() if isinstance(error, kind))
    text = str(error)
    if is_fragment(request):
        return PlainTextResponse(visible(text), status)
    return page(request, "problem.html", session, status=status, title=TITLES[status], problem=text)
