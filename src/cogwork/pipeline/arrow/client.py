"""Ranges of streams as Arrow record batches, for programs without an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cogwork.client.checks import demand_seconds
from cogwork.client.connection.url import endpoints_of
from cogwork.client.options import Options
from cogwork.pipeline.arrow.errors import ArrowError
from cogwork.pipeline.arrow.loop_thread import keep_inherited, loop_thread
from cogwork.pipeline.arrow.schema import columns_of
from cogwork.pipeline.arrow.session import Session
from cogwork.sync.closing import Closing

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

    import pyarrow as pa

    from cogwork.client.connection.tokens import Token
    from cogwork.client.connection.url import Urls
    from cogwork.sasl.mechanisms import MechanismName

__all__ = ("ArrowClient", "Bounds")

T = TypeVar("T")

PREFIX = "stream/"


class Bounds(NamedTuple):
    """What a stream holds.

    Attributes:
        first: The oldest offset that is left.
        next: The offset after the last committed record.
    """

    first: int
    next: int


class ArrowClient(Closing):
    """Reads ranges of streams. May be used by several threads, and after a fork.

    Nothing is connected before the first call; a connection that is lost is made again.
    """

    def __init__(
        self,
        url: Urls,
        *,
        timeout_s: float = 60.0,
        token: Token | None = None,
        tls: ssl.SSLContext | None = None,
        sasl: MechanismName | tuple[MechanismName, ...] | None = None,
    ) -> None:
        """Connect nowhere yet.

        Args:
            url: `amqp://`, `amqps://`, `ws://` or `wss://` `[user:password@]host[:port][/vhost]`;
                several, between commas or as a list, are tried in turn, now and after each loss.
            timeout_s: How long to go on trying where nothing comes, in seconds.
            token: What to log in by, or what returns it for each connection; as for
                `cogwork.connect`.
            tls: Certificates; see `cogwork.io.tls.client_context`.
            sasl: The SASL mechanism, such as `SCRAM-SHA-256`; None chooses the strongest.

        Raises:
            InvalidUrlError: A URL is wrong, or the list is empty.
            ValueError: The time is none.
        """
        demand_seconds("timeout_s", timeout_s)
        self._timeout_s = timeout_s
        self._options: Callable[[], Options] = lambda: Options(token=token, tls=tls, sasl=sasl)
        self._endpoints = endpoints_of(url)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._session: Session | None = None

    def close(self) -> None:
        """Let the connections go; a later call connects again."""
        self._look_for_fork()
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            loop_thread().wait(session.close())

    def _look_for_fork(self) -> None:
        if self._pid != os.getpid():
            keep_inherited((self._session, self._lock))
            self._lock = threading.Lock()
            self._session = None
            self._pid = os.getpid()

    def _opened(self) -> Session:
        self._look_for_fork()
        with self._lock:
            if self._session is None:
                self._session = Session(self._endpoints, self._options(), self._timeout_s)
            return self._session

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return loop_thread().wait(work)

    # -- what there is

    def streams(self, pattern: str = "*") -> list[str]:
        """List the streams that there are, in order of their names.

        Args:
            pattern: Which ones, as a shell would match it.

        Raises:
            ArrowError: The container cannot be reached, or does not tell.
        """
        found = self._wait(self._opened().streams())
        return sorted(name for name in found if fnmatchcase(name, pattern))

    def bounds(self, stream: str) -> Bounds:
        """Return what a stream holds.

        Raises:
            UnknownStream: There is none.
            ArrowError: The container cannot be reached, or does not tell.
        """
        return Bounds(*self._wait(self._opened().bounds(_name_of(stream))))

    def offset_at(self, stream: str, time_us: int) -> int:
        """Return the first offset whose record is of this time or later; `next` where none is.

        Args:
            stream: Its name.
            time_us: In microseconds since 1970 (UTC).

        Raises:
            UnknownStream: There is none.
            ArrowError: The container cannot be reached, or does not tell.
        """
        return self._wait(self._opened().offset_at(_name_of(stream), time_us))

    # -- reading

    def read(
        self, stream: str, start: int, end: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield exactly the records from `start` to before `end`.

        Batches are cut in the same places each time a range is read. A connection that is lost is
        made again, and reading goes on at the next offset.

        Args:
            stream: Its name.
            start: The first offset.
            end: After the last one.
            columns: Which ones, in this order; None for all.

        Raises:
            UnknownStream: There is none.
            StreamTruncated: Retention has given up a part of it.
            BeyondEnd: So much has not been committed.
            ArrowError: Nothing came for `timeout_s`.
            ValueError: There is no such column, or the range is none.
        """
        wanted = columns_of(columns)
        if not 0 <= start <= end:
            raise ValueError(f"a range goes from an offset up, not from {start} to {end}")
        return self._read(_name_of(stream), start, end, wanted)

    def _read(
        self, stream: str, start: int, end: int, columns: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        if start == end:
            return
        thread = loop_thread()
        batches = self._opened().read(stream, start, end, columns)
        coming = thread.submit(_next(batches))
        try:
            while (batch := coming.result()) is not None:
                coming = thread.submit(_next(batches))
                start += batch.num_rows
                yield batch
            if start != end:
                raise ArrowError(stream, f"its records ended at offset {start}, before {end}")
        finally:
            coming.cancel()
            thread.submit(_end(coming, batches))


def _name_of(stream: str) -> str:
    return stream.removeprefix("/").removeprefix(PREFIX)


async def _next(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(batches, None)


async def _end(coming: object, batches: Any) -> None:  # noqa: ANN401  # an async generator
    """Close a generator once whoever ran it has left it."""
    del coming
    while True:
        try:
            await batches.aclose()
        except RuntimeError:  # it is being cancelled
            await asyncio.sleep(0)
        else:
            return
