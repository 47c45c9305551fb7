"""Readers beside live traffic."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork import sync
from cogwork.bench.usage import ProcessUsage
from cogwork.pipeline.arrow import ArrowClient

from .arrow_readers import RECORDS, offsets, readers_of, readers_only, same, stocked
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

NEVER_IDLE = 10_000
"""More processors than there are: readers are held back whenever there is traffic."""

READERS = "[arrow]\nreaders = 1\nidle_processors = {}\n"
PACE_S = 0.002
PULLING = 4
SHARE_MAX = 0.25
"""It may take a tenth of a processor; without traffic it takes a half or more."""


@contextmanager
def traffic(url: str) -> Iterator[None]:
    """Have messages come all the time."""
    has_ended = threading.Event()

    def post() -> None:
        with sync.connect(url) as mesh, mesh.publisher("topic/paced") as publisher:
            while not has_ended.wait(PACE_S):
                publisher.send(b"x")

    thread = threading.Thread(target=post)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def share_of_reader(member: Member, client: ArrowClient) -> float:
    """Have several read all of a stream; return which share of a processor the reader had."""
    (reader,) = readers_of(member)
    usage = ProcessUsage(reader)
    began_s, before_s = time.monotonic(), usage.cpu_s()
    with ThreadPoolExecutor(PULLING) as pool:
        list(pool.map(lambda _: sum(1 for _ in client.read("orders", 0, RECORDS)), range(PULLING)))
    return (usage.cpu_s() - before_s) / (time.monotonic() - began_s)


def test_live_traffic_goes_before_reads_that_give_the_same_rows(tmp_path: Path) -> None:
    with (
        stocked(tmp_path, READERS.format(NEVER_IDLE)) as member,
        ArrowClient(member.url) as client,
        readers_only(),
    ):
        alone = list(client.read("orders", 0, RECORDS))
        assert offsets(alone) == list(range(RECORDS))
        with traffic(member.url):
            # A processor that others want, too, gives a smaller share, never a larger one.
            within(
                READY_TIMEOUT_S,
                lambda: share_of_reader(member, client) < SHARE_MAX,
                "the reader goes slowly",
            )
            assert same(alone, list(client.read("orders", 0, RECORDS)))
