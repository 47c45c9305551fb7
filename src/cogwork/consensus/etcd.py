"""The engine `etcd`: streams on an etcd cluster, through the JSON gateway of its API v3.

Theory of operation. Each entry is a key that ends with its position; one more key holds the last
position, and the log's id. A transaction compares that key, puts the entry and the key's new value:
all or nothing, synchronised on a majority of the members before it is answered. A reader takes
ranges of keys, and watches for more where there are none. The gateway is a part of every etcd, so
an HTTP library that is well kept serves better than a client library that is not.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
from base64 import b64decode, b64encode
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from cogwork.consensus.capabilities import Capabilities
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import Members
from cogwork.consensus.shared.host import SharedHost, number_of, text_of
from cogwork.consensus.shared.server import Gone, Moved, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.consensus.engine import EngineContext

__all__ = ("EtcdHost",)

CAPABILITIES = Capabilities(durability=Durability.DISK, is_uniform=False)
"""What an etcd of one member gives; a cluster of more gives a quorum."""

ENTRY_BYTES_MAX = 1 << 20
"""etcd takes requests of 1.5 MiB, if its `--max-request-bytes` does not say otherwise."""

READ_BYTES = 2 << 20
READ_ENTRIES_MAX = 512
REQUEST_TIMEOUT_S = 3.0
APPEND_TIMEOUT_S = 1.5
"""A member whose leader has died under an append holds it for long; another attempt is safe."""

CANCELLED, UNKNOWN, TIMED_OUT, ABORTED, INTERNAL, UNAVAILABLE = 1, 2, 4, 10, 13, 14
TRANSIENT = (CANCELLED, UNKNOWN, TIMED_OUT, ABORTED, INTERNAL, UNAVAILABLE)
"""Codes of gRPC after which it may be tried again."""


def _text(data: bytes) -> str:
    return b64encode(data).decode()


class Gateway:
    """The members of a cluster, and how to ask one of them.

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
        """Asks one member.

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
        except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {error}", may_have_happened=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {str(error) or 'no answer in time'}") from error

    async def watch(self, request: object) -> aiohttp.ClientResponse:
        """Begins a watch.

        Raises:
            ServerDown: No member answers.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                return await self._post("watch", {"create_request": request})
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._urls.rotate(-1)
            raise ServerDown(f"etcd: {str(error) or 'no answer in time'}") from error

    async def close(self) -> None:
        """Ends all connections."""
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
        return await session.post(
            f"{self._urls[0]}/v3/{path}",
            data=io.BytesIO(msgspec.json.encode(request)),
            headers=headers,
        )


