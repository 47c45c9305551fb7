"""Durable exchanges, bindings and traits of queues, kept in one file for all virtual hosts.

Theory of operation. Each change is one line: the checksum of what follows, and a JSON array. It is
appended and synchronised before the change is answered: what was answered is there after a crash. A
last line that is torn was answered to nobody, and is left out; any other damage is refused, for
nobody could tell what is missing. The file is written anew, and put in place of the old one, when
most of its lines are out of date, or the last one is torn.

Nothing is written before `open`: until the container starts, another one may use the directory.

Declarations are rare: a client that comes back declares what is there, which writes nothing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google_crc32c import value as checksum

from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.container.vhost.kept_queues import KeptQueues
from cogwork.container.vhost.table_text import table_of, text_of_table
from cogwork.log.directory import opened_privately
from cogwork.log.errors import LogCorrupt, UnsupportedVersion
from cogwork.router.exchanges.binding import EXCHANGE, Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ("ExchangeFile", "KeptExchanges")

FILE_NAME: Final = "exchanges"
HEADER: Final[list[object]] = ["cogwork exchanges", 1]
"""The first record: what the file is, and the version of its format."""

STALE_LINES_MAX: Final = 1000
"""So many lines that are out of date are left, however few are not."""

Key = tuple[str, ...]
"""Virtual host and name of an exchange; of a binding source, destination, key and arguments."""

Record = tuple[object, ...]


class ExchangeFile:
    """The file, and what it says. Owned by the container."""

    def __init__(self, data_dir: str | None) -> None:
        """Read the file.

        Args:
            data_dir: Where it is; None keeps nothing.

        Raises:
            LogError: The file is damaged, or of another version.
            OSError: It cannot be read.
        """
        self._path = None if data_dir is None else Path(data_dir) / FILE_NAME
        self._records: dict[Key, Record] = {}
        self._lines = 0
        self._fd: int | None = None
        self._sync: Callable[[int], None] | None = None
        self._is_behind = False
        self._is_torn = False
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def open(self, sync: Callable[[int], None] = os.fdatasync) -> None:
        """Write from now on, and what has changed before: the directory is this process's alone.

        Args:
            sync: Synchronises the file of a descriptor, or has answers wait until that is done.

        Raises:
            OSError: The file cannot be written.
        """
        self._sync = sync
        if self._is_behind and self._path is not None:
            self._rewrite(self._path)

    def of(self, vhost: str) -> KeptExchanges | None:
        """Return what is kept of a virtual host; None if nothing is."""
        return None if self._path is None else KeptExchanges(self, vhost)

    def records(self, vhost: str, length: int) -> list[Record]:
        """List what is kept of a virtual host by keys of so many parts: 2 exchanges, 6 bindings."""
        return [
            record
            for key, record in self._records.items()
            if key[0] == vhost and len(key) == length
        ]

    def has(self, key: Key) -> bool:
        """Return whether something is kept."""
        return key in self._records

    def find(self, key: Key) -> Record | None:
        """Return what is kept; None where nothing is."""
        return self._records.get(key)

    def put(self, key: Key, record: Record) -> None:
        """Keep something, once the file is open.

        Raises:
            OSError: It cannot be written.
        """
        self._append([["put", [*key], [*record]]])
        self._records[key] = record

    def remove(self, keys: list[Key]) -> None:
        """Keep something no longer.

        Raises:
            OSError: That cannot be written.
        """
        if keys:
            self._append([["remove", [*key]] for key in keys])
            for key in keys:
                self._records.pop(key, None)

    def names(self) -> list[Key]:
        """List what is kept."""
        return list(self._records)

    def close(self) -> None:
        """Let the file go."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # -- the file

    def _append(self, records: list[list[object]]) -> None:
        assert self._path is not None
        if self._sync is None:
            self._is_behind = True
            return
        if self._fd is None and self._lines and not self._is_torn:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        if self._fd is None or self._lines > 2 * len(self._records) + STALE_LINES_MAX:
            self._rewrite(self._path)
        assert self._fd is not None
        end = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            _write(self._fd, b"".join(_line(each) for each in records))
            self._sync(self._fd)
        except OSError:
            os.ftruncate(self._fd, end)  # what nobody was told must not be there later
            raise
        self._lines += len(records)

    def _rewrite(self, path: Path) -> None:
        """Write what is kept to a new file, which takes the place of the old one once whole."""
        self.close()
        lines = [HEADER]
        for key, record in self._records.items():
            lines.append(["put", [*key], [*record]])
        fresh = path.with_suffix(".new")
        with open(fresh, "wb", opener=opened_privately) as file:
            file.write(b"".join(_line(each) for each in lines))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._lines = len(lines)
        self._is_torn = False

    def _read(self, path: Path) -> None:
        content = path.read_bytes()
        position = 0
        while position < len(content):
            end = content.find(b"\n", position)
            record = None if end < 0 else _record_of(content[position:end])
            if record is None:
                if 0 <= end < len(content) - 1:
                    raise LogCorrupt(str(path), position, "a line's checksum does not fit")
                self._is_torn = True  # by a crash
                return
            self._take(path, position, record)
            self._lines += 1
            position = end + 1

    def _take(self, path: Path, position: int, record: list[object]) -> None:
        match record:
            case ["put", [*key], [*values]]:
                self._records[tuple(str(part) for part in key)] = tuple(values)
            case ["remove", [*key]]:
                self._records.pop(tuple(str(part) for part in key), None)
            case [name, int(version)] if name == HEADER[0] and position == 0:
                if version != HEADER[1]:
                    raise UnsupportedVersion(str(path), version, 1)
            case _:
                raise LogCorrupt(str(path), position, "a record of an unknown kind")


