"""Ranges of streams as Arrow record batches: readers and containers that die, and what is wrong."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports
from cogwork.pipeline.arrow import (
    ArrowClient,
    ArrowError,
    BeyondEnd,
    StreamTruncated,
    UnknownStream,
)
from cogwork.pipeline.arrow import session as sessions

from .arrow_readers import (
    BODY,
    RECORDS,
    has_readers,
    offsets,
    publish,
    readers_of,
    readers_only,
    same,
    stocked,
)
from .clusters import command
from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator

NARROW = ("offset", "body")
READERS = "[arrow]\nreaders = {}\n"


def lives(process_id: int) -> bool:
    """Return whether a process is there and no zombie."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return ") Z " not in Path(f"/proc/{process_id}/stat").read_text()
    return False


@contextmanager
def ordinary_way() -> Iterator[None]:
    """Have clients read record by record."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sessions, "_reader_of", lambda mesh: None)
        yield


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    """A container with two readers, and a stream of which a part is sealed."""
    with stocked(tmp_path_factory.mktemp("arrow"), READERS.format(2)) as member:
        yield member


def test_a_range_is_read_whole_and_in_order(single: Member) -> None:
    with ArrowClient(single.url) as client, readers_only():
        assert client.streams("ord*") == ["orders"]
        assert client.bounds("orders") == (0, RECORDS)
        batches = list(client.read("orders", 3, RECORDS - 7))
        for batch in batches:
            batch.validate(full=True)
        assert offsets(batches) == list(range(3, RECORDS - 7))
        first = batches[0].slice(1, 1).to_pylist()[0]
        assert first["stream"] == "orders"
        assert first["subject"] == "even"
        assert first["message_id"] == "4"
        assert first["properties"] == [("number", "4"), ("none", None)]
        assert first["body"] == BODY + b"4"
        assert first["sequence"] == 4
        assert len(first["producer"]) == 16
        assert all((batch.column("offset")[-1].as_py() + 1) % 8192 == 0 for batch in batches[:-1])


def test_both_ways_give_the_same_batches_each_time(single: Member) -> None:
    with ArrowClient(single.url) as client:
        with readers_only():
            batches = list(client.read("orders", 5, 20_000))
            assert same(batches, list(client.read("orders", 5, 20_000)))
            pruned = list(client.read("orders", 5, 20_000, NARROW))
        with ordinary_way():
            assert same(batches, list(client.read("orders", 5, 20_000)))
            assert same(pruned, list(client.read("orders", 5, 20_000, NARROW)))
        assert same(pruned, [batch.select(NARROW) for batch in batches])
        following = batches[0].column("offset")[-1].as_py() + 1
        assert same(batches[1:], list(client.read("orders", following, 20_000)))


def test_what_is_wrong_with_a_range_is_told(single: Member) -> None:
    with ArrowClient(single.url) as client:
        with pytest.raises(UnknownStream):
            client.bounds("nothing")
        with pytest.raises(UnknownStream):
            client.offset_at("nothing", 0)
        with pytest.raises(UnknownStream):
            list(client.read("nothing", 0, 1))
        with pytest.raises(BeyondEnd) as beyond:
            list(client.read("orders", 0, RECORDS + 1))
        assert beyond.value.next == RECORDS
        with pytest.raises(ValueError, match="no column"):
            client.read("orders", 0, 1, ["nothing"])
        with pytest.raises(ValueError, match="range"):
            client.read("orders", 2, 1)
        assert list(client.read("orders", 2, 2)) == []


def test_a_time_is_an_offset(single: Member) -> None:
    with ArrowClient(single.url) as client:
        (batch,) = client.read("orders", 0, 8192, ["time"])
        times = batch.column("time").cast("int64").to_pylist()
        assert client.offset_at("orders", 0) == 0
        assert client.offset_at("orders", times[-1]) == times.index(times[-1])
        assert client.offset_at("orders", times[-1] - 999) == times.index(times[-1])
        assert client.offset_at("orders", 4_000_000_000_000_000) == RECORDS
        assert client.offset_at("orders", 10**30) == RECORDS


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_who_cannot_be_reached_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is given up before all the time is over; what it met is told all the same."""
    monkeypatch.setattr(sessions, "CALL_S", 0.7)
    (port,) = free_ports(1)
    began_s = time.monotonic()
    with (
        ArrowClient(f"{scheme}://127.0.0.1:{port}", timeout_s=1.5) as client,
        pytest.raises(ArrowError, match=f"{scheme}://127.0.0.1:{port}: Connection refused"),
    ):
        client.bounds("orders")
    assert time.monotonic() - began_s < 10