async def _answer(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Reads an answer.

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


class EtcdHost(SharedHost):
    """Streams on one etcd cluster.

    Options: `url`, such as `http://localhost:2379`, or several behind commas; `prefix` of the keys;
    `user` and `password`; `ca_file`, `cert_file` and `key_file` for TLS; `entry_bytes_max`, where
    the server's `--max-request-bytes` is not the usual one.

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "etcd"
    host_options: ClassVar[tuple[str, ...]] = (
        *("url", "prefix", "user", "password", "ca_file", "cert_file", "key_file"),
        "entry_bytes_max",
    )
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        urls = [
            each.strip() for each in text_of(options, "url", "http://localhost:2379").split(",")
        ]
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
                raise ValueError(f"url is like http://localhost:2379, not {url!r}")
        self._prefix = text_of(options, "prefix", "cogwork")
        self._entry_bytes_max = int(number_of(options, "entry_bytes_max", ENTRY_BYTES_MAX))
        user = None
        if "user" in options:
            user = (text_of(options, "user", "cogwork"), text_of(options, "password", ""))
        self._gateway = Gateway([url.rstrip("/") for url in urls], _tls(options), user)

    async def make_log(self, stream: str, options: Mapping[str, object]) -> EtcdLog:
        """Returns the log of a stream; makes it where it is new."""
        del options
        base = f"{self._prefix}/{quote(stream, safe='')}/".encode()
        new_id = os.urandom(8).hex().encode()
        head = _text(base + b"head")
        answer = await self._gateway.ask(
            "kv/txn",
            {
                "compare": [{"key": head, "target": "VERSION", "result": "EQUAL", "version": "0"}],
                "success": [{"request_put": {"key": head, "value": _text(new_id + b":0")}}],
                "failure": [{"request_range": {"key": head}}],
            },
        )
        if not answer.get("succeeded"):
            new_id = _head(_ranges(answer)[0])[0]
        members = await self._gateway.ask("cluster/member/list", {})
        voters = [each for each in members.get("members", ()) if not each.get("isLearner")]
        return EtcdLog(self._gateway, base, new_id, self._entry_bytes_max, len(voters))

    async def drop_log(self, stream: str) -> None:
        """Deletes the log of a stream, if there is one."""
        base = f"{self._prefix}/{quote(stream, safe='')}/".encode()
        request = {"key": _text(base), "range_end": _text(_after(base))}
        await self._gateway.ask("kv/deleterange", request)

    async def disconnect(self) -> None:
        """Leaves the cluster."""
        await self._gateway.close()


def _tls(options: Mapping[str, object]) -> ssl.SSLContext | None:
    if not any(name in options for name in ("ca_file", "cert_file", "key_file")):
        return None
    ca_file = text_of(options, "ca_file", "") if "ca_file" in options else None
    try:
        tls = ssl.create_default_context(cafile=ca_file)
        if "cert_file" in options:
            key_file = text_of(options, "key_file", "") if "key_file" in options else None
            tls.load_cert_chain(text_of(options, "cert_file", ""), key_file)
    except OSError as error:
        raise ValueError(f"the certificates of etcd cannot be read: {error}") from error
    return tls


class EtcdLog:
    """The log of one stream.

    Args:
        gateway: The cluster.
        base: What the keys begin with.
        log_id: Of this log, which another one of the same name has not.
        entry_bytes_max: The largest entry.
        voters: How many members the cluster has.
    """

    def __init__(
        self, gateway: Gateway, base: bytes, log_id: bytes, entry_bytes_max: int, voters: int
    ) -> None:
        is_quorum = voters > 1
        self.capabilities = Capabilities(
            durability=Durability.QUORUM_DISK if is_quorum else Durability.DISK,
            is_uniform=is_quorum,
        )
        self.entry_bytes_max = entry_bytes_max
        self._gateway = gateway
        self._base = base
        self._id = log_id
        self._head = _text(base + b"head")

    def key(self, position: int) -> bytes:
        """Returns the key of the entry at a position."""
        return self._base + b"e/%016x" % position

    @property
    def end(self) -> bytes:
        """What is above all keys of entries."""
        return self._base + b"e0"

    async def append(self, expected: int, entry: bytes) -> int:
        """Appends an entry behind the one at position `expected`."""
        position = expected + 1
        old, new = (_text(b"%s:%d" % (self._id, each)) for each in (expected, position))
        answer = await self._gateway.ask(
            "kv/txn",
            {
                "compare": [
                    {"key": self._head, "target": "VALUE", "result": "EQUAL", "value": old}
                ],
                "success": [
                    {"request_put": {"key": _text(self.key(position)), "value": _text(entry)}},
                    {"request_put": {"key": self._head, "value": new}},
                ],
                "failure": [{"request_range": {"key": self._head}}],
            },
            APPEND_TIMEOUT_S,
        )
        if answer.get("succeeded"):
            return position
        raise Moved(self._last(_ranges(answer)[0]))

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Returns the first entry at a position or above."""
        entries, _ = await self.range(position, 1)
        return entries[0] if entries else None

    async def range(self, position: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
        """Returns entries from a position on, and the revision at which they were read."""
        answer = await self._gateway.ask(
            "kv/range",
            {
                "key": _text(self.key(position)),
                "range_end": _text(self.end),
                "limit": str(count),
            },
        )
        revision = int(answer.get("header", {}).get("revision", 0))
        return [_entry(each) for each in answer.get("kvs", ())], revision

    async def ends(self) -> tuple[int, int]:
        """Returns the positions of the first and the last entry."""
        first = {
            "key": _text(self.key(0)),
            "range_end": _text(self.end),
            "limit": "1",
            "keys_only": True,
        }
        answer = await self._gateway.ask(
            "kv/txn",
            {"success": [{"request_range": {"key": self._head}}, {"request_range": first}]},
        )
        heads, firsts = _ranges(answer)
        last = self._last(heads)
        return (_entry(firsts[0])[0] if firsts else last + 1), last

    async def watch(self, position: int, revision: int) -> aiohttp.ClientResponse:
        """Begins to watch for entries from a position on."""
        return await self._gateway.watch(
            {
                "key": _text(self.key(position)),
                "range_end": _text(self.end),
                "start_revision": str(revision),
                "filters": ["NODELETE"],
                "fragment": True,
            }
        )

    async def reader(self, position: int) -> EtcdReader:
        """Returns a reader that begins at a position."""
        return EtcdReader(self, position)

    async def trim(self, before: int) -> None:
        """Gives up the entries below a position; etcd's compaction gives their space back."""
        request = {"key": _text(self.key(0)), "range_end": _text(self.key(before))}
        await self._gateway.ask("kv/deleterange", request)

    async def members(self) -> Members:
        """Tells which members the cluster has."""
        found = await self._gateway.ask("cluster/member/list", {})
        status = await self._gateway.ask("maintenance/status", {})
        names = {each.get("ID"): _name(each) for each in found.get("members", ())}
        learners = [_name(each) for each in found.get("members", ()) if each.get("isLearner")]
        voters = tuple(each for each in names.values() if each not in learners)
        return Members(voters, tuple(learners), names.get(status.get("leader")))

    async def close(self) -> None:
        """Lets go of it."""

    def _last(self, kvs: Sequence[Mapping[str, str]]) -> int:
        log_id, last = _head(kvs)
        if log_id != self._id:
            raise Gone
        return last


class EtcdReader:
    """Reads a log from a position on, and follows it.

    Args:
        log: The log.
        position: Where to begin.
    """

    def __init__(self, log: EtcdLog, position: int) -> None:
        self._log = log
        self._position = position
        self._count = 16
        self._watch: aiohttp.ClientResponse | None = None
        self._rest = b""

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Returns what follows; nothing where nothing came in time."""
        if self._watch is None:
            entries, revision = await self._log.range(self._position, self._count)
            if entries:
                return self._noted(entries)
            self._watch = await self._log.watch(self._position, revision + 1)
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    entries = await self._watched(self._watch)
                    if entries:
                        return self._noted(entries)
        except TimeoutError:
            # A watch that is silent may be dead: the next call asks.
            await self.close()
            return ()
        except (aiohttp.ClientError, OSError) as error:
            await self.close()
            raise ServerDown(f"etcd: {error}") from error

    async def close(self) -> None:
        """Ends it."""
        watch, self._watch = self._watch, None
        self._rest = b""
        if watch is not None:
            watch.close()

    def _noted(self, entries: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        self._position = entries[-1][0] + 1
        size_bytes = sum(len(data) for _, data in entries) // len(entries)
        self._count = max(1, min(READ_ENTRIES_MAX, READ_BYTES // max(1, size_bytes)))
        return entries

    async def _watched(self, watch: aiohttp.ClientResponse) -> list[tuple[int, bytes]]:
        """Returns the entries of the next lines of a watch.

        Raises:
            ServerDown: It has ended.
        """
        data = await watch.content.readany()
        if not data:
            raise ServerDown("etcd: the watch has ended")
        *lines, self._rest = (self._rest + data).split(b"\n")
        entries: list[tuple[int, bytes]] = []
        for line in lines:
            try:
                answer = msgspec.json.decode(line)
                result = answer.get("result", {})
            except (msgspec.DecodeError, AttributeError) as error:
                raise ServerDown(f"etcd answers nonsense: {line[:80]!r}") from error
            if "error" in answer or result.get("canceled"):
                raise ServerDown(f"etcd ends the watch: {line[:200]!r}")
            entries.extend(_entry(each["kv"]) for each in result.get("events", ()))
        return [each for each in entries if each[0] >= self._position]


def _ranges(answer: Mapping[str, Any]) -> list[list[Mapping[str, str]]]:
    """Returns what the ranges of a transaction found."""
    return [each.get("response_range", {}).get("kvs", []) for each in answer.get("responses", ())]


def _head(kvs: Sequence[Mapping[str, str]]) -> tuple[bytes, int]:
    if not kvs:
        raise Gone
    try:
        log_id, last = b64decode(kvs[0]["value"]).split(b":")
        return log_id, int(last)
    except (KeyError, ValueError) as error:
        raise ServerRefused("etcd: the stream's key `head` is not what was put there") from error


def _entry(kv: Mapping[str, str]) -> tuple[int, bytes]:
    try:
        key = b64decode(kv["key"])
        return int(key[-16:], 16), b64decode(kv.get("value", ""))
    except (KeyError, ValueError) as error:
        raise ServerDown(f"etcd answers nonsense: {str(kv)[:80]}") from error


def _name(member: Mapping[str, Any]) -> str:
    return str(member.get("name") or member.get("ID"))


def _after(prefix: bytes) -> bytes:
    """Returns what is above all keys with a prefix, which does not end with 255."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))
