"""What workers have of one queue, as one row."""

from __future__ import annotations

from cogwork.cli.status import added_up


def test_counts_are_added_up_and_ways_to_keep_a_queue_are_told_apart() -> None:
    alike = {"vhost": "", "address": "queue/a", "durability": "disk", "depth": 2}
    other = {**alike, "durability": "memory", "depth": 3}
    assert added_up([alike, alike]) == [{**alike, "depth": 4}]
    assert added_up([alike, other, alike]) == [{**alike, "durability": "disk, memory", "depth": 7}]