class KeptExchanges:
    """What is kept of one virtual host.

    Attributes:
        queues: What its durable queues were declared with.
    """

    def __init__(self, file: ExchangeFile, vhost: str) -> None:
        """Initialize it with the file of the container.

        Args:
            file: Where everything is kept.
            vhost: The name of the virtual host.
        """
        self._file = file
        self._vhost = vhost
        self.queues = KeptQueues(file, vhost)

    def exchanges(self) -> Iterator[DeclaredExchange]:
        """Yield the exchanges that are kept."""
        for name, kind, auto_delete, internal, arguments in self._file.records(self._vhost, 2):
            yield DeclaredExchange(
                str(name),
                str(kind),
                auto_delete=bool(auto_delete),
                internal=bool(internal),
                arguments=table_of(arguments),
            )

    def bindings(self) -> Iterator[tuple[str, Binding]]:
        """Yield the bindings that are kept, each with the exchange that it leads from."""
        for source, kind, name, key, arguments in self._file.records(self._vhost, 6):
            destination = Destination(str(kind), str(name))
            octets = str(key).encode(errors="surrogateescape")
            yield str(source), Binding(destination, octets, table_of(arguments))

    def declare(self, exchange: DeclaredExchange) -> None:
        """Keep an exchange."""
        record = (
            *(exchange.name, exchange.kind, exchange.auto_delete, exchange.internal),
            text_of_table(exchange.arguments),
        )
        self._file.put((self._vhost, exchange.name), record)

    def delete(self, name: str) -> None:
        """Keep an exchange no longer, nor the bindings from it and to it."""
        self._file.remove(
            [
                key
                for key in self._file.names()
                if key[:2] == (self._vhost, name)
                or (key[0] == self._vhost and key[2:4] == (EXCHANGE, name))
            ]
        )

    def bind(self, source: str, binding: Binding) -> None:
        """Keep a binding."""
        key = self._key_of(source, binding)
        self._file.put(key, key[1:])

    def unbind(self, bindings: Iterable[tuple[str, Binding]]) -> None:
        """Keep bindings no longer, those of them that are kept, each with its exchange."""
        keys = [self._key_of(*each) for each in bindings]
        self._file.remove([key for key in keys if self._file.has(key)])

    def delete_all(self) -> None:
        """Keep nothing any more."""
        self._file.remove([key for key in self._file.names() if key[0] == self._vhost])

    def _key_of(self, source: str, binding: Binding) -> Key:
        text = binding.key.decode(errors="surrogateescape")
        return (self._vhost, source, *binding.destination, text, text_of_table(binding.arguments))


def _line(record: list[object]) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %b\n" % (checksum(text), text)


def _record_of(line: bytes) -> list[object] | None:
    """Return what a line says; None if its checksum does not fit."""
    head, _, text = line.partition(b" ")
    try:
        if int(head, 16) != checksum(text):
            return None
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, list) else None


def _write(fd: int, octets: bytes) -> None:
    """Write all of it."""
    while octets:
        octets = octets[os.write(fd, octets) :]
