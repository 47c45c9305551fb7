"""An etcd cluster, as a container's engine has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from cogwork.engines.etcd.gateway import Gateway, head_of, octets_text, ranges_of
from cogwork.engines.etcd.log import EtcdLog
from cogwork.engines.shared.host import SharedHost, number_of, text_of
from cogwork.engines.shared.urls import demand_url, has_login
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.durability import Durability
from cogwork.tls.contexts import TlsFilesError, client_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from cogwork.plugin.engine.contract import EngineContext

__all__ = ("EtcdHost",)

CAPABILITIES = Capabilities(durability=Durability.DISK, is_uniform=False)
"""What an etcd of one member gives; a cluster of more gives a quorum."""

ENTRY_BYTES_MAX = 1 << 20
"""etcd takes requests of 1.5 MiB, if its `--max-request-bytes` does not say otherwise."""


class EtcdHost(SharedHost):
    """Streams on one etcd cluster.

    Options: `url`, such as `http://localhost:2379`, or several behind commas; `prefix` of the keys;
    `user` and `password`; `ca_file`, `cert_file`, `key_file` and `key_password` for TLS;
    `entry_bytes_max`, where the server's `--max-request-bytes` is not the usual one.

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "etcd"
    host_options: ClassVar[tuple[str, ...]] = (
        *("url", "prefix", "user", "password", "ca_file", "cert_file", "key_file"),
        *("key_password", "entry_bytes_max"),
    )
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        urls = _urls(text_of(options, "url", "http://localhost:2379"))
        self._prefix = text_of(options, "prefix", "cogwork")
        self._entry_bytes_max = int(number_of(options, "entry_bytes_max", ENTRY_BYTES_MAX))
        user = None
        if "user" in options:
            if any(has_login(url) for url in urls):
                raise ValueError("user stands in url, too: it is expected in one place")
            user = (text_of(options, "user", "cogwork"), text_of(options, "password", ""))
        self._gateway = Gateway(urls, _tls(options), user)

    async def make_log(self, stream: str, options: Mapping[str, object]) -> EtcdLog:
        """Return the log of a stream; make it where it is new."""
        del options
        base = f"{self._prefix}/{quote(stream, safe='')}/".encode()
        new_id = os.urandom(8).hex().encode()
        head = octets_text(base + b"head")
        answer = await self._gateway.ask(
            "kv/txn",
            {
                "compare": [{"key": head, "target": "VERSION", "result": "EQUAL", "version": "0"}],
                "success": [{"request_put": {"key": head, "value": octets_text(new_id + b":0")}}],
                "failure": [{"request_range": {"key": head}}],
            },
        )
        if not answer.get("succeeded"):
            new_id = head_of(ranges_of(answer)[0])[0]
        members = await self._gateway.ask("cluster/member/list", {})
        voters = [each for each in members.get("members", ()) if not each.get("isLearner")]
        return EtcdLog(self._gateway, base, new_id, self._entry_bytes_max, len(voters))

    async def drop_log(self, stream: str) -> None:
        """Delete the log of a stream, if there is one."""
        base = f"{self._prefix}/{quote(stream, safe='')}/".encode()
        request = {"key": octets_text(base), "range_end": octets_text(_after(base))}
        await self._gateway.ask("kv/deleterange", request)

    async def reach(self) -> None:
        """See that the cluster answers."""
        request = {"key": octets_text(f"{self._prefix}/".encode()), "count_only": True}
        await self._gateway.ask("kv/range", request)

    async def disconnect(self) -> None:
        """Leave the cluster."""
        await self._gateway.close()


def _urls(text: str) -> list[str]:
    """Read the members' URLs.

    Raises:
        ValueError: One of them is none. Of what may hold a password nothing is told.
    """
    urls = [each.strip() for each in text.split(",")]
    for url in urls:
        # A comma in a password has split it: the parts are no more to be told than the whole.
        shown = "this" if "@" in text and "@" not in url else None
        demand_url(url, ("http", "https"), "http://localhost:2379", shown)
    return [url.rstrip("/") for url in urls]


def _tls(options: Mapping[str, object]) -> ssl.SSLContext | None:
    files = {
        name: text_of(options, name, "") if name in options else None
        for name in ("ca_file", "cert_file", "key_file", "key_password")
    }
    if not any(files.values()):
        return None
    if files["cert_file"] is None and (files["key_file"] or files["key_password"]):
        raise ValueError("key_file and key_password need a cert_file with them")
    try:
        return client_context(
            files["ca_file"],
            files["cert_file"],
            files["key_file"],
            key_password=files["key_password"],
        )
    except TlsFilesError as error:
        raise ValueError(f"the certificates of etcd cannot be read: {error}") from error


def _after(prefix: bytes) -> bytes:
    """Return what is above all keys with a prefix, which does not end with 255."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))
