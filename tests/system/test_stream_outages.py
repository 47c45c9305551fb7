"""Streams whose engine's server is away: what users see of it, and how long they wait."""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.testing import container

from .meshes import linked, meshed
from .served import done, ran, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cogwork.bench.servers.redis import RedisServer

    from .meshes import Member

STREAM = "stream/orders"


@pytest.fixture
def url(redis: RedisServer) -> Iterator[str]:
    engine = f'[[engine]]\nname = "redis"\noptions = {{ url = "{redis.url}" }}\n'
    with container(f'{engine}[[stream]]\naddress = "{STREAM}"\nengine = "redis"\n') as running:
        within(30.0, lambda: shown(running)["state"] == "open", "it is open")
        yield running


def shown(url: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(done("stream", "show", url, "orders", "--json").stdout)
    return row


@pytest.mark.soak
def test_a_server_that_was_never_there_is_told_once_over() -> None:
    """The stream is declared, and what is asked of it says why it is not open."""
    pytest.importorskip("redis", reason="the extra [redis] is not installed")
    (port,) = free_ports(1)
    engine = f'[[engine]]\nname = "redis"\noptions = {{ url = "redis://127.0.0.1:{port}" }}\n'
    with container(engine) as running:
        told = done("stream", "create", running, "orders", "--engine", "redis").stderr
        assert f"{STREAM} is not open yet: Redis: " in told
        refused = ran("stream", "trim", running, "orders", "--before", "1").stderr
        for place in (("orders", "--from", "first"), (STREAM,)):
            for timeout_s in ("0.5", "4"):
                waited = ran("receive", running, *place, "--timeout", timeout_s)
                assert (waited.returncode, waited.stdout) == (ExitCode.TIMEOUT, "")
                *waiting, last = waited.stderr.splitlines()
                assert last.startswith(f"cogwork: {STREAM} is opening: Redis: "), waited.stderr
                if timeout_s == "4":
                    assert waiting == [last.replace("cogwork: ", "cogwork: waiting: ")]
    assert (refused.count("is not available"), refused.count("try again later")) == (1, 1), refused


def test_a_server_that_is_away_is_shown_and_logged_once(
    url: str, redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    def lines() -> list[tuple[str, str]]:
        return [
            (each.levelname, each.getMessage())
            for each in caplog.records
            if STREAM in each.getMessage()
        ]

    with caplog.at_level("INFO", "cogwork"):
        redis.kill()
        within(30.0, lambda: shown(url)["state"] == "away", "it is shown to be away")
        place = f"127.0.0.1:{redis.port}"  # the first thing that is heard may be a lost connection
        within(30.0, lambda: place in shown(url)["problem"], "it says where")
        problem = shown(url)["problem"]
        assert problem.startswith("away since 20")
        assert "start the server, or see why it cannot be reached from here" in problem
        for command in (("stream", "list"), ("stream", "show"), ("status",)):
            words = (*command, url, "orders") if command[-1] == "show" else (*command, url)
            assert "away" in done(*words).stdout
        refused = ran("stream", "trim", url, "orders", "--before", "1")
        assert refused.returncode != 0
        assert f"stream/orders: the stream is {problem}" in refused.stderr
        within(30.0, lambda: len(lines()) == 1, "it is logged")
        time.sleep(3)
        ((level, text),) = lines()
        assert level == "WARNING"
        assert text.startswith(f"{STREAM} is {problem.split(': ')[0]}: Redis: ")
        redis.start()
        within(30.0, lambda: shown(url)["state"] == "open", "it is back")
        assert shown(url)["problem"] is None
        within(30.0, lambda: len(lines()) == 2, "that is logged, too")
        assert lines()[1][1].startswith(f"{STREAM} is back after ")
        time.sleep(2)
        assert len(lines()) == 2


@pytest.mark.soak
def test_many_streams_on_a_server_that_is_away_are_one_line(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    def lines(words: str = "stream/s") -> list[str]:
        return [text for each in caplog.records if words in (text := each.getMessage())]

    engine = f'[[engine]]\nname = "redis"\noptions = {{ url = "{redis.url}" }}\n'
    streams = [f'[[stream]]\naddress = "stream/s{i}"\nengine = "redis"\n' for i in range(20)]
    redis.kill()
    with caplog.at_level("INFO", "cogwork"), container(engine + "".join(streams)):
        within(30.0, lambda: any(lines("streams on the engine redis have a problem")), "it is told")
        redis.start()
        within(30.0, lambda: any(lines("streams on the engine redis are open")), "that is over")
        redis.kill()
        within(30.0, lambda: any(lines("streams on the engine redis are away")), "they are away")
        redis.start()
        within(
            30.0, lambda: any(lines("streams on the engine redis are back")), "that is over, too"
        )
        assert len(lines()) < 12, "four, where nothing is slow"


def test_a_server_that_stands_still_is_away(url: str, redis: RedisServer) -> None:
    redis.freeze()
    within(30.0, lambda: shown(url)["state"] == "away", "it is shown to be away")
    redis.thaw()
    within(30.0, lambda: shown(url)["state"] == "open", "it is back")

    async def story() -> None:
        async with cogwork.connect(url) as mesh:
            await mesh.publish(STREAM, "after all")

    asyncio.run(asyncio.wait_for(story(), 20))
    within(30.0, lambda: shown(url)["next"] == 1, "it goes on")


async def released_after(url: str) -> float:
    """Publish a message as any client would; say how long it took to be given back."""
    async with cogwork.connect(url) as mesh:
        began_s = time.monotonic()
        with pytest.raises(cogwork.Released):
            await mesh.publish(STREAM, "not now")
        return time.monotonic() - began_s


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_what_a_server_that_is_away_never_got_is_given_back_in_ten_seconds(
    url: str, redis: RedisServer, end: str
) -> None:
    getattr(redis, end)()
    if end == "freeze":  # else the connection says so at once
        within(30.0, lambda: shown(url)["state"] == "away", "it is noticed")
    assert 8 < asyncio.run(asyncio.wait_for(released_after(url), 30)) < 12
    row = shown(url)
    assert (row["returned"], row["waiting"], row["pending_bytes"]) == (1, 0, 0)


def forget_everything(redis: RedisServer) -> None:
    """Have a server lose all that it keeps."""
    client = importlib.import_module("redis").Redis.from_url(redis.url)
    client.flushall()
    client.close()


def test_who_reads_a_stream_that_its_server_has_lost_is_told(url: str, redis: RedisServer) -> None:
    async def story() -> None:
        async with cogwork.connect(url) as mesh:
            stream = mesh.stream("orders")
            await stream.append(range(3))
            async with stream.read("first") as waiting, stream.read("next") as others:
                assert len(await waiting.take(3)) == 3
                forget_everything(redis)
                for reader in (waiting, others):
                    with pytest.raises(
                        cogwork.LinkDetached, match="it was deleted, or lost"
                    ) as told:
                        await anext(aiter(reader))
                    assert told.value.condition == "amqp:resource-deleted"
            with pytest.raises(cogwork.LinkDetached, match="it was deleted, or lost"):
                await anext(aiter(stream.read("first")))
            for publish in (
                partial(stream.append, ["more"]),
                partial(mesh.publish, STREAM, "more"),
            ):
                began_s = time.monotonic()
                with pytest.raises(cogwork.Rejected, match="it was deleted, or lost") as refused:
                    await publish()
                assert refused.value.condition == "amqp:resource-deleted"
                assert time.monotonic() - began_s < 5

    asyncio.run(asyncio.wait_for(story(), 30))
    within(30.0, lambda: "it was deleted, or lost" in str(shown(url)["problem"]), "it is shown")


def keys_of(redis: RedisServer) -> dict[bytes, bytes]:
    """Return all that a server keeps."""
    client = importlib.import_module("redis").Redis.from_url(redis.url)
    found = {key: client.dump(key) for key in client.scan_iter()}
    client.close()
    return found


def take_back(redis: RedisServer, keys: dict[bytes, bytes]) -> None:
    """Have a server keep what it did, as one that takes over and had not heard of the newest."""
    client = importlib.import_module("redis").Redis.from_url(redis.url)
    for key, value in keys.items():
        client.restore(key, 0, value, replace=True)
    client.close()


def test_who_was_given_records_that_the_server_has_lost_is_told(
    url: str, redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with cogwork.connect(url) as mesh:
            stream = mesh.stream("orders")
            await stream.append(range(3))
            kept = keys_of(redis)
            slow, quick = stream.read("first", credit=2), stream.read("first")
            async with slow, quick:
                await stream.append(range(3, 5))
                assert [each.body for each in await quick.take(5)] == [*range(5)]
                take_back(redis, kept)
                with pytest.raises(cogwork.RecordsLost, match="from offset 3 on") as told:
                    await anext(aiter(quick))
                assert told.value.condition == "cogwork:records-lost"
                assert told.value.end == 3
                await mesh.publish(STREAM, "another")
                assert [(await anext(slow)).body for _ in range(4)] == [0, 1, 2, "another"]

    asyncio.run(asyncio.wait_for(story(), 30))
    text = f"{STREAM}: this is not the stream that was read before: what keeps it has lost records"
    said = [("WARNING", text)]
    within(
        5,
        lambda: (
            [(each.levelname, each.getMessage()[: len(text)]) for each in caplog.records] == said
        ),
        "it is logged",
    )


def test_what_waits_for_a_server_is_given_back_when_the_container_stops(
    redis: RedisServer,
) -> None:
    async def story(url: str, stop: Callable[[], None]) -> None:
        async with cogwork.connect(url) as mesh, mesh.publisher(STREAM) as stock:
            redis.kill()
            while (await asyncio.to_thread(shown, url))["state"] != "away":
                await asyncio.sleep(0.05)
            posts = [stock.post(number) for number in range(3)]
            while (await asyncio.to_thread(shown, url))["in"] < len(posts):
                await asyncio.sleep(0.05)
            await asyncio.to_thread(stop)
            for post in posts:
                with pytest.raises(cogwork.Released, match="is not in the stream"):
                    await asyncio.wait_for(post, 5)

    engine = f'[[engine]]\nname = "redis"\noptions = {{ url = "{redis.url}" }}\n'
    running = container(f'{engine}[[stream]]\naddress = "{STREAM}"\nengine = "redis"\n')
    url = running.start().url
    try:
        within(30.0, lambda: shown(url)["state"] == "open", "it is open")
        asyncio.run(asyncio.wait_for(story(url, running.stop), 60))
    finally:
        running.stop()


# -- on replicas

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    """Three containers with a stream on replicas that a client has used."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / "data" / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as made:
        linked(made.values())
        done("stream", "create", made["a"].url, "orders", "--engine", "raft", "--replicas", "b,c,a")
        for member in made.values():
            within(30.0, partial(is_open, member.url), f"{member.id} has it")
        yield made


def is_open(url: str) -> bool:
    row = json.loads(done("stream", "list", url, "--json").stdout)
    return [each["state"] for each in row] == ["open"]


def test_a_stream_without_a_majority_says_so(members: dict[str, Member]) -> None:
    a, b, c = members.values()
    time.sleep(3)  # the group sleeps by then, and nobody looks at the stream
    b.kill()
    c.kill()
    within(30.0, lambda: "is away since" in a.log(), "it is logged")
    row = shown(a.url)
    assert row["state"] == "away"
    assert "nobody leads: a majority of b, c, a has to be up and linked" in row["problem"]
    assert 8 < asyncio.run(asyncio.wait_for(released_after(a.url), 30)) < 12
    b.start()
    within(30.0, lambda: "is back after" in a.log(), "it is back")
    assert is_open(a.url)
    assert a.log().count("is away since") == 1
