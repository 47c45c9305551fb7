"""Audits of small archives: what is in order passes, and each thing that is not is found."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import nullcontext
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

import pytest
from audit_tables import (
    BEGAN_US,
    STEP_US,
    Directory,
    accepted,
    event,
    in_properties,
    of_producer,
    said,
    settled,
)
from click.testing import CliRunner
from rich.console import Console

from cogwork.cli.commands.pipelines.audit import audit as command
from cogwork.cli.commands.pipelines.looking import EVERY_S, looking
from cogwork.cli.exit_codes import ExitCode
from cogwork.pipeline.audit.delivery_recorder import DeliveryRecorder
from cogwork.pipeline.audit.errors import AuditError
from cogwork.pipeline.audit.heartbeats import depths_of
from cogwork.pipeline.audit.page import page_of
from cogwork.pipeline.audit.queues import check_queues
from cogwork.pipeline.audit.run import audit
from cogwork.pipeline.audit.source import Records
from cogwork.pipeline.spark.job import explaining

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from cogwork.pipeline.audit.report import Check, Report

ITEMS = range(1, 9)
QUIET = [said("nothing")] * 70
"""Records that come so long after the others that no item may still be open."""


def found(report: Report) -> dict[tuple[str, str], Check]:
    return {(check.about, check.claim): check for check in report.checks}


def kinds(report: Report) -> list[tuple[str, str]]:
    return sorted((check.about, row["kind"]) for check in report.checks for row in check.rows)


class Written:
    """A publisher that keeps what is sent."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    async def send(self, body: bytes, **fields: object) -> None:
        self.records.append({"body": body, **fields})


def seen_by(name: str, offsets: list[int], *, other: int | None = None) -> list[dict[str, Any]]:
    out = Written()
    asyncio.run(watch(out, name, offsets, other))
    return out.records


async def watch(out: Written, name: str, offsets: list[int], other: int | None) -> None:
    recorder = DeliveryRecorder(out, "flights", name, clock=lambda: 0.0)
    for offset in offsets:
        await recorder.saw(offset, b"?" if offset == other else b"%d" % offset)
    await recorder.flush()


def test_what_is_in_order_passes(spark: SparkSession, tmp_path: Path) -> None:
    archive = Directory(tmp_path)
    archive.put("flights", of_producer(range(2500)))
    events = [accepted(each) for each in ITEMS] + [settled(each) for each in ITEMS]
    archive.put("$audit", [*events, accepted(3, position=90), settled(3), settled(4, None), *QUIET])
    report = audit(spark, archive, name="here")
    assert report.is_clean
    assert {check.verdict for check in report.checks} == {"holds"}
    lost = found(report)["work/a", "every accepted item settled or still there"]
    assert lost.figures == {"items": 8, "processed": 8, "unknown": 1, "open": 0}
    whole = found(report)["stream/flights", "offsets without gaps or duplicates"]
    assert (whole.figures["records"], whole.figures["next"]) == (2500, 2500)
    assert "✗" not in page_of(report).replace("✗ violated", "")


@pytest.fixture(params=["by our tasks", "by Spark"])
def files_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the archive's files: Spark does where they are not at hand."""
    if request.param == "by Spark":
        monkeypatch.setattr("cogwork.pipeline.audit.source.parts_of", lambda _: None)


