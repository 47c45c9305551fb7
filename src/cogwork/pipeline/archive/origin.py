"""The stream's side of an archive: how far it goes, whether it is still the one, its retention."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from cogwork.client import Retry, connect
from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.client.requests.management import manage
from cogwork.pipeline.archive.errors import ArchiveError, StreamMadeAnew
from cogwork.pipeline.archive.work import seam_of
from cogwork.pipeline.arrow import ArrowClient, Bounds, StreamTruncated, UnknownStream
from cogwork.schema import SCHEMAS
from cogwork.sync.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cogwork.client import Client
    from cogwork.pipeline.archive.table import ArchiveTable

__all__ = ("Origin", "Schemas")

T = TypeVar("T")

PREFIX = "stream/"
SEAM_COLUMNS = ("time", "body")


class Schemas(NamedTuple):
    """What is registered for the messages of a stream.

    Attributes:
        registry: All schemas, for workers.
        described: Those of the stream, as the table keeps them.
    """

    registry: bytes
    described: str


class Origin(Closing):
    """Where streams are archived from.

    Attributes:
        url: A container of the mesh.
        timeout_s: How long it may be away.
        certificates: For TLS.
    """

    def __init__(
        self, url: str, *, timeout_s: float = 60.0, certificates: Certificates = NONE
    ) -> None:
        """Connect with the first question.

        Args:
            url: A container of the mesh.
            timeout_s: How long it may be away, in seconds.
            certificates: For TLS.

        Raises:
            TlsFilesError: A file of these is missing or cannot be used.
        """
        self.url = url
        self.timeout_s = timeout_s
        self.certificates = certificates
        self._tls = self.certificates.context()
        self._client = ArrowClient(url, timeout_s=timeout_s, tls=self._tls)

    def close(self) -> None:
        """Let the connection go."""
        self._client.close()

    def streams(self, patterns: Sequence[str]) -> list[str]:
        """Return the names of streams that are meant, each once.

        Args:
            patterns: Names, addresses, or patterns as a shell has them. Streams of the mesh itself,
                whose names begin with `$`, are meant only by patterns that do.

        Raises:
            UnknownStream: One of them means none.
        """
        found: dict[str, None] = {}
        for pattern in patterns:
            wanted = pattern.removeprefix("/").removeprefix(PREFIX)
            names = self._client.streams(wanted)
            if not wanted.startswith("$"):
                names = [name for name in names if not name.startswith("$")]
            if not names:
                raise UnknownStream(wanted)
            found |= dict.fromkeys(names)
        return list(found)

    def bounds(self, stream: str) -> Bounds:
        """Return what a stream holds.

        Raises:
            UnknownStream: There is none.
        """
        return self._client.bounds(stream)

    def check_is_the_same(self, table: ArchiveTable) -> None:
        """See whether a stream is the one that is in its table.

        Its offsets reach as far as the archive's do, and the record before the mark, where it is
        still there, is the one that was archived last.

        Raises:
            StreamMadeAnew: It is not.
        """
        stream, mark, seam = table.stream, table.mark, table.seam
        bounds = self.bounds(stream)
        if bounds.next < mark:
            raise StreamMadeAnew(
                f"stream/{stream} ends at offset {bounds.next} and its archive at {mark}: it was "
                "deleted and made anew; archive it elsewhere"
            )
        if seam is None or bounds.first >= mark:
            return
        try:
            (last,) = self._client.read(stream, mark - 1, mark, SEAM_COLUMNS)
        except StreamTruncated:  # just now
            return
        if seam_of(last) != seam:
            raise StreamMadeAnew(
                f"record {mark - 1} of stream/{stream} is not the one in its archive: the stream "
                "was deleted and made anew; archive it elsewhere"
            )

    def trim(self, stream: str, before: int) -> int:
        """Give up the records of a stream below an offset; return the first one that is left."""

        async def work(client: Client) -> int:
            asked = {"type": "stream", "name": PREFIX + stream, "before": before}
            reply = await manage(client, "TRIM", asked)
            if not isinstance(reply.body, dict):
                raise ArchiveError(f"stream/{stream} does not say where it begins")
            return int(str(reply.body["first"]))

        return self._reach(work)

    def schemas(self, stream: str) -> Schemas | None:
        """Ask what is registered for a stream; None where nothing is."""
        if not self._client.streams(SCHEMAS.removeprefix(PREFIX)):
            return None  # nobody uses schemas, and asking would make the stream of them

        async def work(client: Client) -> Schemas | None:
            registry = await client.schemas.registry()
            found = registry.find(PREFIX + stream)
            if found is None:
                return None
            described = msgspec.json.encode(registry.versions(found.address)).decode()
            return Schemas(registry.to_bytes(), described)

        return self._reach(work)

    def _reach(self, work: Callable[[Client], Awaitable[T]]) -> T:
        async def run() -> T:
            retry = Retry(give_up_after_s=self.timeout_s)
            async with connect(self.url, retry=retry, tls=self._tls) as client:
                return await work(client)

        return asyncio.run(run())
