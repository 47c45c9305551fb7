"""The members of an etcd cluster, and how to ask one of them."""

from __future__ import annotations

import asyncio
import io
from base64 import b64decode, b64encode
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from cogwork.engines.shared.server import Gone, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

__all__ = ("Gateway", "entry_of", "head_of", "octets_text", "ranges_of")

REQUEST_TIMEOUT_S = 3.0

CANCELLED, UNKNOWN, TIMED_OUT, ABORTED, INTERNAL, UNAVAILABLE = 1, 2, 4, 10, 13, 14
TRANSIENT = (CANCELLED, UNKNOWN, TIMED_OUT, ABORTED, INTERNAL, UNAVAILABLE)
"""Codes of gRPC after which it may be tried again."""


class Gateway:
    """One cluster.

    Args:
        urls: The members'.
        tls: How to speak to them, where it is https.
        user: Name and password, where they want them.
    """

    def __init__(
        self, urls: Sequence[str], tls: ssl.SSLContext | None, user: tuple[str, str] | None
    ) -> None:
        self._urls = deque(urls)
        self._tls = tls
        self._user = user
        self._token = ""
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, path: str, request: object, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> dict[str, Any]:
        """Ask one member.

        Raises:
            ServerDown: It does not answer, or not now; the next call asks another one.
            ServerRefused: It does not want to.
        """
        try:
            async with (
                asyncio.timeout(timeout_s),
                await self._post(path, request) as response,
            ):
                return await _answer(response)
        except aiohttp.InvalidURL:
            raise self._misled() from None
        except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {error}", may_have_happened=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {str(error) or 'no answer in time'}") from error

    async def watch(self, request: object) -> aiohttp.ClientResponse:
        """Begin a watch.

        Raises:
            ServerDown: No member answers.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                return await self._post("watch", {"create_request": request})
        except aiohttp.InvalidURL:
            raise self._misled() from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {str(error) or 'no answer in time'}") from error

    def _misled(self) -> ServerDown:
        """Tell that a URL is none, and not which: the library's error has it with its password."""
        self._urls.rotate(-1)
        return ServerDown("etcd: one of the urls is wrong", may_have_happened=False)

    async def close(self) -> None:
        """End all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, path: str, request: object) -> aiohttp.ClientResponse:
        if self._session is None:
            # Its own time-outs would hide that a caller's has come.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        if self._user is not None and not self._token:
            await self._log_in(self._session, *self._user)
        response = await self._send(self._session, path, request)
        if response.status == HTTPStatus.UNAUTHORIZED and self._user is not None:
            response.close()
            await self._log_in(self._session, *self._user)
            response = await self._send(self._session, path, request)
        return response

    async def _log_in(self, session: aiohttp.ClientSession, name: str, password: str) -> None:
        self._token = ""
        request = {"name": name, "password": password}
        async with await self._send(session, "auth/authenticate", request) as response:
            self._token = str((await _answer(response)).get("token", ""))

    async def _send(
        self,
        session: aiohttp.ClientSession,
        path: str,
        request: object,
    ) -> aiohttp.ClientResponse:
        headers = {"Authorization": self._token} if self._token else {}
        response = await session.post(
            f"{self._urls[0]}/v3/{path}",
            data=io.BytesIO(msgspec.json.encode(request)),
            headers=headers,
            allow_redirects=False,  # a request holds what is the cluster's, if not its password
        )
        if response.status // 100 == 3:
            response.close()
            self._urls.rotate(-1)
            text = "etcd: the member redirects to another place, which is not followed"
            raise ServerDown(text, may_have_happened=False)
        return response


async def _answer(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Read an answer.

    Raises:
        ServerDown: It says so, or nothing that makes sense.
        ServerRefused: It says no.
    """
    data = await response.read()
    try:
        answer = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise ServerDown(f"etcd answers nonsense: {data[:80]!r}") from error
    if not isinstance(answer, dict):
        raise ServerDown(f"etcd answers nonsense: {data[:80]!r}")
    if response.ok and "error" not in answer:
        return answer
    text = str(answer.get("message") or answer.get("error"))
    code = answer.get("code")
    if "too large" in text:
        raise TooLarge(f"etcd: {text}")
    if code in TRANSIENT or "too many requests" in text:
        raise ServerDown(f"etcd: {text}")
    raise ServerRefused(f"etcd: {text}")


def octets_text(data: bytes) -> str:
    """Write octets as the gateway has them."""
    return b64encode(data).decode()


def ranges_of(answer: Mapping[str, Any]) -> list[list[Mapping[str, str]]]:
    """Return what the ranges of a transaction found."""
    return [each.get("response_range", {}).get("kvs", []) for each in answer.get("responses", ())]


def head_of(kvs: Sequence[Mapping[str, str]]) -> tuple[bytes, int]:
    """Read the key that holds a log's id and its last position.

    Raises:
        Gone: There is none.
        ServerRefused: It holds something else.
    """
    if not kvs:
        raise Gone
    try:
        log_id, last = b64decode(kvs[0]["value"]).split(b":")
        return log_id, int(last)
    except (KeyError, ValueError) as error:
        raise ServerRefused("etcd: the stream's key `head` is not what was put there") from error


def entry_of(kv: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the position and the octets of an entry.

    Raises:
        ServerDown: It is none.
    """
    try:
        key = b64decode(kv["key"])
        return int(key[-16:], 16), b64decode(kv.get("value", ""))
    except (KeyError, ValueError) as error:
        raise ServerDown(f"etcd answers nonsense: {str(kv)[:80]}") from error