@pytest.mark.usefixtures("files_read")
def test_each_planted_violation_is_found_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = Directory(tmp_path)
    flights = of_producer(range(2500))
    flights[7]["sequence"], flights[8]["sequence"] = 8, 7
    for each in of_producer([0, 1, 3], b"q"):  # two is missing
        flights.append({**each, "body": b"%d" % len(flights)})
    flights += [{"offset": 2503 + 4}, {"offset": 2503 + 4}]  # a gap, and one twice
    flights += [{"offset": 2508, "time": 0}]
    archive.put("flights", flights)
    seen = seen_by("straight", list(range(2503)))
    seen += seen_by("swapped", [*range(5), 6, 5, *range(7, 2000)])
    seen += seen_by("other", list(range(2000)), other=1500)
    events = [accepted(each) for each in ITEMS]
    events += [settled(2, position=1), settled(1, position=2)]
    events += [settled(each) for each in range(3, 7)]  # seven and eight are not
    events += [settled(3, attempt=2), settled(4, "expired", attempt=2), settled(99)]
    events += [event("held", 8, "work/a"), settled(6, "released")]
    archive.put("$audit", events + seen + QUIET)
    report = audit(spark, archive)
    assert kinds(report) == [
        ("stream/flights", "backwards"),
        ("stream/flights", "differs"),
        ("stream/flights", "duplicate"),
        ("stream/flights", "missing"),
        ("stream/flights", "missing"),
        ("stream/flights", "swapped"),
        ("stream/flights", "swapped"),
        ("work/a", "lost"),
        ("work/a", "never-accepted"),
        ("work/a", "processed-twice"),
        ("work/a", "settled-twice"),
    ]
    checks = found(report)
    lost = checks["work/a", "every accepted item settled or still there"]
    assert lost.rows[0]["item"].endswith("7")
    assert [each["event"] for each in lost.rows[0]["events"]] == ["accepted"]
    assert checks["work/a", "how far items went out of order"].figures["disorder_max"] == 1
    assert checks["stream/flights", "straight saw the canonical order"].verdict == "holds"
    order = checks["stream/flights", "swapped saw the canonical order"]
    assert [(row["kind"], row["first"]) for row in order.rows] == [("swapped", 5)]
    differs = checks["stream/flights", "other saw the canonical order"].rows[0]
    assert (differs["first"], differs["last"]) == (1000, 1999)
    assert "processed-twice" in page_of(report)
    assert json.loads(json.dumps(report.as_dict()))["violations"] == 11


