"""Where a reader starts: what people say, and what goes to the container."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from cogwork.amqp.types import Described, Symbol, Timestamp, ULong
from cogwork.client.streams.start import start_filters, start_of
from cogwork.nodes.stream.start import Wish, wish_of
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin, Snapshot
from cogwork.plugin.node import Refused

NOW = datetime(2026, 11, 21, 12, 30)


def at(*fields: int) -> FromTime:
    return FromTime(int(datetime(*fields).timestamp() * 1000))  # type: ignore[arg-type]  # no zone: the local one


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("first", Origin.FIRST),
        ("last", Origin.LAST),
        ("next", Origin.NEXT),
        ("snapshot", Origin.SNAPSHOT),
        (Snapshot, Origin.SNAPSHOT),
        (Snapshot(17, b"state"), FromOffset(17)),
        (Origin.FIRST, Origin.FIRST),
        (FromOffset(3), FromOffset(3)),
        (0, FromOffset(0)),
        ("17", FromOffset(17)),
        (str(2**64 - 1), FromOffset(2**64 - 1)),
        ("today", at(2026, 11, 21)),
        ("06:00", at(2026, 11, 21, 6)),
        ("2026-11-20T06:00", at(2026, 11, 20, 6)),
        ("2026-11-20", at(2026, 11, 20)),
        ("06:00+00:00", FromTime(1_795_240_800_000)),
        ("2026-11-20T06:00:00+00:00", FromTime(1_795_154_400_000)),
        (date(2026, 11, 20), at(2026, 11, 20)),
        (datetime(2026, 11, 20, 6, tzinfo=UTC), FromTime(1_795_154_400_000)),
    ],
)
def test_a_place_has_many_names(said: object, meant: object) -> None:
    assert start_of(said, lambda: NOW) == meant  # type: ignore[arg-type]  # whatever people say


@pytest.mark.parametrize(
    "said",
    [
        "",
        "noon",
        "-1",
        -1,
        True,
        None,
        1.5,
        "2026-13-01",
        "2026-11",
        time(6),
        2**64,
        str(2**64),
        "9" * 5000,
    ],
)
def test_what_is_no_place_is_refused_with_what_would_be_one(said: object) -> None:
    with pytest.raises(ValueError, match="first, last, next, snapshot, today, an offset"):
        start_of(said, lambda: NOW)  # type: ignore[arg-type]  # whatever people say


@pytest.mark.parametrize("start", [*Origin, FromOffset(9), FromTime(1_000)])
def test_a_node_reads_what_a_client_writes(start: Origin | FromOffset | FromTime) -> None:
    assert wish_of(start_filters(start)) == Wish(start, skips=False)
    assert wish_of(start_filters(start, skips=True)) == Wish(start, skips=True)


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("first", Origin.FIRST),
        (Symbol("last"), Origin.LAST),
        (ULong(5), FromOffset(5)),
        (Timestamp(5), FromTime(5)),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), FromTime(1_000)),
    ],
)
def test_stock_clients_say_it_as_for_rabbitmq(value: object, start: object) -> None:
    spec = Symbol("rabbitmq:stream-offset-spec")
    wish = Wish(start, skips=True, waits=True)  # type: ignore[arg-type]  # as listed
    assert wish_of({spec: Described(spec, value)}) == wish


def test_who_says_nothing_gets_what_comes() -> None:
    assert wish_of(None) == wish_of({Symbol("x"): 1}) == Wish(Origin.NEXT, skips=False)


@pytest.mark.parametrize("value", ["5m", -1, True, None, 1.5, b"first", [1]])
def test_a_filter_that_is_none_is_refused(value: object) -> None:
    start = Symbol("cogwork:stream-start")
    with pytest.raises(Refused, match="is expected"):
        wish_of({start: Described(start, value)})
    truncated = Symbol("cogwork:stream-truncated")
    with pytest.raises(Refused, match="detach or first"):
        wish_of({truncated: Described(truncated, value)})
