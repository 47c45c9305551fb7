"""A durable queue behind a durable exchange, by AMQP 0-9-1, while container and workers are killed.

Publishers write down what was confirmed to them, workers what they took and what they know to be
acknowledged. Afterwards: what was confirmed was taken, nothing was acknowledged twice, and nothing
was taken again without the mark of it.
"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from .basic_clients import basic_channel
from .ledgers import chance_of, row
from .meshes import Member, meshed
from .served import within

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

EXCHANGE, QUEUE = "ledger", "ledger"
ITEMS = int(os.environ.get("COGWORK_BASIC_ITEMS", "3000"))
PUBLISHERS, WORKERS = 2, 3
SETTLE_TIMEOUT_S = 60.0
PROGRAMS = Path(__file__).parent / "clients"


class Crew:
    """Processes of publishers and workers; a context that ends whoever is left."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port, self._folder = str(port), folder
        self._workers: list[subprocess.Popen[bytes]] = []
        self._publishers: list[subprocess.Popen[bytes]] = []
        self._hired = 0

    def publish(self, count: int) -> None:
        for number in range(PUBLISHERS):
            share = str(count // PUBLISHERS)
            words = [EXCHANGE, f"item.{number}", str(number), share, f"publisher-{number}"]
            self._publishers.append(self._start("basic_publisher.py", words))

    def hire(self) -> None:
        self._hired += 1
        words = [QUEUE, str(self._hired), f"worker-{self._hired}"]
        self._workers.append(self._start("basic_worker.py", words))

    def _start(self, program: str, words: list[str]) -> subprocess.Popen[bytes]:
        *words, ledger = words
        command = [sys.executable, str(PROGRAMS / program), self._port, *words]
        return subprocess.Popen([*command, str(self._folder / ledger)])

    @property
    def are_published(self) -> bool:
        return all(each.poll() is not None for each in self._publishers)

    def kill_one(self, chance: random.Random) -> None:
        worker = self._workers.pop(chance.randrange(len(self._workers)))
        worker.kill()
        worker.wait()

    def dismiss(self) -> None:
        for each in self._workers:
            each.send_signal(signal.SIGTERM)
        codes = {each.wait(SETTLE_TIMEOUT_S) for each in self._workers}
        assert codes <= {0, -signal.SIGTERM}, "one may have been hired just now"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self._workers, *self._publishers):
            each.kill()
            each.wait()


def entries(folder: Path, who: str) -> Iterator[list[str]]:
    """Yield what ledgers say, but for a last line that is torn."""
    for file in folder.glob(f"{who}-*"):
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield line.split()


def disturb(member: Member, crew: Crew, chance: random.Random) -> str:
    """Kill a worker, or the container; whoever was killed is replaced."""
    time.sleep(chance.uniform(0.0, 0.6))
    if chance.random() < 0.5:
        crew.kill_one(chance)
        crew.hire()
        return "worker killed"
    member.kill()
    time.sleep(chance.uniform(0.0, 0.3))
    member.start()
    within(SETTLE_TIMEOUT_S, member.listens, "the container listens")
    return "container killed"


def declare(member: Member) -> None:
    with basic_channel(member.served) as channel:
        channel.exchange_declare(EXCHANGE, "topic", durable=True)
        channel.queue_declare(QUEUE, durable=True)
        channel.queue_bind(QUEUE, EXCHANGE, "item.*")


@pytest.mark.timeout(300 + ITEMS // 100)
def test_what_was_confirmed_outlives_every_kill(tmp_path: Path) -> None:
    chance = chance_of(sys.stdout)
    events: collections.Counter[str] = collections.Counter()

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path}/{name}"\n'

    with ExitStack() as stack:
        member = stack.enter_context(meshed(tmp_path, ["box"], [], head=head))["box"]
        declare(member)
        crew = stack.enter_context(Crew(member.port, tmp_path))
        for _ in range(WORKERS):
            crew.hire()
        crew.publish(ITEMS)
        while not crew.are_published or events["container killed"] < 2:
            events[disturb(member, crew, chance)] += 1
        within(
            SETTLE_TIMEOUT_S,
            lambda: row(member.served, f"queue/{QUEUE}")["depth"] == 0,
            "every item is done with",
        )
        crew.dismiss()
    said = collections.defaultdict(set)
    for what, *item in entries(tmp_path, "publisher"):
        said[what].update(item)
    taken: dict[str, list[str]] = collections.defaultdict(list)
    confirmed: collections.Counter[str] = collections.Counter()
    for what, *facts in entries(tmp_path, "worker"):
        if what == "taken":
            taken[facts[0]].append(facts[1])
        elif what == "confirmed":
            confirmed[facts[0]] += 1
    again = [item for item, marks in taken.items() if len(marks) > 1]
    sys.stdout.write(
        f"{dict(events)}: {len(said['accepted'])} confirmed, {len(said['doubt'])} in doubt of"
        f" {ITEMS}; {len(taken)} taken, {len(again)} of them again; {confirmed.total()} known to be"
        " acknowledged\n"
    )
    assert len(said["accepted"] | said["doubt"]) == ITEMS // PUBLISHERS * PUBLISHERS
    assert said["accepted"] - taken.keys() == set(), "lost: confirmed, and not taken"
    assert taken.keys() <= said["accepted"] | said["doubt"], "invented"
    assert [item for item, count in confirmed.items() if count > 1] == [], "acknowledged twice"
    unmarked = [item for item in again if taken[item].count("0") > 1]
    assert unmarked == [], "taken again without a mark"
