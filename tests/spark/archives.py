"""What tests of the archive share: streams, archivers that are killed, the comparison."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import cogwork
from cogwork.client.requests.management import manage
from cogwork.pipeline.archive import Archive, Archiver, Settings, work
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.upkeep import Upkeep, keep
from cogwork.pipeline.archive.workers import ThreadWorkers
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from multiprocessing.process import BaseProcess

    from cogwork.pipeline.archive.archiver import Outcome
    from cogwork.pipeline.archive.notice import Notice

T = TypeVar("T")

STREAM = "orders"
TIGHT = Upkeep(small_files_min=2, snapshot_age_s=0, snapshots_kept_min=1, orphan_age_s=0)
"""Everything that may go goes: nobody else is at work."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["archives"])


# -- streams


def message(number: int) -> cogwork.Message:
    return cogwork.Message(
        b"%08d" % number + bytes(number % 50),
        subject=f"subject {number % 3}",
        message_id=f"m{number}",
        properties={"number": number},
    )


def create(url: str, name: str = STREAM, engine: str = "orb") -> None:
    reach(url, lambda mesh: _manage(mesh, "CREATE", name, {"engine": engine}))


def delete(url: str, name: str = STREAM) -> None:
    reach(url, lambda mesh: _manage(mesh, "DELETE", name))


def trim(url: str, before: int, name: str = STREAM) -> None:
    async def give_up(mesh: cogwork.Client) -> None:
        asked = {"type": "stream", "name": f"stream/{name}", "before": before}
        await manage(mesh, "TRIM", asked)

    reach(url, give_up)


def append(url: str, numbers: Iterable[int], name: str = STREAM) -> None:
    async def publish(mesh: cogwork.Client) -> None:
        await mesh.stream(name).append([message(number) for number in numbers])

    reach(url, publish)


async def _manage(mesh: cogwork.Client, operation: str, name: str, body: object = None) -> None:
    await manage(mesh, operation, {"type": "stream", "name": f"stream/{name}"}, body)


def reach(url: str, action: Callable[[cogwork.Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with cogwork.connect(url) as mesh:
            return await action(mesh)

    return asyncio.run(run())


def records(url: str, name: str = STREAM) -> pa.Table:
    """All that a stream has, column by column."""
    with ArrowClient(url) as client:
        return pa.Table.from_batches(list(client.read(name, *client.bounds(name))))


def digest(table: pa.Table) -> str:
    """Of all rows in the order of their offsets, with all columns."""
    rows = table.sort_by("offset").to_pylist()
    return hashlib.blake2b(repr([sorted(row.items()) for row in rows]).encode()).hexdigest()


# -- archiving


def archived(
    url: str,
    to: Path,
    *,
    name: str = STREAM,
    on_notice: Callable[[Notice], None] = lambda _notice: None,
    on_step: Callable[[str], None] | None = None,
    **settings: Any,  # those of Settings
) -> Outcome:
    """Archive a stream in this process, without Spark."""
    with Origin(url, timeout_s=20) as origin, Archive.open(str(to), make=True) as archive:
        workers = ThreadWorkers(2, on_step)
        return Archiver(origin, archive, workers, Settings(**settings), on_notice).run(name)


def assert_whole(url: str, to: Path, name: str = STREAM) -> None:
    """The archive has what the stream has: by pyiceberg, and file by file."""
    expected = digest(records(url, name))
    with Archive.open(str(to)) as archive:
        table = archive.table(name)
        assert digest(table.table.scan().to_arrow()) == expected
        files = [pq.read_table(path) for path in archive.files(name)]
        assert digest(pa.concat_tables(files)) == expected
        offsets = pa.concat_tables(files).column("offset").to_pylist()
        assert offsets == list(range(table.first, table.mark))


def assert_no_orphan(to: Path, name: str = STREAM) -> None:
    """After a sweep there is nothing in the table's folder that the table does not need."""
    with Archive.open(str(to)) as archive:
        table = archive.table(name)
        keep(table, TIGHT)
        needed = {path.removeprefix("file://") for path in table.references()}
        folder = Path(table.location.removeprefix("file://"))
    there = {str(path) for path in folder.rglob("*") if path.is_file()}
    assert there - needed == set()
    assert needed - there <= {path for path in needed if path.endswith(".metadata.json")}


# -- archivers that die


def in_child(function: Callable[..., None], *arguments: object) -> int:
    """Run a function in a fresh process; return how that ended."""
    child = start_child(function, *arguments)
    child.join(60)
    assert child.exitcode is not None, "the child hangs"
    return child.exitcode


def start_child(function: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start it; the first time a server is started that has loaded this module for all of them.

    What it loads it finds by PYTHONPATH alone, and says nothing where it does not.
    """
    child = _forks.Process(target=function, args=arguments)
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        child.start()
    return child


class Killer:
    """Ends its process at the given time that a step is taken."""

    def __init__(self, step: str, times: int) -> None:
        self._step = step
        self._left = times

    def __call__(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DieOnce:
    """Kills the worker that is the first to be in the middle of a file."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __call__(self, step: str) -> None:
        if step == "writing" and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def archive_and_die(url: str, to: Path, step: str, times: int, commit_rows: int) -> None:
    """Archive and keep the table; dies on the way."""
    work.ROW_GROUP_ROWS_MAX = 10  # so that half a file is on disk
    killer = Killer(step, times)
    _announce_catalog_writes(killer)
    archived(
        url,
        to,
        on_notice=lambda notice: killer(notice.step),
        on_step=killer,
        commit_rows=commit_rows,
    )
    with Archive.open(str(to)) as archive:
        keep(archive.table(STREAM), TIGHT, lambda notice: killer(notice.step))


def _announce_catalog_writes(killer: Killer) -> None:
    """Let a process die between the table's new metadata and the catalog's row that names it."""
    write = SqlCatalog._write_metadata

    def written(*arguments: Any, **named: Any) -> None:  # passed on
        write(*arguments, **named)
        killer("metadata")

    SqlCatalog._write_metadata = staticmethod(written)  # type: ignore[method-assign]  # to be told of it


def archive_to_the_end(url: str, to: Path, commit_rows: int) -> None:
    archived(url, to, commit_rows=commit_rows)
