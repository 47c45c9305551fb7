"""Durable exchanges and bindings on disk: what is there after a crash, and what is refused."""

from __future__ import annotations

import errno
import os
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from cogwork.amqp091.types import Int8, Timestamp
from cogwork.container.vhost import kept_exchanges
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.container.vhost.kept_exchanges import ExchangeFile, KeptExchanges
from cogwork.log.errors import LogCorrupt, UnsupportedVersion
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination

if TYPE_CHECKING:
    from pathlib import Path

ODD = DeclaredExchange(
    "odd ☂",
    "headers",
    auto_delete=True,
    internal=True,
    arguments={"n": Int8(1), "at": Timestamp(2**40), "d": Decimal("1.5"), "t": {"l": [True, None]}},
)
BINDING = Binding(Destination(QUEUE, "q"), b"\xff.\x00k", {"x-match": "all", "b": b"\xfe"})
TO_EXCHANGE = Binding(Destination(EXCHANGE, "b"), b"k")


def opened(folder: Path) -> ExchangeFile:
    file = ExchangeFile(str(folder))
    file.open()
    return file


def kept(file: ExchangeFile, vhost: str = "") -> KeptExchanges:
    found = file.of(vhost)
    assert found is not None
    return found


def names(file: ExchangeFile, vhost: str = "") -> list[str]:
    return [each.name for each in kept(file, vhost).exchanges()]


def test_what_was_kept_comes_back_with_the_types_of_its_values(tmp_path: Path) -> None:
    file = opened(tmp_path)
    kept(file).declare(ODD)
    kept(file).bind("odd ☂", BINDING)
    kept(file, "blue").declare(DeclaredExchange("a", "topic"))
    file.close()
    again = opened(tmp_path)
    (exchange,) = kept(again).exchanges()
    assert exchange == ODD
    assert {key: type(value) for key, value in exchange.arguments.items()} == {
        key: type(value) for key, value in ODD.arguments.items()
    }
    assert list(kept(again).bindings()) == [("odd ☂", BINDING)]
    assert names(again, "blue") == ["a"]
    assert (tmp_path / "exchanges").stat().st_mode & 0o77 == 0


def test_what_is_deleted_goes_with_its_bindings(tmp_path: Path) -> None:
    file = opened(tmp_path)
    for name in ("a", "b", "c"):
        kept(file).declare(DeclaredExchange(name, "fanout"))
        kept(file).bind(name, BINDING)
    kept(file).bind("a", TO_EXCHANGE)
    kept(file).delete("b")
    kept(file).unbind([("c", BINDING)])
    kept(file).unbind([("c", BINDING), ("none", BINDING)])
    file.close()
    again = opened(tmp_path)
    assert names(again) == ["a", "c"]
    assert list(kept(again).bindings()) == [("a", BINDING)]
    kept(again).delete_all()
    again.close()
    assert names(opened(tmp_path)) == []


@pytest.mark.parametrize("torn_octets", range(1, 20))
def test_a_torn_last_line_is_left_out_and_the_rest_stays(tmp_path: Path, torn_octets: int) -> None:
    file = opened(tmp_path)
    kept(file).declare(DeclaredExchange("a", "fanout"))
    kept(file).declare(DeclaredExchange("b", "fanout"))
    file.close()
    path = tmp_path / "exchanges"
    path.write_bytes(path.read_bytes()[:-torn_octets])
    torn = opened(tmp_path)
    assert names(torn) == ["a"]
    kept(torn).declare(DeclaredExchange("c", "fanout"))
    torn.close()
    assert names(opened(tmp_path)) == ["a", "c"]


def test_damage_in_the_middle_is_refused_and_says_where(tmp_path: Path) -> None:
    file = opened(tmp_path)
    for name in ("a", "b"):
        kept(file).declare(DeclaredExchange(name, "fanout"))
    file.close()
    path = tmp_path / "exchanges"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"a"', b'"x"')
    path.write_bytes(b"".join(lines))
    with pytest.raises(LogCorrupt, match=f"exchanges is damaged at position {len(lines[0])}"):
        opened(tmp_path)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    line = kept_exchanges._line(["cogwork exchanges", 2])
    (tmp_path / "exchanges").write_bytes(line)
    with pytest.raises(UnsupportedVersion, match="has format version 2"):
        opened(tmp_path)


def test_the_file_does_not_grow_with_what_is_gone(tmp_path: Path) -> None:
    file = opened(tmp_path)
    kept(file).declare(DeclaredExchange("stays", "fanout"))
    for _ in range(kept_exchanges.STALE_LINES_MAX):
        kept(file).bind("stays", BINDING)
        kept(file).unbind([("stays", BINDING)])
    file.close()
    assert (tmp_path / "exchanges").stat().st_size < 250 * kept_exchanges.STALE_LINES_MAX
    assert names(opened(tmp_path)) == ["stays"]


def test_what_could_not_be_written_is_not_there_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(tmp_path)
    kept(file).declare(DeclaredExchange("a", "fanout"))

    def fail(_fd: int, _octets: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="No space left"):
            kept(file).declare(DeclaredExchange("b", "fanout"))
    kept(file).declare(DeclaredExchange("c", "fanout"))
    file.close()
    assert names(opened(tmp_path)) == ["a", "c"]


def test_nothing_is_written_before_the_directory_is_ours(tmp_path: Path) -> None:
    first, second = opened(tmp_path), ExchangeFile(str(tmp_path))
    kept(first).declare(DeclaredExchange("a", "fanout"))
    kept(second).declare(DeclaredExchange("b", "fanout"))
    first.close()
    assert names(ExchangeFile(str(tmp_path))) == ["a"]
    second.open()
    second.close()
    assert names(ExchangeFile(str(tmp_path))) == ["b"]


def test_what_is_whole_is_gone_on_with_and_not_written_anew(tmp_path: Path) -> None:
    first = opened(tmp_path)
    kept(first).declare(DeclaredExchange("a", "fanout"))
    first.close()
    inode = (tmp_path / "exchanges").stat().st_ino
    second = opened(tmp_path)
    kept(second).declare(DeclaredExchange("b", "fanout"))
    second.close()
    assert (tmp_path / "exchanges").stat().st_ino == inode
    assert names(ExchangeFile(str(tmp_path))) == ["a", "b"]


def test_nothing_is_kept_without_a_data_directory() -> None:
    assert ExchangeFile(None).of("") is None
