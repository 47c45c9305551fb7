"""Figures of a small mesh whose heartbeats are known, and the page that shows them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from audit_tables import BEGAN_US, Directory, said
from click.testing import CliRunner

from cogwork.cli.commands.pipelines.analytics import analytics as command
from cogwork.cli.exit_codes import ExitCode
from cogwork.container.telemetry.heartbeat import ADDRESSES_TOLD_MAX, PAIRS_TOLD_MAX
from cogwork.pipeline.analytics.analysis import (
    HOUR_US,
    INTERVALS_MAX,
    MINUTE_US,
    analyse,
    interval_of,
)
from cogwork.pipeline.analytics.capacity import (
    Run,
    capacities,
    limit_of,
    parse_bandwidth,
    tm_per_wd,
)
from cogwork.pipeline.analytics.charts import charts_of
from cogwork.pipeline.analytics.errors import AnalyticsError
from cogwork.pipeline.analytics.heartbeats import TOLD_MAX, Heartbeats
from cogwork.pipeline.analytics.moves import Flow, moves_of
from cogwork.pipeline.analytics.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

GIGABIT = 1e9


def heartbeat(
    container: str, at: int, messages: int, *, incarnation: int = 1, sequence: int | None = None
) -> dict[str, Any]:
    """Make the one of so many seconds after the start; half of the messages go elsewhere."""
    other = "south" if container == "north" else "north"
    wait = {"p50": 1023, "p90": 2047, "p99": 8191 * at // 10, "p999": 16383, "count": 10}
    queue = {"address": "work/a", "vhost": "", "kind": "queue", "in": messages, "out": messages}
    north = {"address": "work/a", "to": other, "messages": messages // 2, "bytes": 50 * messages}
    return said(
        "heartbeat",
        container=container,
        incarnation=incarnation,
        sequence=sequence,
        time_us=BEGAN_US + at * 1_000_000,
        interval_s=10,
        connections=3,
        messages_in=messages,
        messages_out=2 * messages,
        bytes_in=100 * messages,
        bytes_out=200 * messages,
        memory_bytes=50_000_000,
        cpu_s=at / 10,
        addresses=[{**queue, "bytes_in": 100 * messages, "depth": 5, "latency_us": wait}],
        links=[{"to": other, "in": 0, "out": messages, "bytes_in": 0, "bytes_out": 9 * messages}],
        matrix=[north] if container == "north" else [],
    )


BENCH = {
    "kind": "bench",
    "bench": "xsr",
    "time_us": BEGAN_US,
    "document": {"brokers": 3, "queues": 4},
    "brokers": 2,
    "queues": 4,
    "size_bytes": 250,
    "seconds": 2.0,
    "messages_in": 40_000,
    "messages": 320_000,
    "rate": 160_000.0,
    "single_rate": 100_000.0,
    "efficiency": 0.8,
    "by_broker": [{"url": "amqp://a", "messages": 160_000, "rate": 80_000.0}] * 2,
    "problems": [],
}


@pytest.fixture
def mesh(tmp_path: Path) -> Directory:
    """Two containers; the first one restarts, and the second gets all it has from the first."""
    archive = Directory(tmp_path / "tables")
    beats = [
        heartbeat("north", 10, 1000, sequence=1),
        heartbeat("south", 10, 100, sequence=1),
        heartbeat("north", 20, 3000, sequence=2),
        heartbeat("south", 20, 1500, sequence=2),
        heartbeat("north", 30, 500, incarnation=2, sequence=1),
    ]
    archive.put("$telemetry", [*beats, beats[-1], said("bench", **BENCH)])
    archive.put("flights", [{"body": b"x" * size} for size in range(100)])
    return archive


def test_counters_become_what_happened(spark: SparkSession, mesh: Directory) -> None:
    found = analyse(spark, mesh, GIGABIT, name="here")
    sums = {"north": 0, "south": 0}
    for row in found.containers:
        sums[row["container"]] += row["messages_in"]
    assert sums == {"north": 3500, "south": 1500}
    north = [row for row in found.containers if row["container"] == "north"]
    assert max(row["peak_in"] for row in north) == 200
    assert sum(row["seconds"] for row in north) == 30
    address = [row for row in found.addresses if row["container"] == "north"]
    assert sum(row["in"] for row in address) == 3500
    assert {row["p50"] for row in address} == {1023}
    assert max(row["p99"] for row in address) == 24573
    assert sum(row["bytes_out"] for row in found.links) == 9 * 5000
    assert found.flows == [Flow("work/a", "north", "south", 1750, 175_000)]
    assert [(move.source, move.target, move.messages) for move in found.moves] == [
        ("south", "north", 1750)
    ]
    flights = next(each for each in found.streams if each["stream"] == "flights")
    assert (flights["records"], flights["bytes"], flights["sizes"][3]) == (100, 4950, 99)
    assert sum(each["records"] for each in flights["intervals"]) == 100
    measured = [each for each in found.capacity if each.source == "measured"]
    assert [each.capacity for each in measured] == [20_000] * 3
    charts = charts_of(found)
    assert set(charts) == {
        "records",
        "sizes",
        "messages_in",
        "messages_out",
        "addresses",
        "latency",
        "links",
        "matrix",
        "switching",
    }
    page = page_of(found, charts)
    assert "work/a: from south to north" in page
    assert page.count("<svg ") == len(charts)
    assert all(chart.png.startswith(b"\x89PNG") for chart in charts.values())


@pytest.mark.parametrize("has_sequence", [True, False])
def test_what_was_counted_before_is_not_taken_for_what_happened_then(
    spark: SparkSession, *, has_sequence: bool
) -> None:
    """The archive begins late, and an address is among the busiest only later."""
    bodies = [
        heartbeat("north", at, 9_000_000 + at, sequence=at // 10 + 1 if has_sequence else None)
        for at in (10, 20, 30)
    ]
    beats = [json.loads(each["body"]) for each in bodies]
    known = {"vhost": "", "kind": "queue", "bytes_in": 0, "depth": 0, "latency_us": None}
    others = [{**known, "address": f"queue/{at}", "in": 1, "out": 1} for at in range(TOLD_MAX - 1)]
    rising = {**known, "address": "queue/rising", "in": 5_000_000, "out": 5_000_000}
    new = {**known, "address": "queue/new", "in": 7, "out": 7}
    beats[0]["addresses"] += others
    beats[1]["addresses"] = [rising, *beats[1]["addresses"]]
    beats[2]["addresses"] = [{**rising, "in": 5_000_003}, new, *beats[2]["addresses"]]
    rows = [("heartbeat", bytearray(json.dumps(beat).encode())) for beat in beats]
    found = Heartbeats(spark.createDataFrame(rows, "subject string, body binary"), HOUR_US)
    containers = found.containers()
    assert [(row["messages_in"], row["peak_in"]) for row in containers] == [(20, 1)]
    assert sum(row["seconds"] for row in containers) == pytest.approx(20, abs=0.01)
    came = {row["address"]: row["in"] for row in found.addresses() if row["in"]}
    assert came == {"work/a": 20, "queue/rising": 3, "queue/new": 7}
    assert [(each.messages, each.size_bytes) for each in found.flows()] == [(10, 1000)]
    assert [(row["out"], row["bytes_out"]) for row in found.links()] == [(20, 180)]
    found.close()


def test_a_peak_is_none_where_heartbeats_are_missing(spark: SparkSession) -> None:
    beats = [(10, 1000, 1), (20, 2000, 2), (60, 6000, 6), (70, 6500, 7)]
    bodies = [heartbeat("north", at, count, sequence=sequence) for at, count, sequence in beats]
    rows = [("heartbeat", bytearray(each["body"])) for each in bodies]
    found = Heartbeats(spark.createDataFrame(rows, "subject string, body binary"), HOUR_US)
    (row,) = found.containers()
    assert (row["messages_in"], row["seconds"], row["peak_in"]) == (6500, 70, 100)
    found.close()


def test_a_clock_that_is_set_back_makes_nothing_happen_twice(spark: SparkSession) -> None:
    """By their times the heartbeats would interleave; and a link begins anew."""
    beats = [(10, 1), (20, 2), (30, 3), (14, 4), (24, 5), (24, 6), (15, 9), (25, 10)]
    bodies = []
    for at, sequence in beats:
        body = json.loads(heartbeat("north", at, 1_000_000 + 100 * sequence)["body"])
        body["sequence"] = sequence + 1000
        body["links"][0]["out"] = 100 * sequence % 500
        bodies.append(json.dumps(body))
    rows = [("heartbeat", bytearray(body.encode())) for body in [*bodies, bodies[0], bodies[3]]]
    found = Heartbeats(spark.createDataFrame(rows, "subject string, body binary"), HOUR_US)
    (row,) = found.containers()
    assert (row["messages_in"], row["peak_in"]) == (900, 10)
    assert row["seconds"] == pytest.approx(90, abs=0.01)
    (address,) = found.addresses()
    assert address["in"] == 900
    assert [each.messages for each in found.flows()] == [450]
    assert [row["out"] for row in found.links()] == [300 + 0 + 100 + 300 + 0]
    found.close()


def test_no_heartbeat_tells_more_than_is_taken_for_all() -> None:
    assert (TOLD_MAX, TOLD_MAX) == (ADDRESSES_TOLD_MAX, PAIRS_TOLD_MAX)


def test_the_command_writes_page_and_plots(
    spark: SparkSession, mesh: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kept:
        """A session that others still need."""

        def __getattr__(self, name: str) -> object:
            return getattr(spark, name)

        def stop(self) -> None:
            pass

    monkeypatch.setattr("cogwork.pipeline.archive.Archive.open", lambda _: nullcontext(mesh))
    monkeypatch.setattr("cogwork.pipeline.spark.session.open_session", lambda *_, **__: Kept())
    mesh.marks.pop("$telemetry")
    arguments = ["--archive", "x", "--html", str(tmp_path / "page.html"), "--png", str(tmp_path)]
    shown = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert shown.return_value == ExitCode.OK
    assert "stream/flights: 100 records, 4,950 bytes" in shown.stdout
    assert "No heartbeats are archived" in (tmp_path / "page.html").read_text()
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["records.png", "sizes.png"]
    with pytest.raises(AnalyticsError, match="nothing is archived in there"):
        analyse(spark, Directory(tmp_path), GIGABIT, name="there")


@pytest.mark.parametrize(
    ("span_us", "beat_us", "interval_us"),
    [
        (60_000_000, 0, 5_000_000),
        (60_000_000, 1_000_000, 5_000_000),
        (60_000_000, 10_000_000, 15_000_000),
        (60_000_000, 30_000_000, MINUTE_US),
        (INTERVALS_MAX * MINUTE_US, 10_000_000, MINUTE_US),
        (INTERVALS_MAX * MINUTE_US + 1, 10_000_000, HOUR_US),
        (10_000 * HOUR_US, 2 * HOUR_US, HOUR_US),
    ],
)
def test_intervals_are_neither_too_many_nor_without_a_heartbeat(
    span_us: int, beat_us: int, interval_us: int
) -> None:
    assert interval_of(span_us, beat_us) == interval_us


def test_the_model_gives_the_documents_figures() -> None:
    estimated = limit_of("document", 1000, 10_000, GIGABIT)
    assert (estimated.q, estimated.brokers, estimated.cluster_size) == (12, 12, 13)
    assert estimated.xsr == 1_440_000
    narrow = limit_of("document", 1000, 10_000, GIGABIT, (0.3, 1.0))
    assert (narrow.q, narrow.brokers, narrow.xsr) == (4, 12, 480_000)
    both = limit_of("document", 1000, 10_000, GIGABIT, (0.3, 0.3))
    assert (both.q, both.brokers, both.cluster_size) == (4, 4, 5)
    assert tm_per_wd(160_000) == pytest.approx(4.61, abs=0.005)
    assert tm_per_wd(960_000) == pytest.approx(27.65, abs=0.005)
    assert {each.source for each in capacities([], GIGABIT)} == {"document"}


def test_estimates_are_for_what_was_asked() -> None:
    values: dict[str, Any] = {
        name: BENCH[name] for name in ("bench", "time_us", "brokers", "queues", "size_bytes")
    }
    run = Run(
        **values,
        seconds=1,
        messages_in=1,
        messages=1,
        rate=1,
        single_rate=1,
        efficiency=1,
        wanted_brokers=3,
        wanted_queues=4,
    )
    assert run.estimate == 3 * 4 * 25_000


def test_consumers_stay_where_their_own_messages_come() -> None:
    flows = [Flow("a", "x", "y", 100, 1000), Flow("b", "x", "y", 100, 1000)]
    came = {("a", "y"): 100 + 150, ("b", "y"): 100 + 40}
    moves = moves_of(flows, came)
    assert [(move.address, move.messages, move.share) for move in moves] == [("b", 60, 0.3)]
    assert moves_of([], {}) == []


def test_bandwidths_are_read_as_people_write_them() -> None:
    rates = [parse_bandwidth(text) for text in ("1Gbit", "100 Mbit/s", "125MB", "2.5Gb", "9600bit")]
    assert rates == [1e9, 1e8, 1e9, 2.5e9, 9600]
    for text in ("fast", "0Gbit", "1", "1Gbyte", "..Gbit", "1.2.3Gbit"):
        with pytest.raises(AnalyticsError, match="no bandwidth"):
            parse_bandwidth(text)