@pytest.mark.filterwarnings("ignore:This process .* multi-threaded:DeprecationWarning")  # it is
def test_threads_and_forked_processes_read(single: Member) -> None:
    client = ArrowClient(single.url)
    found: list[int] = []

    def read() -> None:
        found.append(sum(batch.num_rows for batch in client.read("orders", 0, 9000, NARROW)))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [9000] * 3
    child = os.fork()
    if child == 0:
        read()
        os._exit(0 if found[-1] == 9000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    read()
    assert found == [9000] * 4
    client.close()


def test_a_reader_that_is_killed_is_missed_by_nobody(single: Member) -> None:
    with ArrowClient(single.url) as client:
        whole = list(client.read("orders", 0, RECORDS))
        coming = client.read("orders", 0, RECORDS)
        batches = [next(coming)]
        killed = readers_of(single)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        batches += coming
        assert same(batches, whole)
        within(30, lambda: len(set(readers_of(single)) - set(killed)) == 2, "there are new readers")


def test_a_container_that_is_killed_is_waited_for(single: Member) -> None:
    with ArrowClient(single.url) as client:
        whole = list(client.read("orders", 0, RECORDS))
        coming = client.read("orders", 0, RECORDS)
        batches = [next(coming)]
        orphans = readers_of(single)
        single.kill()
        within(30, lambda: not any(map(lives, orphans)), "its readers have ended")
        restarting = threading.Thread(target=single.start)
        restarting.start()
        batches += coming
        restarting.join()
        assert same(batches, whole)
    within(READY_TIMEOUT_S, lambda: has_readers(single.url), "there are readers again")


def test_what_retention_has_given_up_is_told(single: Member) -> None:
    command("stream", "create", single.url, "short", "--engine", "raft")
    publish(single.url, "short", 100)
    command("stream", "trim", single.url, "short", "--before", "60")
    with ArrowClient(single.url) as client:
        first, following = client.bounds("short")
        assert (first, following) == (60, 100)
        with pytest.raises(StreamTruncated) as truncated:
            list(client.read("short", 0, 100))
        assert truncated.value.first == 60
        with readers_only():
            assert offsets(list(client.read("short", 60, 100))) == list(range(60, 100))


def test_a_stream_in_memory_is_read_too(single: Member) -> None:
    command("stream", "create", single.url, "brief")
    publish(single.url, "brief", 9000)
    with ArrowClient(single.url) as client:
        with readers_only():
            batches = list(client.read("brief", 0, 9000))
        with ordinary_way():
            assert same(batches, list(client.read("brief", 0, 9000)))
        publish(single.url, "brief", 10, 9000)
        with readers_only():
            assert offsets(list(client.read("brief", 8990, 9010))) == list(range(8990, 9010))


def test_who_may_only_receive_reads_and_nothing_else(tmp_path: Path) -> None:
    rights = (
        "[anonymous]\n[[anonymous.permissions]]\n"
        'address = "stream/orders"\nrights = ["receive", "send"]\n'
        '[[stream]]\naddress = "stream/orders"\n[[stream]]\naddress = "stream/secret"\n'
    )
    with meshed(tmp_path, ("a",), (), rights + READERS.format(1)) as members:
        url = members["a"].url
        within(READY_TIMEOUT_S, members["a"].listens, "a listens")
        within(READY_TIMEOUT_S, lambda: has_readers(url), "a has readers")
        publish(url, "orders", 100)
        with ArrowClient(url, timeout_s=5) as client, readers_only():
            assert client.bounds("orders") == (0, 100)
            assert offsets(list(client.read("orders", 0, 100))) == list(range(100))
            with pytest.raises(ArrowError, match="permission"):
                client.bounds("secret")
            with pytest.raises(ArrowError, match="permission"):
                list(client.read("secret", 0, 1))
            members["a"].configuration = rights.replace('"receive", ', "") + READERS.format(1)
            members["a"].configure()
            members["a"].signal(signal.SIGHUP)
            within(READY_TIMEOUT_S, lambda: is_refused(client), "what was allowed is refused")


def is_refused(client: ArrowClient) -> bool:
    """Return whether a connection that has read may not read any more."""
    with suppress(ArrowError):
        list(client.read("orders", 0, 1))
        return False
    return True


def test_any_container_serves_what_others_hold(tmp_path: Path) -> None:
    """Three containers; the reader is at one without a replica, and the leader dies."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    def dress(member: Member) -> None:
        if member.id == "d":
            member.configuration += READERS.format(1)

    edges = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("d", "c"))
    with meshed(tmp_path, ("a", "b", "c", "d"), edges, head=head, dress=dress) as members:
        linked(members.values())
        url = members["d"].url
        within(READY_TIMEOUT_S, lambda: has_readers(url), "d has readers")
        command("stream", "create", url, "orders", "--engine", "raft", "--replicas", "a,b,c")
        publish(url, "orders", 30_000)
        with ArrowClient(url) as client:
            coming = client.read("orders", 0, 30_000)
            batches = [next(coming)]
            members["a"].kill()
            batches += coming
            assert offsets(batches) == list(range(30_000))
            assert client.bounds("orders") == (0, 30_000)
        with ArrowClient(members["b"].url) as other:  # without readers
            assert same(batches, list(other.read("orders", 0, 30_000)))
