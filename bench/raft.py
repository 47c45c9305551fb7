"""What the Raft core costs: three hosts in one process, without a network and without a disk.

    python bench/raft.py [--entries 20000] [--bytes 1000] [--turn 10] [--groups 1]

Prints one JSON line: processor time of the leader and of a follower for an entry, by the number of
entries that come in one turn.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from functools import partial
from random import Random
from time import process_time
from typing import TYPE_CHECKING

from cogwork.raft.core import Recovered
from cogwork.raft.host import RaftHost
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = ("a", "b", "c")
KEEP = 10_000
"""Entries that stay when a log is compacted."""


class Cluster:
    """Three hosts; what each of them spends is counted."""

    def __init__(self, groups: int) -> None:
        self.now_s = 0.0
        self.spent_s: dict[str, float] = defaultdict(float)
        self.applied: dict[str, int] = defaultdict(int)
        self.hosts = {each: RaftHost(each, 1, Random(n), 0.0) for n, each in enumerate(IDS)}
        start = Recovered(snapshot=Snapshot(membership=Membership(IDS)))
        for host in self.hosts.values():
            for group in range(1, groups + 1):
                host.open(group, start, 0.0)

    def run(self, host: str, what: Callable[[RaftHost], object]) -> None:
        began_s = process_time()
        what(self.hosts[host])
        self.spent_s[host] += process_time() - began_s

    def turn(self) -> None:
        """Let everybody go on until nobody has anything to do."""
        is_busy = True
        while is_busy:
            is_busy = False
            for name in self.hosts:
                is_busy |= self._turn_of(name)

    def _turn_of(self, name: str) -> bool:
        host = self.hosts[name]
        began_s = process_time()
        ready = host.ready()
        if ready.number:
            host.persisted(ready.number, 0.0)
        for number, each in ready.groups:
            self.applied[name] += len(each.committed)
            group = host.group(number)
            if group.applied - group.compacted_index > 2 * KEEP:
                host.compact(number, group.applied - KEEP)
        self.spent_s[name] += process_time() - began_s
        for to, parts in ready.frames:
            data = b"".join(parts)
            self.run(to, partial(RaftHost.receive, container=name, data=data, now_s=self.now_s))
        return bool(ready)

    def elect(self) -> str:
        """Return who leads group 1."""
        while True:
            self.now_s += 0.02
            for host in self.hosts.values():
                host.tick(self.now_s)
            self.turn()
            if self.hosts["a"].group(1).leader is not None and self.now_s > 3:
                return str(self.hosts["a"].group(1).leader)


def measure(entries: int, size_bytes: int, turn: int, groups: int) -> dict[str, float]:
    """Return microseconds for an entry at leader and follower, and entries a second of all."""
    cluster = Cluster(groups)
    leader = cluster.elect()
    leaders = {
        number: next(name for name, host in cluster.hosts.items() if host.group(number).leadership)
        for number in range(1, groups + 1)
    }
    payload = bytes(size_bytes)
    cluster.spent_s.clear()
    before = dict(cluster.applied)
    began_s = process_time()
    for first in range(0, entries, turn):
        cluster.now_s += 0.0005
        for place in range(first, min(entries, first + turn)):
            number = place % groups + 1
            proposed = partial(
                RaftHost.propose, number=number, payload=payload, now_s=cluster.now_s
            )
            cluster.run(leaders[number], proposed)
        cluster.turn()
    took_s = process_time() - began_s
    assert all(cluster.applied[name] - before[name] == entries for name in IDS)
    follower = next(name for name in IDS if name != leader)
    return {
        "leader_us": round(cluster.spent_s[leader] / entries * 1e6, 2),
        "follower_us": round(cluster.spent_s[follower] / entries * 1e6, 2),
        "all_entries_s": round(entries / took_s),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--turn", type=int, nargs="*", default=[1, 4, 16, 100])
    parser.add_argument("--groups", type=int, default=1)
    options = parser.parse_args()
    figures = {
        str(turn): measure(options.entries, options.bytes, turn, options.groups)
        for turn in options.turn
    }
    print(
        json.dumps({"bench": "raft", "bytes": options.bytes, "groups": options.groups, **figures})
    )


if __name__ == "__main__":
    main()
