"""Queues of a container with workers: to the command line each is one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password

from .served import OPEN, READY_TIMEOUT_S, done, ran, within
from .test_workers import TIMEOUT_S, landed, working

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .test_workers import Workers

FIRST, SECOND = "north.0", "north.1"
BOTH = (FIRST, SECOND)

SECRET = "four-spare-teeth"

CONFIGURATION = f"""{OPEN}
[[user]]
name = "bob"
password_hash = "{hash_password(SECRET)}"
permissions = [
  {{ address = "$management", rights = ["send"] }},
  {{ address = "queue/bobs.#", rights = ["send", "manage"] }},
]
"""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("queues")
    file = folder / "cogwork.toml"
    file.write_text(CONFIGURATION)
    words = ("--config", str(file), "--data", str(folder / "data"))
    with working(folder / "w", *words) as running:
        yield running


def put(url: str, address: str, bodies: Mapping[str, list[str]]) -> None:
    """Send bodies to each worker; what one has accepted stays with it."""

    async def story() -> None:
        for worker, texts in bodies.items():
            async with asyncio.timeout(TIMEOUT_S), landed(url, worker) as mesh:
                for text in texts:
                    await mesh.publish(address, text)

    asyncio.run(story())


def at_each(url: str, address: str) -> dict[str, dict[str, Any] | None]:
    """Return what each worker has of a queue, by the worker's id."""
    status = json.loads(done("status", url, "--json").stdout)
    return {
        each["container"]["name"]: next(
            (row for row in each["queues"] if row["address"] == address), None
        )
        for each in status.get("workers", [status])  # they may not know each other yet
    }


def depths(url: str, address: str) -> list[int | None]:
    rows = at_each(url, address).values()
    return [None if row is None else row["depth"] for row in rows]


def bodies(url: str, address: str, *options: str) -> list[str]:
    shown = done("queue", "peek", url, address, "--json", *options).stdout
    return [json.loads(line)["body"] for line in shown.splitlines()]


def test_what_is_declared_on_disk_is_kept_whoever_accepts_it(tmp_path: Path) -> None:
    with working(tmp_path / "w", "--data", str(tmp_path / "data")) as running:
        url = running.url
        declared = done("queue", "declare", url, "queue/kept", "--durability", "disk")
        assert declared.stdout == "queue/kept declared, on disk\n"
        assert declared.stderr == ""
        again = done("queue", "declare", url, "queue/kept", "--durability", "disk", "--json")
        assert json.loads(again.stdout)["is_new"] is False
        put(url, "queue/kept", {FIRST: ["a"], SECOND: ["b"]})
        before = {name: running.process_id(name) for name in BOTH}
        for process_id in before.values():
            os.kill(process_id, signal.SIGKILL)
        # It waits for workers that are being started again.
        within(
            READY_TIMEOUT_S,
            lambda: ran("queue", "list", url).returncode == ExitCode.OK,
            "they are back",
        )
        within(TIMEOUT_S, lambda: depths(url, "queue/kept") == [1, 1], "they are together again")
        rows = at_each(url, "queue/kept").values()
        assert [row and row["durability"] for row in rows] == ["disk", "disk"]
        assert bodies(url, "queue/kept") == ["a", "b"]
        assert running.stop() == ExitCode.OK


def test_a_worker_that_is_started_again_is_waited_for(tmp_path: Path) -> None:
    with working(tmp_path / "w", "--data", str(tmp_path / "data")) as running:
        os.kill(running.process_id(SECOND), signal.SIGKILL)
        within(
            READY_TIMEOUT_S, lambda: f"{SECOND} was killed by SIGKILL" in running.log, "it has gone"
        )
        done("queue", "declare", running.url, "queue/a", "--durability", "disk")
        within(TIMEOUT_S, lambda: depths(running.url, "queue/a") == [0, 0], "both have it")


def test_depths_are_added_up_and_items_of_all_are_shown(workers: Workers) -> None:
    put(workers.url, "queue/sum", {FIRST: ["a", "b"], SECOND: ["c"]})
    listed = json.loads(done("queue", "list", workers.url, "--json").stdout)
    (row,) = [each for each in listed if each["address"] == "queue/sum"]
    assert row["depth"] == 3
    table = done("queue", "list", workers.url).stdout.splitlines()
    (line,) = [line.split() for line in table if "queue/sum" in line]
    assert line[:3] == ["queue/sum", "auto", "3"]
    assert bodies(workers.url, "queue/sum") == ["a", "b", "c"]
    assert bodies(workers.url, "queue/sum", "--count", "2") == ["a", "b"]
    shown = done("queue", "peek", workers.url, "queue/sum", "--json").stdout.splitlines()
    assert [json.loads(each)["worker"] for each in shown] == [FIRST, FIRST, SECOND]


def test_items_of_all_are_purged(workers: Workers) -> None:
    put(workers.url, "queue/purged", {FIRST: ["a", "b"], SECOND: ["c"]})
    purged = done("queue", "purge", workers.url, "queue/purged").stdout
    assert purged == "3 items purged from queue/purged\n"
    assert depths(workers.url, "queue/purged") == [0, 0]


