"""The log of a stream on etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.engines.etcd.gateway import Gateway, entry_of, head_of, octets_text, ranges_of
from cogwork.engines.etcd.reader import EtcdReader
from cogwork.engines.shared.server import Gone, Moved
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import Members
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import aiohttp

__all__ = ("EtcdLog",)

APPEND_TIMEOUT_S = 1.5
"""A member whose leader has died under an append holds it for long; another attempt is safe."""


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
        self._head = octets_text(base + b"head")

    def key(self, position: int) -> bytes:
        """Return the key of the entry at a position."""
        return self._base + b"e/%016x" % position

    @property
    def end(self) -> bytes:
        """What is above all keys of entries."""
        return self._base + b"e0"

    async def append(self, expected: int, entry: bytes) -> int:
        """Append an entry behind the one at position `expected`."""
        position = expected + 1
        old, new = (octets_text(b"%s:%d" % (self._id, each)) for each in (expected, position))
        answer = await self._gateway.ask(
            "kv/txn",
            {
                "compare": [
                    {"key": self._head, "target": "VALUE", "result": "EQUAL", "value": old}
                ],
                "success": [
                    {
                        "request_put": {
                            "key": octets_text(self.key(position)),
                            "value": octets_text(entry),
                        }
                    },
                    {"request_put": {"key": self._head, "value": new}},
                ],
                "failure": [{"request_range": {"key": self._head}}],
            },
            APPEND_TIMEOUT_S,
        )
        if answer.get("succeeded"):
            return position
        raise Moved(self._last(ranges_of(answer)[0]))

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the first entry at a position or above."""
        entries, _ = await self.range(position, 1)
        return entries[0] if entries else None

    async def range(self, position: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
        """Return entries from a position on, and the revision at which they were read."""
        answer = await self._gateway.ask(
            "kv/range",
            {
                "key": octets_text(self.key(position)),
                "range_end": octets_text(self.end),
                "limit": str(count),
            },
        )
        revision = int(answer.get("header", {}).get("revision", 0))
        return [entry_of(each) for each in answer.get("kvs", ())], revision

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry."""
        first = {
            "key": octets_text(self.key(0)),
            "range_end": octets_text(self.end),
            "limit": "1",
            "keys_only": True,
        }
        answer = await self._gateway.ask(
            "kv/txn",
            {"success": [{"request_range": {"key": self._head}}, {"request_range": first}]},
        )
        heads, firsts = ranges_of(answer)
        last = self._last(heads)
        return (entry_of(firsts[0])[0] if firsts else last + 1), last

    async def watch(self, position: int, revision: int) -> aiohttp.ClientResponse:
        """Begin to watch for entries from a position on."""
        return await self._gateway.watch(
            {
                "key": octets_text(self.key(position)),
                "range_end": octets_text(self.end),
                "start_revision": str(revision),
                "filters": ["NODELETE"],
                "fragment": True,
            }
        )

    async def reader(self, position: int) -> EtcdReader:
        """Return a reader that begins at a position."""
        return EtcdReader(self, position)

    async def trim(self, before: int) -> None:
        """Give up the entries below a position; etcd's compaction gives their space back."""
        request = {"key": octets_text(self.key(0)), "range_end": octets_text(self.key(before))}
        await self._gateway.ask("kv/deleterange", request)

    async def members(self) -> Members:
        """Return which members the cluster has."""
        found = await self._gateway.ask("cluster/member/list", {})
        status = await self._gateway.ask("maintenance/status", {})
        names = {each.get("ID"): _name(each) for each in found.get("members", ())}
        learners = [_name(each) for each in found.get("members", ()) if each.get("isLearner")]
        voters = tuple(each for each in names.values() if each not in learners)
        return Members(voters, tuple(learners), names.get(status.get("leader")))

    async def close(self) -> None:
        """Let go of it."""

    def _last(self, kvs: Sequence[Mapping[str, str]]) -> int:
        log_id, last = head_of(kvs)
        if log_id != self._id:
            raise Gone
        return last


def _name(member: Mapping[str, Any]) -> str:
    return str(member.get("name") or member.get("ID"))
