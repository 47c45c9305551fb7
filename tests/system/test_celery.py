"""Celery, as it is installed: an application whose workers and containers are killed."""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from cogwork.cluster.levels import HIGHEST_LEVEL

from .ledgers import chance_of
from .meshes import linked, meshed
from .served import within
from .test_feature_levels import facts

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

    from .meshes import Member

TASKS = int(os.environ.get("COGWORK_CELERY_TASKS", "300"))
WORKERS = 3
SENDERS = 2
KINDS_OF_KILLS = 2
TIMEOUT_S = 60.0
LATE = 1002
CLIENTS = Path(__file__).parent / "clients"


class Crew:
    """Celery's workers, and who sends them tasks; a context that ends them."""

    def __init__(self, members: Iterable[Member], folder: Path) -> None:
        self._brokers = [f"amqp://guest:guest@127.0.0.1:{member.port}//" for member in members]
        self._folder = folder
        self._record = folder / "record"
        self._workers: list[subprocess.Popen[bytes]] = []
        self._hired = 0

    def _environment(self, first: int) -> dict[str, str]:
        """Return what the application is told; which container is its first differs."""
        first %= len(self._brokers)
        brokers = [*self._brokers[first:], *self._brokers[:first]]
        mine = {"BROKERS": ";".join(brokers), "RECORD": str(self._record)}
        return {**os.environ, **mine, "PYTHONPATH": str(CLIENTS)}

    def hire(self, count: int = 1) -> None:
        for _ in range(count):
            self._hired += 1
            words = ["worker", "--concurrency", "2", "--hostname", f"w{self._hired}@test"]
            with (self._folder / f"worker-{self._hired}.log").open("wb") as output:
                worker = subprocess.Popen(
                    [sys.executable, "-m", "celery", "-A", "celery_tasks", *words, "-l", "INFO"],
                    env=self._environment(self._hired),
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            self._workers.append(worker)
        within(TIMEOUT_S, self._are_there, "every worker answers a ping")

    def _are_there(self) -> bool:
        return int(self.call("ping")) == len(self._workers)

    def call(self, *words: object) -> str:
        """Run a part of the application; return what it prints."""
        program = [sys.executable, str(CLIENTS / "celery_tasks.py"), *map(str, words)]
        found = subprocess.run(
            program,
            check=False,
            env=self._environment(0),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert found.returncode == 0, found.stderr[-3000:]
        return found.stdout

    def send(self, first: int, count: int) -> subprocess.Popen[bytes]:
        """Begin to send tasks."""
        program = [sys.executable, str(CLIENTS / "celery_tasks.py"), "send", f"{first}", f"{count}"]
        return subprocess.Popen(program, env=self._environment(first))

    def kill_one(self, chance: random.Random) -> None:
        """Kill a worker with all of its processes."""
        self._end(self._workers.pop(chance.randrange(len(self._workers))))

    @staticmethod
    def _end(worker: subprocess.Popen[bytes]) -> None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def recorded(self) -> collections.Counter[int]:
        """Count how often each number was written down."""
        if not self._record.exists():
            return collections.Counter()
        return collections.Counter(map(int, self._record.read_text().split()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self._end(worker)


@pytest.fixture(params=[["a"], ["a", "b", "c"]], ids=["alone", "three"])
def members(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Member]]:
    ids: list[str] = request.param
    edges = [(one, other) for one in ids for other in ids if one < other]
    voters = '[cluster]\nprimaries = ["a", "b", "c"]\n' if len(ids) > 1 else ""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n{voters}'

    with meshed(tmp_path, ids, edges, head=head) as found:
        linked(found.values())
        for member in found.values() if voters else ():
            within(TIMEOUT_S, partial(has_risen, member), f"{member.id} shares exchanges")
        yield list(found.values())


def has_risen(member: Member) -> bool:
    return bool(facts(member).get("level") == HIGHEST_LEVEL)


@pytest.mark.timeout(240)
def test_every_part_of_an_application_works(members: list[Member], tmp_path: Path) -> None:
    with Crew(members, tmp_path) as crew:
        crew.hire(WORKERS)
        crew.call("use", WORKERS)
        assert crew.recorded() == collections.Counter([*range(60), LATE])


@pytest.mark.timeout(300 + TASKS // 10)
def test_every_task_runs_whoever_is_killed(members: list[Member], tmp_path: Path) -> None:
    chance = chance_of(sys.stdout)
    kills: collections.Counter[str] = collections.Counter()
    with Crew(members, tmp_path) as crew:
        crew.hire(WORKERS)
        senders = [crew.send(each * TASKS, TASKS) for each in range(SENDERS)]
        while any(each.poll() is None for each in senders) or len(kills) < KINDS_OF_KILLS:
            kills[disturb(members, crew, chance)] += 1
        assert [each.returncode for each in senders] == [0] * SENDERS
        numbers = set(range(SENDERS * TASKS))
        within(TIMEOUT_S, lambda: crew.recorded().keys() >= numbers, "every task has run")
        recorded = crew.recorded()
    again = sum(count > 1 for count in recorded.values())
    sys.stdout.write(f"{dict(kills)}: {len(numbers)} tasks, {again} of them more than once\n")
    assert recorded.keys() == numbers


def disturb(members: list[Member], crew: Crew, chance: random.Random) -> str:
    """Kill a worker, or a container; whoever was killed is replaced."""
    time.sleep(chance.uniform(0.2, 1.0))
    if chance.random() < 0.5:
        crew.kill_one(chance)
        crew.hire()
        return "worker"
    member = chance.choice(members)
    member.kill()
    time.sleep(chance.uniform(0.0, 0.5))
    member.start()
    within(TIMEOUT_S, member.listens, "the container listens")
    return "container"
