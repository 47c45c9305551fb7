"""Opening the catalog that knows an archive's tables.

A directory has its own: SQLite in `catalog.db`, beside the tables. `catalog:NAME` is one that
pyiceberg's configuration describes (`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__NAME__*`), and a URI
is opened as pyiceberg would open it: `http(s):` a REST catalog, `sqlite:` and `postgresql:` one in
a database. Further properties, such as `warehouse` and credentials of an object store, come as
options.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import RESTError
from sqlalchemy.exc import SQLAlchemyError

from cogwork.pipeline.archive.errors import ArchiveError, ArchiveMissing, CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

__all__ = ("CATALOG_FILE", "answers", "open_catalog", "shown")

CATALOG_FILE = "catalog.db"
CONFIGURED = "catalog:"
BY_SCHEME = ("http://", "https://", "sqlite://", "postgresql://", "postgresql+psycopg2://")
BUSY_TIMEOUT_S = 60
"""So long one archiver waits for another's hold on SQLite: a commit takes milliseconds."""

TRIES = 3
PAUSE_S = 0.1


def open_catalog(to: str, options: Mapping[str, str] | None = None, *, make: bool) -> Catalog:
    """Open a catalog.

    Args:
        to: A directory, `catalog:NAME`, or a URI.
        options: Further properties of pyiceberg.
        make: Whether a directory is made where there is none.

    Raises:
        ArchiveMissing: The directory is no archive, and none is to be made.
        CatalogError: It cannot be opened.
    """
    properties = dict(options or {})
    with answers(to):
        if to.startswith(CONFIGURED):
            return _configured(to.removeprefix(CONFIGURED) or None, properties)
        if to.startswith(BY_SCHEME):
            if to.startswith("http"):
                return load_catalog("cogwork", **{"type": "rest", "uri": to, **properties})
            return _database({"uri": to, **properties})
        if "://" in to:
            raise CatalogError(f"{shown(to)} is no directory, and no catalog that can be opened")
        return _embedded(Path(to), properties, make=make)


def _configured(name: str | None, properties: dict[str, str]) -> Catalog:
    """Open one that pyiceberg's configuration describes."""
    try:
        return load_catalog(name, **properties)
    except ValueError as error:  # it is not described, or not well
        raise CatalogError(
            f"pyiceberg's configuration has no catalog {name or 'default'}: {error}"
        ) from error


def _embedded(folder: Path, properties: dict[str, str], *, make: bool) -> Catalog:
    """Open the catalog in a directory."""
    folder = folder.expanduser().resolve()
    file = folder / CATALOG_FILE
    if not file.exists():
        if not make:
            raise ArchiveMissing(f"{folder} is no archive: it has no {CATALOG_FILE}")
        folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{file}?timeout={BUSY_TIMEOUT_S}"
    return _database({"uri": uri, "warehouse": folder.as_uri(), **properties})


def _database(properties: dict[str, str]) -> Catalog:
    """Open a catalog in a database; two that make its tables at once are in each other's way."""
    for _ in range(TRIES - 1):
        with suppress(SQLAlchemyError):
            return SqlCatalog("cogwork", **properties)
        time.sleep(PAUSE_S)
    return SqlCatalog("cogwork", **properties)


def shown(to: str) -> str:
    """Name a catalog for people: without user and password."""
    scheme, there, rest = to.partition("://")
    if not there:
        return to
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


@contextmanager
def answers(to: str) -> Iterator[None]:
    """Turn what a catalog raises into one line that names it."""
    try:
        yield
    except ArchiveError:
        raise
    except (RESTError, SQLAlchemyError, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        text = " ".join(str(error).split())
        raise CatalogError(f"the catalog {shown(to)} cannot be used: {text}") from error
