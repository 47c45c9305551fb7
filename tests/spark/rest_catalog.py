"""A REST catalog of Iceberg, in a thread: what clients need of it, over an SQL catalog."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table
from sqlalchemy.exc import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-secret-token"


class FellOver(Exception):
    """The server, after a commit."""


CODES: dict[type[Exception], int] = {
    CommitFailedException: 409,
    FellOver: 500,
    IntegrityError: 409,
    NamespaceAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    TableAlreadyExistsError: 409,
}


class RestServer(ThreadingHTTPServer):
    """Serves one catalog.

    Attributes:
        catalog: What has the tables.
        forgets: How many commits are made, and answered as if nobody knew whether they were.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        uri = f"sqlite:///{folder}/rest.db?timeout=60"
        self.catalog = SqlCatalog("rest", uri=uri, warehouse=folder.as_uri())
        self.forgets = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: RestServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        """Say nothing."""

    def do_GET(self) -> None:  # its name there
        self._answer(self._get)

    def do_POST(self) -> None:  # its name there
        self._answer(self._post)

    def _answer(self, work: Any) -> None:  # a method
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._send(401, _error(401, "NotAuthorized", "no token, or another one"))
            return
        parts = urlsplit(self.path).path.strip("/").split("/")[1:]
        try:
            self._send(200, work(parts))
        except tuple(CODES) as error:
            code = CODES[type(error)]
            self._send(code, _error(code, type(error).__name__, str(error)))

    def _send(self, code: int, body: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def _get(self, parts: list[str]) -> str:
        catalog = self.server.catalog
        match parts:
            case ["config"]:
                return json.dumps({"defaults": {}, "overrides": {}})
            case ["namespaces", name, "tables"]:
                names = catalog.list_tables(name)
                found = [{"namespace": list(each[:-1]), "name": each[-1]} for each in names]
                return json.dumps({"identifiers": found})
            case ["namespaces", name, "tables", table]:
                return _described(catalog.load_table((name, table)))
        raise NoSuchTableError("/".join(parts))

    def _post(self, parts: list[str]) -> str:
        catalog = self.server.catalog
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match parts:
            case ["namespaces"]:
                asked = json.loads(body)
                catalog.create_namespace(tuple(asked["namespace"]), asked["properties"])
                return json.dumps(asked)
            case ["namespaces", name, "tables"]:
                wanted = CreateTableRequest.model_validate({"location": None, **json.loads(body)})
                assert wanted.partition_spec is not None
                return _described(
                    catalog.create_table(
                        (name, wanted.name),
                        wanted.table_schema,
                        partition_spec=wanted.partition_spec,
                        properties=wanted.properties,
                    )
                )
            case ["namespaces", name, "tables", table]:
                return self._commit((name, table), CommitTableRequest.model_validate_json(body))
        raise NoSuchTableError("/".join(parts))

    def _commit(self, name: tuple[str, str], asked: CommitTableRequest) -> str:
        catalog = self.server.catalog
        done = catalog.commit_table(catalog.load_table(name), asked.requirements, asked.updates)
        if self.server.forgets:
            self.server.forgets -= 1
            raise FellOver("nobody knows whether that was committed")
        return done.model_dump_json(by_alias=True)


def _described(table: Table) -> str:
    metadata = table.metadata.model_dump_json(by_alias=True)
    return f'{{"metadata-location": {json.dumps(table.metadata_location)}, "metadata": {metadata}}}'


def _error(code: int, kind: str, message: str) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "code": code}})


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestServer]:
    """Run one for the length of a `with`."""
    server = RestServer(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.catalog.close()