@pytest.mark.usefixtures("files_read")
@pytest.mark.parametrize("form", ["properties alone", "some in bodies", "odd numbers"])
def test_events_say_it_in_properties_or_in_bodies(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    events = [accepted(each) for each in ITEMS]
    events += [settled(2, position=1), settled(1, position=2)]
    events += [settled(each) for each in range(3, 7)]
    events += [settled(3, attempt=2), settled(4, "expired", attempt=2), settled(99)]
    events += [event("held", 8, "work/a"), settled(6, "released"), settled(5, None, attempt=0)]
    if form == "properties alone":
        events = [in_properties(each) | {"body": b"{}"} for each in events]
    elif form == "odd numbers":
        events = [in_properties(each) for each in events]
        events[0]["properties"] = [("attempt", " 1"), ("position", "1")]
    else:
        events = [in_properties(each) if at % 2 else each for at, each in enumerate(events)]
    archive = Directory(tmp_path)
    archive.put("$audit", events + QUIET)
    records = Records(spark, archive.files("$audit"))
    checks = {check.claim: check for check in check_queues(records, ["work/a"])}
    assert sorted(row["kind"] for check in checks.values() for row in check.rows) == [
        "lost",
        "never-accepted",
        "processed-twice",
        "settled-twice",
    ]
    lost = checks["every accepted item settled or still there"]
    assert lost.rows[0]["item"].endswith("7")
    assert (lost.figures["held"], lost.figures["given_back"]) == (1, 1)
    order = checks["how far items went out of order"].figures
    assert (order["measured"], order["disorder_max"]) == (6, 1)


def test_what_cannot_be_known_is_no_proof(spark: SparkSession, tmp_path: Path) -> None:
    archive = Directory(tmp_path)
    events = [accepted(each, queue="work/missed") for each in ITEMS]
    events += [settled(each, queue="work/missed") for each in (8, *range(2, 8))]
    events += [said("missed", queue="work/missed", container="north", count=2, time_us=0)]
    events += [accepted(each, queue="work/sampled", sample=0.5) for each in ITEMS]
    events += [settled(each, queue="work/sampled") for each in ITEMS]
    events += [accepted(each, queue="work/deep") for each in ITEMS]
    late = [accepted(50, queue="work/sampled", sample=0.5)]
    archive.put("$audit", [{**each, "offset": at} for at, each in enumerate(events + QUIET + late)])
    heartbeat = {"address": "work/deep", "vhost": "", "kind": "queue", "depth": 8}
    archive.put(
        "$telemetry", [said("heartbeat", container="north", time_us=0, addresses=[heartbeat])]
    )
    report = audit(spark, archive, queues=["work/missed", "work/sampled", "work/deep"])
    assert report.is_clean
    claim = "every accepted item settled or still there"
    missed, sampled, deep = (
        found(report)[queue, claim] for queue in ("work/missed", "work/sampled", "work/deep")
    )
    assert (missed.verdict, missed.figures["not_settled"]) == ("unproven", 1)
    assert (sampled.verdict, sampled.figures["open"]) == ("unproven", 1)
    assert (deep.verdict, deep.figures["depth"]) == ("holds", 8)
    order = found(report)["work/missed", "how far items went out of order"]
    assert order.figures["measured"] == 7
    with pytest.raises(AuditError, match="no events of work/none"):
        audit(spark, archive, queues=["work/none"])
    with pytest.raises(AuditError, match="stream/none has no table"):
        audit(spark, archive, streams=["none"])


def test_the_command_tells_by_its_exit_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Directory(tmp_path / "tables")
    archive.put("flights", of_producer([0, 2, 1]))
    monkeypatch.setattr("cogwork.pipeline.archive.Archive.open", lambda _: nullcontext(archive))
    monkeypatch.setattr("cogwork.pipeline.spark.session.open_session", lambda *_, **__: Kept(spark))
    page = tmp_path / "audit.html"
    arguments = ["--archive", "x", "--html", str(page)]
    shown = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert shown.return_value == ExitCode.VIOLATED
    assert "✗ every producer's sequence once and in order" in shown.stdout
    assert "✗" in page.read_text()


def test_what_dead_containers_held_counts_no_more(spark: SparkSession, tmp_path: Path) -> None:
    def beat(container: str, depth: int, second: int) -> dict[str, Any]:
        queues = [
            {"address": "work/a", "vhost": name, "kind": "queue", "depth": depth}
            for name in ("", "blue")
        ]
        told = said("heartbeat", container=container, interval_s=10.0, addresses=queues)
        return {**told, "time": BEGAN_US + second * STEP_US}

    archive = Directory(tmp_path)
    beats = [beat("north", 100, 0), beat("south", 1, 5), beat("west", 40, 6), beat("south", 2, 15)]
    beats += [beat("west", 30, 20), beat("south", 3, 45)]
    archive.put("$telemetry", [*beats, said("bench", bench="isr")])
    assert depths_of(spark, archive) == {"work/a": 33, "blue:work/a": 33}
    earlier = depths_of(spark, archive, BEGAN_US + 16 * STEP_US)
    assert earlier == {"work/a": 142, "blue:work/a": 142}, "as of then"
    later = depths_of(spark, archive, BEGAN_US - STEP_US)
    assert later == {"work/a": 33, "blue:work/a": 33}, "there are none as of then"
    archive = Directory(tmp_path / "other")
    archive.put("$telemetry", [said("bench", bench="isr")])
    assert depths_of(spark, archive) == {}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_how_far_it_is_and_what_spark_makes_of_it(
    spark: SparkSession, tmp_path: Path, *, is_terminal: bool
) -> None:
    archive = Directory(tmp_path)
    archive.put("flights", of_producer(range(100)))
    plans: list[str] = []
    screen = Console(file=StringIO(), force_terminal=is_terminal, width=100)
    with looking(spark, screen=screen) as tell, explaining(spark, plans.append):
        audit(spark, archive, tell=tell)
        time.sleep(2 * EVERY_S)  # a bar is drawn so often
    shown = cast("StringIO", screen.file).getvalue()
    assert "stream/flights" in shown
    assert ("cogwork: looking at" not in shown) is is_terminal
    assert bool(re.search(r"[1-9]\d*/\d", shown)) is is_terminal
    assert any("MapInArrow" in plan for plan in plans)


class Kept:
    """A session that others still need."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass
