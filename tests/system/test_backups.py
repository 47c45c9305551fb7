"""Backups of containers that run: what was confirmed before is there after a restore."""

from __future__ import annotations

import asyncio
import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within
from .trios import COUNT, IDS, Trio, holds, trios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS = 30
STREAM, QUEUE, WORK, DEAD = "stream/orders", "queue/jobs", "work/jobs", "queue/dead"
ADDRESSES = (STREAM, QUEUE, WORK)


class Ledger:
    """What was confirmed, by address."""

    def __init__(self) -> None:
        self.confirmed: dict[str, list[str]] = {address: [] for address in ADDRESSES}
        self._number = 0

    async def send_all(self, client: cogwork.Client) -> None:
        """Send a message to each address, and take note once it is confirmed."""
        self._number += 1
        for address in ADDRESSES:
            text = f"{address} {self._number}"
            await client.publish(address, text.encode())
            self.confirmed[address].append(text)

    def copy(self) -> dict[str, list[str]]:
        return {address: list(texts) for address, texts in self.confirmed.items()}


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n'

    with meshed(tmp_path, ("a",), (), head=head) as members:
        yield members["a"]


def backed_up(url: str, to: Path) -> dict[str, Any]:
    """Take a backup; return what is told of it."""
    found: dict[str, Any] = json.loads(done("backup", url, "--to", str(to), "--json").stdout)
    (row,) = found["backups"]
    return dict(row)


def declare_all(url: str) -> None:
    done("stream", "create", url, "orders", "--engine", "raft")
    done("queue", "declare", url, DEAD)
    done("queue", "declare", url, QUEUE)
    done("queue", "declare", url, WORK, "--option", f"dead_letter={DEAD}")
    done("exchange", "declare", url, "logs", "--type", "topic")
    done("exchange", "bind", url, "logs", QUEUE, "--key", "a.#")
    west = ("vhost", "add", url, "west")
    within(READY_TIMEOUT_S, lambda: ran(*west).returncode == 0, "the feature level has risen")
    done("limit", "set", url, "connections", "900")


def declared(url: str) -> dict[str, object]:
    """Return what is declared, as people are shown it."""
    kept = ("source", "destination", "key", "arguments")
    shown = json.loads(done("exchange", "list", url, "--bindings", "--json").stdout)
    bindings = sorted(str([row[key] for key in kept]) for row in shown)
    limits = json.loads(done("limit", "list", url, "--json").stdout)
    vhosts = json.loads(done("vhost", "list", url, "--json").stdout)
    return {
        "bindings": bindings,
        "limits": [row["value"] for row in limits if row["name"] == "connections"],
        "vhosts": [row["name"] for row in vhosts],
    }


def restored(member: Member, folder: Path, to: Path) -> dict[str, Any]:
    """End a container at once, and start it with what a backup has."""
    if not member.was_killed:
        member.kill()
    data = folder / "restored"
    words = ("restore", str(to), "--data", str(data), "--id", member.id, "--json")
    facts: dict[str, Any] = json.loads(done(*words).stdout)
    assert facts["problems"] == []
    member.head = member.head.replace(str(folder / member.id), str(data))
    member.start()
    within(READY_TIMEOUT_S, member.listens, "it listens again")
    return facts


async def all_of(client: cogwork.Client, address: str) -> list[cogwork.Item]:
    """Take and accept all items of a queue."""
    found: list[cogwork.Item] = []
    async with client.consume(address) as consumer:
        while True:
            try:
                item = await asyncio.wait_for(anext(consumer), 2.0)
            except TimeoutError:
                return found
            found.append(item)
            await item.accept()


def text_of(body: object) -> str:
    return body.decode() if isinstance(body, bytes) else str(body)


