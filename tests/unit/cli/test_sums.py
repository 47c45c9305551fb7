"""What workers have of one queue, as one row."""

from __future__ import annotations

from cogwork.cli.management.sums import added_up


def test_counts_are_added_up_and_ways_to_keep_a_queue_are_told_apart() -> None:
    alike = {"vhost": "", "address": "queue/a", "durability": "disk", "depth": 2}
    other = {**alike, "durability": "memory", "depth": 3}
    assert added_up([alike, alike]) == [{**alike, "depth": 4}]
    assert added_up([alike, other, alike]) == [{**alike, "durability": "disk, memory", "depth": 7}]


def test_what_one_of_them_knows_or_finds_wrong_is_told() -> None:
    well = {"vhost": "", "address": "queue/a", "problem": None, "owner": None, "depth": None}
    ill = {**well, "problem": "not on disk at container b", "owner": "north.1", "depth": 3}
    other = {**ill, "problem": "in memory here, on disk at container c"}
    assert added_up([well, ill]) == [ill]
    assert added_up([ill, ill, well]) == [{**ill, "depth": 6}]
    (told,) = added_up([ill, other])
    assert told["problem"] == "not on disk at container b; in memory here, on disk at container c"


def test_the_greatest_disorder_stands_for_all() -> None:
    row = {"vhost": "", "address": "queue/a", "disorder-p99": 3}
    assert added_up([row, {**row, "disorder-p99": 7}, row]) == [{**row, "disorder-p99": 7}]
