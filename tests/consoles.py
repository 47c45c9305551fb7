"""The web console as a browser without a screen sees it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from cogwork.client.connection.url import endpoints_of
from cogwork.console.app import Console
from cogwork.console.rendering import FRAGMENT
from cogwork.console.settings import Settings
from cogwork.sasl.verifier import make_verifier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ("CONFIGURATION", "HOME", "Browser", "browsed")

T = TypeVar("T")

HOME = "http://localhost:9420"
TOKEN = re.compile(r'name="form_token" value="([\w-]+)"')

ITERATIONS = 4096
"""The fewest: tests log in often."""

CONFIGURATION = f"""
[anonymous]
permissions = [{{ address = "topic/#", rights = ["receive"] }}]

[[user]]
name = "operator"
scram_verifiers = ["{make_verifier("sha256", "secret", ITERATIONS)}"]
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
  {{ address = "stream/$schemas", rights = ["send", "receive", "manage"] }},
]

[[user]]
name = "keeper"
scram_verifiers = ["{make_verifier("sha256", "key", ITERATIONS)}"]
permissions = [
  {{ address = "queue/own.#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send"] }},
]
"""
"""A container with a user who may do everything, and one with some queues."""


class Browser:
    """Gets pages, keeps cookies, sends forms.

    Attributes:
        console: What it asks.
        http: How it asks.
    """

    def __init__(self, console: Console, http: httpx.AsyncClient) -> None:
        self.console = console
        self.http = http

    async def get(self, path: str, status: int = 200, **headers: str) -> str:
        answer = await self.http.get(path, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.text

    async def live(self, path: str, status: int = 200) -> str:
        """Fetch the live part of a page, as the page does by itself."""
        return await self.get(path, status, **{FRAGMENT: "1"})

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx.Response:
        return await self.http.post(path, data=dict(fields), headers=headers)

    async def do(self, page: str, path: str, **fields: str) -> str:
        """Send a form of a page, and return the page that comes of it."""
        found = TOKEN.search(await self.get(page))
        assert found is not None
        answer = await self.post(path, {"form_token": found[1], "back": page, **fields})
        assert answer.status_code in (200, 303), answer.text
        if answer.status_code == 200:
            return answer.text
        return await self.get(answer.headers["location"])

    async def log_in(self, user: str = "operator", password: str = "secret") -> None:
        answer = await self.post("/login", {"user": user, "password": password})
        assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text


def browsed(
    url: str, work: Callable[[Browser], Awaitable[T]], *, base_url: str = HOME, **settings: Any
) -> T:
    """Run a console for the length of a function that browses it."""

    async def run() -> T:
        console = Console(Settings(tuple(endpoints_of(url)), **settings))
        transport = httpx.ASGITransport(console)
        async with httpx.AsyncClient(transport=transport, base_url=base_url) as http:
            try:
                return await work(Browser(console, http))
            finally:
                await console.sessions.close()

    return asyncio.run(run())