async def judged(url: str, before: dict[str, list[str]]) -> None:
    """See that what was confirmed before the backup is there, and known to be an older copy."""
    async with cogwork.connect(url) as client:
        async with client.stream("orders").read("first") as reader:
            records = await asyncio.wait_for(reader.take(len(before[STREAM])), READY_TIMEOUT_S)
        texts = [text_of(record.body) for record in records]
        assert texts == before[STREAM], "a prefix of the stream is restored, in order"
        items = await all_of(client, QUEUE)
        assert {*before[QUEUE]} <= {text_of(item.body) for item in items}
        assert {item.delivery_count for item in items} == {1}, "each may have been settled since"
        parked = await all_of(client, DEAD)
        assert {*before[WORK]} <= {text_of(item.body) for item in parked}
        reasons = {(item.annotations or {})["x-opt-dead-letter-reason"] for item in parked}
        assert reasons == {"in-doubt"}
        assert await all_of(client, WORK) == []
        await client.publish(QUEUE, b"new")
        (fresh,) = await all_of(client, QUEUE)
        assert fresh.delivery_count == 0, "what is new is not in doubt"


def test_what_was_confirmed_before_a_backup_is_restored(member: Member, tmp_path: Path) -> None:
    declare_all(member.url)
    asyncio.run(asyncio.wait_for(_backed_up_under_load(member, tmp_path), 4 * READY_TIMEOUT_S))


async def _backed_up_under_load(member: Member, folder: Path) -> None:
    ledger, to = Ledger(), folder / "backups"
    async with cogwork.connect(member.url) as client:
        for _ in range(ITEMS):
            await ledger.send_all(client)
        load = asyncio.create_task(_loaded(client, ledger))
        first = await asyncio.to_thread(backed_up, member.url, to)
        count = len(ledger.confirmed[STREAM])
        while len(ledger.confirmed[STREAM]) < count + ITEMS:
            await asyncio.sleep(0)
        before = ledger.copy()
        second = await asyncio.to_thread(backed_up, member.url, to)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
    assert first["is_first"]
    assert not second["is_first"]
    assert second["copied_bytes"] < second["size_bytes"] - first["copied_bytes"] // 2
    assert (second["absent"], second["behind"]) == ([], [])
    shown = await asyncio.to_thread(declared, member.url)
    status = await asyncio.to_thread(member.served.status)
    await asyncio.to_thread(done, "backup", "verify", str(to))
    facts = await asyncio.to_thread(restored, member, folder, to)
    assert facts["uuid"] != status["container"]["cluster"]["uuid"]
    await judged(member.url, before)
    assert await asyncio.to_thread(declared, member.url) == shown
    again = ("backup", member.url, "--to", str(to), "--json")
    (row,) = json.loads((await asyncio.to_thread(done, *again)).stdout)["backups"]
    assert row["cluster"] == facts["uuid"], "the restored directory is backed up as well"


async def _loaded(client: cogwork.Client, ledger: Ledger) -> None:
    while True:
        await ledger.send_all(client)


def test_a_second_backup_of_nothing_new_copies_nearly_nothing(
    member: Member, tmp_path: Path
) -> None:
    to = tmp_path / "backups"
    declare_all(member.url)
    backed_up(member.url, to)
    backed_up(member.url, to)
    row = backed_up(member.url, to)
    assert row["copied_bytes"] < 10_000
    assert not (tmp_path / "a" / "backup").exists(), "the container holds nothing any more"


@pytest.mark.parametrize("damage", ["octet", "missing", "short", "manifest", "later"])
def test_a_damaged_backup_is_named_and_restores_nothing(
    member: Member, tmp_path: Path, damage: str
) -> None:
    to, data = tmp_path / "backups", tmp_path / "restored"
    declare_all(member.url)
    backed_up(member.url, to)
    _damage(to, damage)
    verified = ran("backup", "verify", str(to))
    found = ran("restore", str(to), "--data", str(data), "--id", "a")
    assert (verified.returncode, found.returncode) == (1, 1)
    said = found.stderr.splitlines()[-1]
    assert said.startswith("cogwork: ")
    assert said.removeprefix("cogwork: ") in verified.stderr
    assert ("format 99" in said) == (damage == "later")
    assert not data.exists()


def _damage(to: Path, damage: str) -> None:
    manifest = to / "a" / "backup.json"
    log = next((to / "a").rglob("*.wal"))
    octets = bytearray(log.read_bytes())
    match damage:
        case "octet":
            octets[len(octets) // 2] ^= 1
            log.write_bytes(octets)
        case "missing":
            log.unlink()
        case "short":
            log.write_bytes(octets[:-1])
        case "manifest":
            manifest.write_text(manifest.read_text().replace("000001", "000002"))
        case "later":
            manifest.write_text(manifest.read_text().replace('"format":1', '"format":99'))


def test_wrong_places_are_refused(member: Member, tmp_path: Path) -> None:
    to, url = tmp_path / "backups", member.url
    backed_up(url, to)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter").write_text("dear")
    found = ran("backup", url, "--to", str(other))
    assert (found.returncode, "holds no backup" in found.stderr) == (1, True)
    assert [each.name for each in other.iterdir()] == ["letter"]
    empty = str(tmp_path / "empty")
    for words, text in (
        (("restore", str(to), "--data", str(other), "--id", "a"), "it is not empty"),
        (("restore", str(to), "--data", empty, "--id", "b"), "no backup of container 'b'"),
        (("restore", str(tmp_path / "no"), "--data", empty, "--id", "a"), "no such directory"),
        (("backup", "verify", str(other)), "there is no backup"),
    ):
        found = ran(*words)
        assert (found.returncode, text in found.stderr) == (1, True), found.stderr


def test_a_container_without_a_data_directory_says_so(tmp_path: Path) -> None:
    with meshed(tmp_path, ("a",), ()) as members:
        found = ran("backup", members["a"].url, "--to", str(tmp_path / "backups"))
    assert (found.returncode, "no data directory" in found.stderr) == (1, True), found.stderr


def test_a_cluster_is_restored_from_the_backup_of_one_container(tmp_path: Path) -> None:
    """A runbook of `docs/operations.md`: all three are lost, and there is a backup of one."""
    with trios(tmp_path) as trio:
        options = ("--durability", "replicated", "--option", 'replicas=["a","b","c"]')
        done("queue", "declare", trio.url("a"), QUEUE, *options)
        jobs = tmp_path / "jobs"
        jobs.write_text("".join(f"job {number}\n" for number in range(ITEMS)))
        done("send", trio.url("c"), QUEUE, "--file", str(jobs))
        row = backed_up(trio.url("b"), tmp_path / "backups")
        assert row["streams"]["orders"] == COUNT, "what was confirmed elsewhere is there, too"
        for name in IDS:
            trio.members[name].kill()
            shutil.rmtree(tmp_path / name)
        facts = restored(trio.members["b"], tmp_path, tmp_path / "backups")
        assert facts["streams"]["orders"] == COUNT
        within(READY_TIMEOUT_S, lambda: trio.reads("b"), "b has all records, alone")
        _grown(trio)
        asyncio.run(asyncio.wait_for(_has_all_items(trio.url("c")), READY_TIMEOUT_S))


def _grown(trio: Trio) -> None:
    trio.start("a", "c")
    linked(trio.members.values())
    move = ("cluster", "move", trio.url("b"), "--primaries", "a,b,c")
    within(READY_TIMEOUT_S, lambda: ran(*move).returncode == 0, "the cluster has grown")
    done("stream", "move", trio.url("b"), "orders", "--replicas", "a,b,c")
    within(READY_TIMEOUT_S, partial(trio.reads, "c"), "c reads all records")
    within(READY_TIMEOUT_S, holds(trio, "c"), "c has all records")


async def _has_all_items(url: str) -> None:
    async with cogwork.connect(url) as client:
        items = await all_of(client, QUEUE)
    assert {text_of(item.body) for item in items} == {f"job {number}" for number in range(ITEMS)}
    assert {item.delivery_count for item in items} == {1}, "each may have been settled since"
