"""Catalogs other than the embedded one, each real: in memory, REST, PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyiceberg", reason="the extra [spark] is not installed")

import pyarrow as pa
import pyarrow.parquet as pq
from archives import STREAM, TIGHT, append, create, digest, records
from pyiceberg.utils.config import Config
from rest_catalog import TOKEN, rest_catalog
from system.served import within

import cogwork.testing
from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.pipeline.archive import Archive, Archiver, Settings
from cogwork.pipeline.archive.errors import CatalogError
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.upkeep import keep
from cogwork.pipeline.archive.workers import ThreadWorkers

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 300

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path("/nonexistent"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        create(url)
        append(url, range(RECORDS))
        yield url


def archive_into(url: str, tables: Archive, commit_rows: int = 50) -> int:
    with Origin(url) as origin:
        archiver = Archiver(origin, tables, ThreadWorkers(2), Settings(commit_rows=commit_rows))
        return archiver.run(STREAM).rows


def check(url: str, to: str, options: dict[str, str]) -> None:
    """Two archivers at once, upkeep, and further records: each record is there once."""
    added: list[int] = []

    def work() -> None:
        with Archive.open(to, options, make=True) as tables:
            added.append(archive_into(url, tables))

    both = [threading.Thread(target=work) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    with Archive.open(to, options) as tables:
        assert (sum(added), tables.mark(STREAM)) == (RECORDS, RECORDS)
        kept = keep(tables.table(STREAM), TIGHT)
        assert kept.into == 1
        assert_same(url, tables)
        assert tables.tables() == [STREAM]


def assert_same(url: str, tables: Archive) -> None:
    expected = digest(records(url))
    assert digest(tables.table(STREAM).table.scan().to_arrow()) == expected
    found = [pq.read_table(path) for path in tables.files(STREAM)]
    assert digest(pa.concat_tables(found)) == expected


# -- in memory


def test_a_catalog_in_memory_by_configuration(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone with the process; so this is for trying things out."""
    monkeypatch.setenv("PYICEBERG_CATALOG__SCRATCH__TYPE", "in-memory")
    monkeypatch.setenv("PYICEBERG_CATALOG__SCRATCH__WAREHOUSE", tmp_path.as_uri())
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # as a new process reads it
    with Archive.open("catalog:scratch") as tables:
        assert archive_into(url, tables) == RECORDS
        assert archive_into(url, tables) == 0
        assert_same(url, tables)


def test_a_catalog_that_nobody_configured_is_one_line() -> None:
    with pytest.raises(CatalogError, match="has no catalog nowhere: URI missing") as raised:
        Archive.open("catalog:nowhere")
    assert "\n" not in str(raised.value)


# -- REST


def test_a_rest_catalog(url: str, tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as server:
        check(url, server.url, {"token": TOKEN})


def test_a_rest_catalog_that_forgets_whether_it_committed(url: str, tmp_path: Path) -> None:
    """What counts is what the table says."""
    options = {"token": TOKEN}
    with rest_catalog(tmp_path) as server, Archive.open(server.url, options) as tables:
        tables.make_table(STREAM, 0)
        tables.table(STREAM).forbid_retries()
        server.forgets = 1
        assert archive_into(url, tables) == RECORDS
        assert server.forgets == 0
        assert_same(url, tables)


def test_a_rest_catalog_at_the_command_line(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "archive", url, STREAM, "--once", "--master", "none"]
    with rest_catalog(tmp_path) as server:
        to = ["--to", server.url]
        assert run([*words, *to, "--catalog-option", f"token={TOKEN}"]) == ExitCode.OK
        capsys.readouterr()
        assert run([*words, *to, "--catalog-option", "token=another"]) == ExitCode.ERROR
        error = capsys.readouterr().err
        assert error.startswith(f"cogwork: the catalog {server.url} cannot be used: ")
        assert error.count("\n") == 1
    assert run([*words, *to, "--catalog-option", f"token={TOKEN}"]) == ExitCode.ERROR
    error = capsys.readouterr().err
    assert (error.count("\n"), TOKEN in error) == (1, False)


# -- PostgreSQL


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server of its own; it refuses to be root, and its directory is the user's."""
    user = "postgres" if os.getuid() == 0 else None
    (port,) = free_ports(1)
    place = Path(
        subprocess.check_output(
            ["mktemp", "-d", "-p", "/tmp"], user=user, text=True, cwd="/"
        ).strip()
    )
    common: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": "/",
        "user": user,
    }
    initdb: list[str | Path] = [
        POSTGRES / "initdb",
        "-D",
        place,
        "-U",
        "jo",
        "-A",
        "trust",
        "--no-sync",
    ]
    subprocess.run(initdb, check=True, **common)
    settings: list[str | Path] = ["-p", str(port), "-k", place, "-h", "127.0.0.1", "-F"]
    process = subprocess.Popen([POSTGRES / "postgres", "-D", place, *settings], **common)
    try:
        within(30, lambda: is_ready(port), "the server answers")
        yield f"postgresql+psycopg2://jo:a-password@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # it does not wait for clients
        process.wait(30)
        shutil.rmtree(place)


def is_ready(port: int) -> bool:
    words: list[str | Path] = [POSTGRES / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-q"]
    return subprocess.run(words, check=False).returncode == 0


@pytest.mark.skipif(not POSTGRES.exists(), reason="there is no PostgreSQL")
def test_a_catalog_in_postgresql(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("psycopg2", reason="PostgreSQL has no client")
    options = {"warehouse": tmp_path.as_uri()}
    with postgres() as place:
        check(url, place, options)
    with suppress(SystemExit):
        words = ["pipeline", "archive", url, STREAM, "--once", "--master", "none", "--to", place]
        assert run([*words, "--catalog-option", f"warehouse={tmp_path.as_uri()}"]) != ExitCode.OK
    error = capsys.readouterr().err
    assert (error.count("\n"), "a-password" in error) == (1, False), error
