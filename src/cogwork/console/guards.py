"""What stands before every page: who may ask, and what a browser may do with the answer."""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from cogwork.console.settings import Settings

__all__ = ("Guard",)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with none at all, forms would have no origin to check
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
SAFE = {"GET", "HEAD"}
METHODS = {*SAFE, "POST"}


class Guard:
    """Lets requests in that name this console and come from its own pages."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Stand before an application.

        Args:
            app: What answers those that are let in.
            settings: Which names the console has.
        """
        self._app = app
        self._hosts = {"localhost", *settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for key, text in HEADERS.items():
                    headers.setdefault(key, text)
                headers.setdefault("cache-control", _caching(scope["path"]))
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        answer = self._app if refusal is None else refusal
        await answer(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if method not in METHODS:
            return PlainTextResponse("not allowed", HTTPStatus.METHOD_NOT_ALLOWED)
        if not self._is_own(headers.get("host", "")):
            # A name that somebody else's DNS gives this machine would let their pages in.
            text = "unknown host: start the console with --host NAME, or open it by its address"
            return PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)
        if method not in SAFE and not _is_same_origin(headers):
            return PlainTextResponse("the form is another site's", HTTPStatus.FORBIDDEN)
        return None

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _is_same_origin(headers: Headers) -> bool:
    """Return whether a form comes from a page of this console, as far as the browser says it."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def _caching(path: str) -> str:
    """Return how long a browser may keep an answer: what a user sees is kept nowhere."""
    return "max-age=600" if path.startswith("/static/") else "no-store"
