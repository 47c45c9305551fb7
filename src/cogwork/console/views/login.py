"""Logging in and out."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from cogwork.client import AuthenticationError, ConnectError
from cogwork.console.forms import read_form
from cogwork.console.rendering import page
from cogwork.console.sessions import TooManySessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session
    from cogwork.console.sessions import Sessions

__all__ = ("Login", "cookie_name", "local_path")

SECURE_PREFIX = "__Host-"


def cookie_name(request: Request, *, is_secure: bool) -> str:
    """Return what the cookie is called: browsers do not tell ports apart, so its name does."""
    return f"{SECURE_PREFIX if is_secure else ''}cogwork-{request.url.port or 0}"


def local_path(text: str) -> str:
    """Return a path of this console; the first page's where the text is none."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"


class Login:
    """The pages before and after a session."""

    def __init__(self, sessions: Sessions, place: str, *, is_secure: bool) -> None:
        """Begin and end sessions.

        Args:
            sessions: All of the console.
            place: The container's URL, for people.
            is_secure: Whether the cookie goes over HTTPS alone.
        """
        self._sessions = sessions
        self._place = place
        self._is_secure = is_secure

    async def show(self, request: Request) -> Response:
        """Show the form."""
        return self._page(request, HTTPStatus.OK, request.query_params)

    async def log_in(self, request: Request) -> Response:
        """Log in by the form's user and password."""
        fields = await read_form(request)
        user = fields.get("user", "")
        try:
            session = await self._sessions.log_in(
                user, fields.get("password", ""), fields.get("vhost", "")
            )
        except AuthenticationError:
            who = f"user {user!r}" if user else "a client without a user"
            problem = f"The container does not let {who} in with that password."
            return self._page(request, HTTPStatus.UNAUTHORIZED, fields, problem)
        except (ConnectError, TooManySessions) as error:
            return self._page(request, HTTPStatus.SERVICE_UNAVAILABLE, fields, str(error))
        except ValueError as error:  # what SASL cannot carry, such as a NUL character
            return self._page(request, HTTPStatus.BAD_REQUEST, fields, str(error))
        answer = RedirectResponse(local_path(fields.get("next", "/")), HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            cookie_name(request, is_secure=self._is_secure),
            session.token,
            secure=self._is_secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def log_out(self, request: Request, session: Session) -> Response:
        """End the session."""
        session.demand_form(await read_form(request))
        await self._sessions.end(session)
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(
            cookie_name(request, is_secure=self._is_secure),
            secure=self._is_secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _page(
        self, request: Request, status: int, fields: Mapping[str, str], problem: str = ""
    ) -> Response:
        given = {key: fields.get(key, "") for key in ("user", "vhost", "why")}
        return page(
            request,
            "login.html",
            None,
            status=status,
            place=self._place,
            given=given,
            next=local_path(fields.get("next", "/")),
            problem=problem,
        )