def test_a_queue_is_deleted_at_all_or_while_it_is_used_at_none(workers: Workers) -> None:
    async def story() -> tuple[int, str]:
        async with asyncio.timeout(TIMEOUT_S), landed(workers.url, SECOND) as mesh:
            await mesh.publish("queue/given", "b")
            async with mesh.publisher("queue/given"):
                refused = await asyncio.to_thread(
                    ran, "queue", "delete", workers.url, "queue/given"
                )
                return refused.returncode, refused.stderr

    put(workers.url, "queue/given", {FIRST: ["a"]})
    in_use = f"worker {SECOND}: 'queue/given' is in use by 1 senders, 0 receivers"
    assert asyncio.run(story()) == (
        ExitCode.ERROR,
        f"cogwork: {in_use} (amqp:precondition-failed)\n",
    )
    assert depths(workers.url, "queue/given") == [1, 1]
    assert done("queue", "delete", workers.url, "queue/given").stdout == "queue/given deleted\n"
    assert depths(workers.url, "queue/given") == [None, None]
    gone = ran("queue", "delete", workers.url, "queue/given")
    assert gone.returncode == ExitCode.NOT_FOUND
    assert "there is no queue 'queue/given'" in gone.stderr
    assert "worker" not in gone.stderr


def test_items_of_all_move_until_there_are_enough(workers: Workers) -> None:
    url = workers.url
    put(url, "queue/from", {FIRST: ["a", "b"], SECOND: ["c", "d"]})
    put(url, "queue/to", {SECOND: ["z"]})  # the other one does not know of it
    move = ("queue", "move", url, "queue/from", "queue/to")
    assert done(*move, "--count", "3").stdout == "3 items moved from queue/from\n"
    assert depths(url, "queue/from") == [0, 1]
    assert depths(url, "queue/to") == [2, 2]
    assert json.loads(done(*move, "--json").stdout)["moved"] == 1
    assert json.loads(done(*move, "--json").stdout)["moved"] == 0
    assert sorted(bodies(url, "queue/to")) == ["a", "b", "c", "d", "z"]


def test_dead_letters_of_all_go_back(workers: Workers) -> None:
    url = workers.url

    async def reject(worker: str) -> None:
        async with asyncio.timeout(TIMEOUT_S), landed(url, worker) as mesh:
            await mesh.publish("queue/mortal", worker)
            async with mesh.consume("queue/mortal") as items:
                async for item in items:
                    await item.reject()
                    return

    done("queue", "declare", url, "queue/mortal", "--option", "dead_letter=queue/dead")
    for worker in BOTH:
        asyncio.run(reject(worker))
    within(TIMEOUT_S, lambda: depths(url, "queue/dead") == [1, 1], "both have died")
    redriven = json.loads(done("queue", "redrive", url, "queue/dead", "--json").stdout)
    assert (redriven["moved"], redriven["strangers"]) == (2, 0)
    assert sorted(bodies(url, "queue/mortal")) == [FIRST, SECOND]


def test_who_has_it_otherwise_is_named(workers: Workers) -> None:
    put(workers.url, "queue/other", {SECOND: ["a"]})
    refused = ran("queue", "declare", workers.url, "queue/other", "--durability", "disk")
    assert refused.returncode == ExitCode.ERROR
    assert refused.stderr.startswith(f"cogwork: worker {SECOND}: 'queue/other' is there with")


def test_a_replicated_queue_is_theirs_together_where_they_are_one_cluster(
    workers: Workers, tmp_path: Path
) -> None:
    declare = ("--durability", "replicated", "--json")
    apart = json.loads(done("queue", "declare", workers.url, "work/r", *declare).stdout)
    assert apart["problem"] == (
        f"not there at {SECOND}: workers are one cluster where [cluster] names primaries"
    )
    file = tmp_path / "cogwork.toml"
    file.write_text(f'[cluster]\nprimaries = ["{FIRST}"]\n')
    with working(tmp_path / "w", "--config", str(file), "--data", str(tmp_path / "data")) as both:
        together = json.loads(done("queue", "declare", both.url, "work/r", *declare).stdout)
        assert together["problem"] is None
        put(both.url, "work/r", {FIRST: ["a"], SECOND: ["b"]})
        assert sorted(bodies(both.url, "work/r")) == ["a", "b"]
        assert done("queue", "purge", both.url, "work/r").stdout.startswith("2 items")
        done("queue", "delete", both.url, "work/r")
        within(TIMEOUT_S, lambda: depths(both.url, "work/r") == [None, None], "it has gone")


def test_who_may_manage_a_queue_reaches_it_at_all_of_them(workers: Workers) -> None:
    url = workers.url.replace("://", f"://bob:{SECRET}@")
    done("queue", "declare", url, "queue/bobs.own", "--durability", "disk")
    assert depths(workers.url, "queue/bobs.own") == [0, 0]
    assert "queue/bobs.own" in done("queue", "list", url).stdout
    done("queue", "delete", url, "queue/bobs.own")
    assert ran("queue", "declare", url, "queue/anns").returncode == ExitCode.AUTHENTICATION
