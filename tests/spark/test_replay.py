"""From the archive back into the mesh: in order, each once into streams, at a pace."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyiceberg", reason="the extra [spark] is not installed")

import archives
from archives import STREAM, append, archived, create

import cogwork
import cogwork.sync
import cogwork.testing
from cogwork.amqp.extensions import OUT_OF_SEQUENCE
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.client.errors import Released
from cogwork.client.publishing.outcome import Outcome, OutcomeState
from cogwork.pipeline.archive import Archive
from cogwork.pipeline.archive import replay as replaying
from cogwork.pipeline.archive.errors import BadPlace, NothingThere
from cogwork.pipeline.archive.replay import Replayed, plan_of, replay, sent_before
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RECORDS = 900
SAME = ("subject", "message_id", "properties", "body", "address", "content_type")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        create(url)
        append(url, range(RECORDS))
        yield url


@pytest.fixture(scope="module")
def place(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("archive")
    archived(url, place, commit_rows=250)
    return place


def replayed(
    url: str,
    place: Path,
    into: str,
    start: str = "first",
    end: str = "end",
    *,
    speed: float | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Replayed:
    with Archive.open(str(place)) as archive, ArrowClient(url) as client:
        table = archive.table(STREAM)
        plan = plan_of(table, start, end, into)
        skip = sent_before(client, plan) if plan.is_into_stream else 0

        async def work(mesh: cogwork.Client) -> Replayed:
            return await replay(mesh, table, plan, speed=speed, skip=skip, on_progress=on_progress)

        return archives.reach(url, work)


def die_after(url: str, place: Path, into: str, count: int) -> None:
    """Replay in small steps, and dies when so many have been accepted."""
    replaying.CHUNK_MESSAGES = 20

    def on_progress(done: int) -> None:
        if done >= count:
            os.kill(os.getpid(), signal.SIGKILL)

    replayed(url, place, into, on_progress=on_progress)


def assert_same(url: str, name: str, start: int = 0, end: int = RECORDS) -> None:
    source = archives.records(url).slice(start, end - start)
    target = archives.records(url, name)
    assert target.select(SAME).equals(source.select(SAME))
    assert len(set(target.column("producer").to_pylist())) == 1


@pytest.mark.parametrize("count", [20, 300, 880])
def test_killed_and_started_again(url: str, place: Path, count: int) -> None:
    name = f"killed{count}"
    create(url, name)
    assert archives.in_child(die_after, url, place, f"stream/{name}", count) == -9
    there = archives.records(url, name).num_rows
    outcome = replayed(url, place, f"stream/{name}")
    assert outcome.skipped >= min(count, there) > 0
    assert outcome.sent + outcome.skipped == RECORDS
    assert_same(url, name)


def test_sent_from_the_beginning_once_more_it_is_there_once(url: str, place: Path) -> None:
    """Also where it does not find how far it was: the stream knows the producer."""
    create(url, "twice")
    with Archive.open(str(place)) as archive:
        table = archive.table(STREAM)
        plan = plan_of(table, "100", "600", "stream/twice")
        for _ in range(2):
            outcome = archives.reach(url, lambda mesh: replay(mesh, table, plan))
            assert outcome.sent == 500
    assert_same(url, "twice", 100, 600)


def test_into_a_queue_message_ids_are_kept(url: str, place: Path) -> None:
    replayed(url, place, "queue/again", "10", "40")
    with cogwork.sync.connect(url) as mesh, mesh.browse("queue/again") as items:
        found = [item.message_id for item in items.drain()]
    assert found == [f"m{number}" for number in range(10, 40)]


def test_at_its_own_pace(url: str, tmp_path: Path) -> None:
    create(url, "slow")
    create(url, "paced")
    for number in range(4):
        append(url, [number], "slow")
        time.sleep(0.1)  # the records' times are what this is about
    archived(url, tmp_path, name="slow")
    times = archives.records(url, "slow").column("time").cast("int64").to_pylist()
    span_s = (times[-1] - times[0]) / 1e6
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table("slow")
        for speed, run_name in ((1.0, "a"), (1000.0, "b")):
            plan = plan_of(table, "first", "end", "stream/paced", run_name)
            outcome = archives.reach(url, partial(replay, table=table, plan=plan, speed=speed))
            assert outcome.sent == 4
            if speed == 1.0:
                assert outcome.duration_s >= span_s * 0.9
    paced = archives.records(url, "paced").column("time").cast("int64").to_pylist()
    assert (paced[3] - paced[0]) / 1e6 >= span_s * 0.8
    assert len(paced) == 8


def test_ranges(url: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Archive.open(str(place)) as archive:
        table = archive.table(STREAM)
        plan = plan_of(table, "2020-01-01", "2100-01-01", "stream/x")
        assert (plan.start, plan.end) == (0, RECORDS)
        assert plan_of(table, "5", "9999", "stream/x")[1:3] == (5, RECORDS)
        same = {plan_of(table, "5", end, "stream/x").producer for end in ("10", "20", "end")}
        assert len(same) == 3
        with pytest.raises(NothingThere, match="has no record from 2100-01-01 to before end"):
            plan_of(table, "2100-01-01", "end", "stream/x")
        wrong = [("from", "snapshot", "end"), ("to", "0", "x"), ("to", "0", "last")]
        for bound, start, end in wrong:
            with pytest.raises(BadPlace, match="is not a place in an archive") as found:
                plan_of(table, start, end, "stream/x")
            assert found.value.bound == bound
    arguments = ("--archive", str(place), "--stream", STREAM, "--into", "stream/x", "--to", "x")
    assert run(("pipeline", "replay", url, *arguments)) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert told.startswith(
        "cogwork: Invalid value for '--to': 'x' is not a place in an archive (expected"
    )


class Moody:
    """A link whose messages are not accepted as it is told; it remembers what it was given."""

    def __init__(self, states: list[list[OutcomeState]]) -> None:
        self.given: list[list[int]] = []
        self._states = states

    def post_batch(self, messages: list[int]) -> asyncio.Future[list[Outcome]]:
        self.given.append(messages)
        states = self._states.pop(0) if self._states else []
        states += [OutcomeState.ACCEPTED] * (len(messages) - len(states))
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        told = [Outcome("stream/x", state, condition=OUT_OF_SEQUENCE) for state in states]
        done.set_result(told)
        return done


def test_what_was_not_accepted_is_sent_again_in_order() -> None:
    released, doubted, rejected = (
        OutcomeState.RELEASED,
        OutcomeState.IN_DOUBT,
        OutcomeState.REJECTED,
    )
    out = Moody([[], [OutcomeState.ACCEPTED, released], [rejected, rejected], [], [doubted]])

    async def work() -> int:
        sender = replaying._Sender(out, lambda _done: None, asyncio.Event())  # type: ignore[arg-type]  # a fake
        for chunk in ([1, 2], [3, 4], [5, 6]):
            await sender.send(chunk)  # type: ignore[arg-type]  # a fake
        await sender.finish()
        return sender.accepted

    assert asyncio.run(work()) == 6
    assert out.given == [[1, 2], [3, 4], [5, 6], [3, 4], [5, 6], [5, 6]]


def test_an_address_that_takes_nothing_ends_a_replay(
    url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PATIENCE_S", 0.5)
    with pytest.raises(Released, match=r"not sent within 0\.5 s: there was no credit"):
        replayed(url, place, "unicast/nobody")


def test_a_slow_consumer_is_waited_for(
    url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PATIENCE_S", 0.8)
    with Archive.open(str(place)) as archive:
        plan = plan_of(archive.table(STREAM), "0", "8", "unicast/slow")

        async def work(mesh: cogwork.Client) -> Replayed:
            async def consume() -> None:
                async with mesh.consume("unicast/slow", credit=1) as items:
                    async for item in items:
                        await asyncio.sleep(0.3)
                        await item.accept()

            consuming = asyncio.create_task(consume())
            try:
                return await replay(mesh, archive.table(STREAM), plan)
            finally:
                consuming.cancel()

        assert archives.reach(url, work).sent == 8


def test_a_replay_that_nobody_takes_can_be_ended(
    url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "STOP_S", 0.2)
    with Archive.open(str(place)) as archive:
        table = archive.table(STREAM)
        plan = plan_of(table, "first", "end", "unicast/nobody")

        async def work(mesh: cogwork.Client) -> Replayed:
            stopping = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, stopping.set)
            return await asyncio.wait_for(replay(mesh, table, plan, stopping=stopping), 10)

        assert archives.reach(url, work).sent == 0


def test_a_stream_is_one_however_its_address_begins(url: str, place: Path) -> None:
    create(url, "slashed")
    assert replayed(url, place, "stream/slashed", "0", "5").sent == 5
    outcome = replayed(url, place, "/stream/slashed", "0", "5")
    assert (outcome.sent, outcome.skipped) == (0, 5)


def test_the_command(url: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create(url, "commanded")
    what = ["--archive", str(place), "--stream", "orders", "--into", "stream/commanded"]
    assert run(["pipeline", "replay", url, *what, "--speed", "max", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["sent"], row["skipped"], row["whole"]) == (RECORDS, 0, True)
    assert_same(url, "commanded")
    for wrong, line in (
        (["--from", "nonsense"], "not a place in an archive"),
        (["--from", "5000"], "has no record from 5000"),
        (["--speed", "fast"], "10x or max"),
    ):
        assert run(["pipeline", "replay", url, *what, *wrong]) != 0
        errors = capsys.readouterr().err
        assert line in errors
        assert errors.count("\n") == 1
    elsewhere = [*what[:-1], "stream/nowhere"]
    assert run(["pipeline", "replay", url, *elsewhere, "--speed", "max"]) == 6
    assert "no stream 'stream/nowhere'" in capsys.readouterr().err
