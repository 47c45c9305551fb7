"""A replicated stream whose leader is killed while Spark reads it."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from system.meshes import linked, meshed
from system.served import within
from task_points import Meets

import cogwork.sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from system.meshes import Member

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))

ROWS = 60_000
BODY_BYTES = 200
CHUNK = 5_000


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as made:
        linked(made.values())
        yield made


def test_a_leader_that_is_killed_changes_nothing_of_what_is_read(
    spark: SparkSession, members: dict[str, Member], tmp_path: Path, seed: int
) -> None:
    fill(members["a"])
    leader = members[leader_of(members["a"])]
    others = [member.url for member in members.values() if member is not leader]
    meets = Meets(tmp_path, random.Random(seed).randrange(ROWS))
    rows = (
        spark.read.format("cogwork")
        .options(url=",".join([leader.url, *others]), minPartitions="3")
        .schema("offset bigint, body binary")
        .load("orders")
    )
    query = (
        rows.mapInArrow(meets, "offset bigint, body binary")
        .selectExpr("offset", "cast(left(cast(body as string), 8) as bigint) as number")
        .selectExpr("count(*)", "count(distinct offset)", "count_if(offset = number)")
    )
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(query.collect)
        try:
            within(60, lambda: meets.has_met() or reading.done(), "the row is read")
            leader.kill()
        finally:
            meets.go_on()
        assert reading.result() == [(ROWS, ROWS, ROWS)], f"seed {seed}"


def fill(member: Member) -> None:
    member.served.run("stream", "create", member.url, "orders", "--engine", "raft")
    with cogwork.sync.connect(member.url) as client:
        for first in range(0, ROWS, CHUNK):
            numbers = range(first, first + CHUNK)
            bodies = [b"%08d" % number + bytes(BODY_BYTES) for number in numbers]
            client.stream("orders").append(bodies)


def leader_of(member: Member) -> str:
    shown = json.loads(member.served.run("stream", "show", member.url, "orders", "--json"))
    return str(shown["leader"])
