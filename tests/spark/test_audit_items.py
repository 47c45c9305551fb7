"""Items of queues, without Spark: brought together in any parts, they are what their events say."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row

from cogwork.dataplane.queue.disorder import Disorder
from cogwork.pipeline.audit.account import Account, keep_account
from cogwork.pipeline.audit.evaluation import Settings, evaluate
from cogwork.pipeline.audit.events import GIVEN_BACK, LAST
from cogwork.pipeline.audit.gathering import Division, find, gather

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = range(40)
LOST_BEFORE = 150
KINDS = ("lost", "twice", "unaccepted")

Event = dict[str, Any]


def told(event: str, item: int, **fields: Any) -> Event:
    """Make an event as a container writes it."""
    attempt, position = str(fields.get("attempt", 0)), fields.get("position")
    return {
        "address": f"work/{item % 2}",
        "message_id": f"{item % 3:08x}{item:016x}",
        "subject": event,
        "correlation_id": fields.get("outcome"),
        "properties": [("attempt", attempt), ("position", position and str(position))],
    }


def history(stage: random.Random) -> list[Event]:
    """Make up what happens to some items; much of it is wrong."""
    places = iter(stage.sample(range(1, 1000), 400))
    events: list[Event] = [told("missed", 0)]
    for item in range(40):
        if stage.random() < 0.95:
            events.append(told("accepted", item, position=next(places)))
        for attempt in range(1, stage.choice((1, 2, 2, 2, 3, 4))):
            drawn = stage.choice((*LAST, *GIVEN_BACK, *["accepted"] * 9))
            outcome = None if drawn == "unknown" else drawn
            place = stage.choice((None, next(places), next(places)))
            events.append(told("settled", item, attempt=attempt, outcome=outcome, position=place))
        if stage.random() < 0.1:
            events.append(told("held", item))
    events += stage.sample(events, 20)  # told again
    stage.shuffle(events)
    return [{**event, "offset": 2 * at} for at, event in enumerate(events)]


def batches_of(events: list[Event], rows: int) -> Iterator[pa.RecordBatch]:
    text = pa.string()
    names = ("address", "message_id", "subject", "correlation_id")
    schema = pa.schema(
        [(name, text) for name in names]
        + [("properties", pa.map_(text, text)), ("offset", pa.int64())]
    )
    for at in range(0, len(events), rows):
        batch = pa.RecordBatch.from_pylist(events[at : at + rows], schema)
        if at % 2:  # files have dictionaries, Spark has none
            place = schema.get_field_index("subject")
            batch = batch.set_column(place, "subject", batch.column(place).dictionary_encode())
        yield batch


def account_of(events: list[Event], stage: random.Random, parts: int = 1) -> Account:
    """Go through the steps that Spark has tasks make."""
    cut = stage.randrange(len(events) + 1)
    tasks = [events[:cut], events[cut:]]
    rows: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for task in tasks:
        for batch in gather(Division((), parts))(batches_of(task, stage.choice((1, 7, 500)))):
            for at, part in enumerate(batch.column("part").to_pylist()):
                rows[part].append(batch.slice(at, 1))
    settings = Settings(LOST_BEFORE, 100)
    evaluated = [batch for part in rows.values() for batch in evaluate(settings)(part)]
    chunks = pa.Table.from_batches(evaluated).sort_by(
        [("shard", "ascending"), ("first", "ascending")]
    )
    kept = keep_account(settings)(chunks.to_batches(max_chunksize=stage.choice((1, 5, 1000))))
    return Account.from_rows(Row(**row) for batch in kept for row in batch.to_pylist())


def expected(events: list[Event]) -> tuple[dict[str, int], int, int]:
    """Evaluate item by item, as the documents say; return counts, violations and the disorder."""
    counts: dict[str, int] = defaultdict(int)
    went: dict[str, list[tuple[int, int]]] = defaultdict(list)
    violations = 0
    events = [event for event in events if event["subject"] != "missed"]
    for item in {event["message_id"] for event in events}:
        own = [each for each in events if each["message_id"] == item]
        ends = [each for each in own if each["subject"] == "settled"]
        came = [each for each in own if each["subject"] == "accepted"]
        outcomes = {each["correlation_id"] or "unknown" for each in ends}
        gone = {
            (dict(each["properties"])["attempt"], each["correlation_id"])
            for each in ends
            if each["correlation_id"] in LAST
        }
        is_open = bool(came) and not outcomes & set(LAST)
        is_held = any(each["subject"] == "held" for each in own)
        verdict = {
            "items": bool(came),
            **{name: name in outcomes for name in LAST},
            "given_back": bool(outcomes & set(GIVEN_BACK)),
            "open": is_open,
            "held": is_open and is_held,
            "lost": is_open and not is_held and max(e["offset"] for e in own) < LOST_BEFORE,
            "twice": len(gone) > 1,
            "unaccepted": not came and bool(outcomes & set(LAST)),
            "untold": False,
        }
        for name, holds in verdict.items():
            counts[name] += holds
        violations += any(verdict[name] for name in KINDS)
        places = [
            [int(dict(e["properties"])["position"] or 0) for e in kind] for kind in (came, ends)
        ]
        if all(any(each) for each in places):
            first, last = (min(filter(None, each)) for each in places)
            went[own[0]["address"] + item[:8]].append((last, first))
    greatest = 0
    for items in went.values():
        disorder = Disorder()
        disorder.take_all(np.array([came for _, came in sorted(items)]))
        greatest = max(greatest, disorder.histogram.maximum)
    counts["measured"] = sum(map(len, went.values()))
    return dict(counts), violations, greatest


@pytest.mark.parametrize("chunk", [1, 3, 8192])
def test_items_are_evaluated_alike_however_they_are_divided(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    for seed in SEEDS:
        stage = random.Random(seed)
        monkeypatch.setattr(
            "cogwork.pipeline.audit.gathering.EVENTS_MAX", stage.choice((1, 20, 1000))
        )
        monkeypatch.setattr("cogwork.pipeline.audit.items.PIECE_ITEMS", stage.choice((1, 7, 1000)))
        monkeypatch.setattr("cogwork.pipeline.audit.evaluation.CHUNK_ITEMS", chunk)
        monkeypatch.setattr(
            "cogwork.pipeline.audit.account.MERGED_ITEMS", stage.choice((1, 5, 1000))
        )
        events = history(stage)
        account = account_of(events, stage, parts=stage.choice((1, 2, 13)))
        counts, violations, greatest = expected(events)
        assert {name: account.total(name) for name in counts} == counts, seed
        assert (len(account.violations), account.greatest("disorder_max")) == (
            violations,
            greatest,
        ), seed


def test_so_many_violations_of_a_kind_are_kept() -> None:
    events = [told("accepted", 6 * item, position=item) for item in range(1, 30)]
    stage = random.Random(1)
    account = account_of([{**each, "offset": 0} for each in events], stage, parts=3)
    assert (account.total("lost"), len(account.violations)) == (29, 29)


@pytest.mark.parametrize(
    ("properties", "is_told"),
    [
        ([("attempt", "1"), ("position", None)], True),
        ([("attempt", "1")], True),
        ([("attempt", "1"), ("attempt", "x"), ("position", "-5")], True),
        ([("attempt", "1"), ("position", "5.0")], False),
        ([("attempt", "1"), ("position", "")], False),
        ([("attempt", "1"), ("position", "-")], False),
        ([("attempt", "1"), ("position", "9" * 18)], False),
        ([("attempt", " 1"), ("position", "5")], False),
        ([("position", "5")], False),
        (None, False),
    ],
)
def test_events_that_do_not_say_all_in_plain_numbers_are_noticed(
    properties: list[tuple[str, str | None]] | None, *, is_told: bool
) -> None:
    events = [told("accepted", 1, position=3) | {"offset": 0}]
    events += [told("settled", 1) | {"offset": 1, "properties": properties}]
    assert account_of(events, random.Random(1)).total("untold") == (not is_told)


def test_all_events_of_some_items_are_found() -> None:
    events = history(random.Random(3))
    account = account_of(events, random.Random(3))
    batches = find(account.violations)(batches_of(events, 7))
    offsets = {at for batch in batches for at in batch.column("offset").to_pylist()}
    items = {each["message_id"] for each in events if each["offset"] in offsets}
    assert len(items) == len(account.violations) > 0
    assert offsets == {each["offset"] for each in events if each["message_id"] in items}
