"""`cogwork serve --workers`: several processes that look like one container."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import AMQP_HEADER, FrameReader, encode_frame
from cogwork.amqp.performatives import Close, Open, decode_performative, encode_performative
from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.client.errors import Released

from .meshes import Member
from .processes import children_of
from .served import COGWORK, READY_TIMEOUT_S, Served, served, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

TIMEOUT_S = 40.0


@dataclass
class Workers:
    """A running `cogwork serve --workers`.

    Attributes:
        process: The supervisor.
        folder: With `log`, and the directory `tmp` where it keeps its sockets.
        facts: What it said once it listened.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    facts: dict[str, Any]

    @property
    def url(self) -> str:
        url: str = self.facts["endpoints"][0]
        return url

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def served(self) -> Served:
        return Served(self.url, self.process)

    def process_id(self, name: str) -> int:
        """Return the process of a worker, as its children are now."""
        return next(
            each
            for each in children_of(self.process.pid)
            if f'"number":{name[-1]},' in words_of(each)
        )

    @property
    def sockets(self) -> list[Path]:
        return sorted(path for path in (self.folder / "tmp").glob("*/*") if path.is_socket())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End all; return the exit code. Checks that nothing is left."""
        workers = children_of(self.process.pid)
        self.process.send_signal(number)
        code = self.process.wait(TIMEOUT_S)
        assert not any(map(is_alive, workers)), self.log
        assert list((self.folder / "tmp").iterdir()) == []
        return code


def words_of(process_id: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process_id}/cmdline").read_text()
    return ""


def is_alive(process_id: int) -> bool:
    return "cogwork" in words_of(process_id)


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a container with workers; return its process and what it says on stdout."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    out = folder / "out"
    words = (*COGWORK, "serve", "--id", "north", "--json", *options)
    with out.open("wb") as output, (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            words, stdout=output, stderr=log, env={**os.environ, "TMPDIR": str(folder / "tmp")}
        )
    return process, out


@contextlib.contextmanager
def working(folder: Path, *options: str) -> Iterator[Workers]:
    """Run two workers on any free port for the length of a `with` block."""
    process, out = start(folder, "--workers", "2", "--listen", "127.0.0.1:0", *options)
    log = folder / "log"
    try:
        within(READY_TIMEOUT_S, lambda: "\n" in out.read_text() or process.poll() is not None, "it")
        assert process.poll() is None, log.read_text()
        yield Workers(process, folder, json.loads(out.read_text()))
    finally:
        process.kill()
        process.wait()


@contextlib.asynccontextmanager
async def landed(url: str, worker: str) -> AsyncIterator[cogwork.Client]:
    """Connect again and again, until it is this worker that answers: it may be just starting."""
    until_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < until_s:
        async with cogwork.connect(url) as mesh:
            if mesh.container.container_id == worker:
                yield mesh
                return
    raise AssertionError(f"no connection lands on {worker}")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("workers") / "w"
    with working(folder, "--data", str(folder / "data")) as running:
        yield running


# -- one container


def test_clients_of_different_workers_share_topics(workers: Workers) -> None:
    async def story() -> object:
        """The first subscription has to be known at the other worker: so it is sent again."""
        async with (
            asyncio.timeout(TIMEOUT_S),
            landed(workers.url, "north.0") as one,
            landed(workers.url, "north.1") as other,
            one.subscribe("topic/a.*") as messages,
            other.publisher("topic/a.b") as out,
        ):
            first = asyncio.ensure_future(anext(aiter(messages)))
            while not first.done():
                await out.send("news")
                await asyncio.sleep(0.01)
            return first.result().body

    assert asyncio.run(story()) == "news"


def test_items_that_one_worker_has_go_to_the_consumers_of_the_other(workers: Workers) -> None:
    async def story() -> list[object]:
        async with (
            asyncio.timeout(TIMEOUT_S),
            landed(workers.url, "north.0") as one,
            landed(workers.url, "north.1") as other,
        ):
            for number in range(20):
                await one.publish("work/shared", number)
            found = []
            async with other.consume("work/shared") as items:
                async for item in items:
                    found.append(item.body)
                    await item.accept()
                    if len(found) == 20:
                        break
            return found

    assert sorted(asyncio.run(story())) == list(range(20))  # type: ignore[type-var]  # they are numbers


def test_calls_are_answered_by_clients_of_the_other_worker(workers: Workers) -> None:
    async def story() -> object:
        async with (
            asyncio.timeout(TIMEOUT_S),
            landed(workers.url, "north.0") as one,
            landed(workers.url, "north.1") as other,
            one.serve("unicast/echo", lambda request: request.body),
        ):
            while True:  # the other worker may not have heard of it yet
                with contextlib.suppress(cogwork.Released):
                    return (await other.request("unicast/echo", "hello", timeout_s=TIMEOUT_S)).body
                await asyncio.sleep(0.01)

    assert asyncio.run(story()) == "hello"


def test_each_has_its_own_directory_and_they_share_one_that_is_private(workers: Workers) -> None:
    data = workers.folder / "data"
    assert sorted(each.name for each in data.iterdir() if each.is_dir()) == ["worker-0", "worker-1"]
    assert [path.name for path in workers.sockets] == ["0", "1"]
    assert all(path.is_socket() for path in workers.sockets)
    assert workers.sockets[0].parent.stat().st_mode & 0o777 == 0o700


def test_clients_are_not_let_in_by_the_sockets_of_links(workers: Workers) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(str(workers.sockets[0]))
        client.sendall(AMQP_HEADER + encode_frame(0, encode_performative(Open(container_id="me"))))
        data = b""
        while chunk := client.recv(65_536):
            data += chunk
    assert data.startswith(AMQP_HEADER)
    *_, last = FrameReader(65_536).feed(data[len(AMQP_HEADER) :])
    close, _ = decode_performative(last.body)
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.condition == Condition.UNAUTHORIZED_ACCESS
    assert close.error.description == "only containers connect here"


def test_they_are_one_in_the_table_of_the_mesh(workers: Workers) -> None:
    def folded() -> str:
        return workers.served.run("mesh", workers.url)

    # A link that has not come about yet leads to somebody nobody knows, and is told as it is.
    within(TIMEOUT_S, lambda: "unix://" not in folded(), "the workers are linked both ways")
    assert re.search(r"containers \(1\)", folded())
    assert "north (2 workers)" in folded()
    unfolded = workers.served.run("mesh", workers.url, "--workers")
    assert "├ north.0" in unfolded
    assert "└ north.1" in unfolded
    assert "unix://" in unfolded
    known = json.loads(workers.served.run("mesh", workers.url, "--json"))
    assert {row["id"] for row in known["containers"]} == {"north.0", "north.1"}
    assert '"north.0" -- "north.1"' in workers.served.run("mesh", workers.url, "--dot", "--workers")
    assert "--" not in workers.served.run("mesh", workers.url, "--dot")


def test_status_shows_all_of_them_with_the_sums_of_what_they_share(workers: Workers) -> None:
    async def story() -> None:
        for worker in ("north.0", "north.1"):
            async with asyncio.timeout(TIMEOUT_S), landed(workers.url, worker) as mesh:
                for number in range(3):
                    await mesh.publish("queue/counted", number)

    asyncio.run(story())
    shown = workers.served.run("status", workers.url)
    assert re.search(r"^north\.0  cogwork ", shown, re.MULTILINE)
    assert re.search(r"^north\.1  cogwork ", shown, re.MULTILINE)
    assert re.search(r"^ *queue/counted +auto +6 ", shown, re.MULTILINE)
    assert re.search(r"^ *north\.[01] +\$management ", shown, re.MULTILINE)
    known = json.loads(workers.served.run("status", workers.url, "--json"))
    assert [each["container"]["name"] for each in known["workers"]] == ["north.0", "north.1"]
    for each in known["workers"]:
        assert each["container"]["workers"] == ["north.0", "north.1"]
        (queue,) = [row for row in each["queues"] if row["address"] == "queue/counted"]
        assert queue["depth"] == 3


def test_links_of_all_of_them_are_listed_added_and_removed(
    workers: Workers, tmp_path: Path
) -> None:
    with served(tmp_path) as south:
        target = south.url.removeprefix("amqp://")
        run = workers.served.run
        run("link", "add", workers.url, target)
        within(30, lambda: "up" in run("link", "list", workers.url), "it is linked")
        (row,) = [
            each
            for each in json.loads(run("link", "list", workers.url, "--json"))
            if each["url"] == south.url
        ]
        assert row["worker"] == "north.0"
        assert "unix://" not in run("link", "list", workers.url)
        assert "unix://" in run("link", "list", workers.url, "--workers")
        run("link", "remove", workers.url, target)
        assert target not in run("link", "list", workers.url)
        with pytest.raises(AssertionError, match="there is no such link"):
            run("link", "remove", workers.url, target)


def test_every_line_of_the_log_begins_with_who_says_it(workers: Workers) -> None:
    workers.process.send_signal(signal.SIGUSR2)
    within(30, lambda: workers.log.count("connections, ") >= 2, "each worker says how it is")
    line = re.compile(r"north(\.[01])? \d{4}-\d\d-\d\d .*")
    assert [each for each in workers.log.splitlines() if not line.fullmatch(each)] == []


# -- life and death


def test_a_killed_worker_is_started_again_and_found_again(tmp_path: Path) -> None:
    async def call_across(url: str) -> object:
        async with (
            asyncio.timeout(TIMEOUT_S),
            landed(url, "north.0") as one,
            landed(url, "north.1") as other,
            one.serve("unicast/echo", lambda request: request.body),
        ):
            while True:
                with contextlib.suppress(Released):  # the other worker may not have heard of it yet
                    answer = await other.request("unicast/echo", "hello", timeout_s=TIMEOUT_S)
                    return answer.body
                await asyncio.sleep(0.01)

    with working(tmp_path / "w") as running:
        before = running.process_id("north.0")
        os.kill(before, signal.SIGKILL)
        says = "north.0 was killed by SIGKILL; restarting it in 0.1 s"
        within(30, lambda: says in running.log, "its end is logged")
        linked = "linked with container north.0"
        within(READY_TIMEOUT_S, lambda: running.log.count(linked) == 2, "it is found again")
        assert running.process_id("north.0") != before
        within(READY_TIMEOUT_S, lambda: len(running.sockets) == 2, "it has its socket again")
        assert asyncio.run(call_across(running.url)) == "hello"
        assert running.stop() == ExitCode.OK


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with working(tmp_path / "w") as running:
        assert len(children_of(running.process.pid)) == 2
        assert running.stop(number) == ExitCode.OK
        assert running.log.count("stopping: 0 deliveries") == 2


def test_workers_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with working(tmp_path / "w") as running:
        workers = children_of(running.process.pid)
        running.process.kill()
        within(TIMEOUT_S, lambda: not any(map(is_alive, workers)), "the workers end")


def test_what_a_killed_supervisor_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    with working(tmp_path / "w") as running:
        workers = children_of(running.process.pid)
        abandoned = running.sockets[0].parent
        running.process.kill()
        within(TIMEOUT_S, lambda: not any(map(is_alive, workers)), "the workers end")
        assert abandoned.is_dir()
        running.process.wait()
    other = tmp_path / "w" / "tmp" / "cogwork-somebody"
    other.mkdir()
    with working(tmp_path / "w") as first, working(tmp_path / "w") as second:
        assert not abandoned.exists()
        assert other.is_dir()
        directories = {path.parent for path in first.sockets}
        assert len(directories) == 2
        assert {path.parent for path in second.sockets} == directories


def test_they_leave_together_and_their_items_go_beyond_them(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        for worker in ("north.0", "north.1"):
            async with asyncio.timeout(TIMEOUT_S), landed(url, worker) as mesh:
                for number in range(10):
                    await mesh.publish("work/moved", number)

    with served(tmp_path) as south:
        target = south.url.removeprefix("amqp://")
        with working(tmp_path / "w", "--link", target) as running:
            asyncio.run(story(running.url))
            within(30, lambda: "2 workers" in south.run("mesh", south.url), "all are known")
            outcome = json.loads(running.served.run("leave", running.url, "--json"))
            assert (outcome["moved"], outcome["left"], outcome["problem"]) == (20, 0, None)
            assert running.process.wait(TIMEOUT_S) == ExitCode.OK
            assert running.log.count("has left the mesh permanently") == 2
        rows = json.loads(south.run("queue", "list", south.url, "--json"))
        (row,) = [each for each in rows if each["address"] == "work/moved"]
        assert row["depth"] == 20


def test_the_configuration_is_read_again_by_all(tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text("workers = 2\nlisten = ['127.0.0.1:0']\n")
    process, out = start(tmp_path / "w", "--config", str(file))
    try:
        within(READY_TIMEOUT_S, lambda: "\n" in out.read_text(), "it listens")
        file.write_text("workers = 3\nlisten = ['127.0.0.1:0']\n[limits]\nconnections = 5\n")
        process.send_signal(signal.SIGHUP)
        log = tmp_path / "w" / "log"
        within(30, lambda: log.read_text().count("reloaded: 2 changes") == 2, "both read it")
        for at in range(2):
            assert re.search(rf"north\.{at} .* workers: 2 → 3 \(needs a restart\)", log.read_text())
        process.terminate()
        assert process.wait(TIMEOUT_S) == ExitCode.OK
    finally:
        process.kill()
        process.wait()


# -- how they do not start


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_taken_port_is_one_line(tmp_path: Path, is_shared: bool) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, is_shared)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process, out = start(tmp_path / "w", "--workers", "2", "--listen", f"127.0.0.1:{port}")
        assert process.wait(TIMEOUT_S) == ExitCode.CONNECTION
    said = (tmp_path / "w" / "log").read_text()
    assert said == f"cogwork: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert out.read_text() == ""
    assert list((tmp_path / "w" / "tmp").iterdir()) == []


def test_what_no_worker_can_use_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(
        'workers = 4\n[[listen]]\nport = 0\ntransport = "amqps"\n'
        'sasl = ["ANONYMOUS"]\ntls = { certificate = "gone.pem" }\n'
    )
    process, _ = start(tmp_path / "w", "--config", str(file))
    assert process.wait(TIMEOUT_S) == ExitCode.CONFIGURATION
    said = (tmp_path / "w" / "log").read_text()
    assert said.count("\n") == 1
    assert "gone.pem': No such file" in said


# -- other containers


def test_another_container_links_by_the_shared_port(tmp_path: Path) -> None:
    """Its two connections may land on different workers: it dials until they have not."""
    with working(tmp_path / "w") as running:
        port = int(running.url.rpartition(":")[2])
        members = [
            Member(f"south{at}", own, [port], tmp_path) for at, own in enumerate(free_ports(4))
        ]
        try:
            for member in members:
                member.start()
            lines = [f"linked with container {member.id}" for member in members]
            within(READY_TIMEOUT_S, lambda: all(line in running.log for line in lines), "all link")
            for member in members:
                within(READY_TIMEOUT_S, member.listens, "it listens")
            within(
                READY_TIMEOUT_S,
                lambda: all(len(member.reached()) == 6 for member in members),
                "each knows all",
            )
        finally:
            for member in members:
                if member.process is not None:
                    member.kill()
        for member in members:  # an attempt that met the other worker is none that failed
            log = (tmp_path / f"{member.id}.1.log").read_text()
            assert "WARNING" not in log.partition("linked with container")[0]
        assert "refuses the link" not in running.log
        assert running.stop() == ExitCode.OK


def test_only_the_first_worker_dials_others(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    south = Member("south", port, [], tmp_path)
    south.start()
    try:
        within(READY_TIMEOUT_S, south.listens, "it listens")
        with working(tmp_path / "w", "--link", f"127.0.0.1:{port}") as running:
            everybody = {"south", "north.0", "north.1"}
            within(READY_TIMEOUT_S, lambda: south.reaches(everybody), "all are known")
            found = json.loads(south.served.run("mesh", south.url, "--json"))
            rows = {row["id"]: row for row in found["containers"]}
            assert rows["south"]["neighbours"] == {"north.0": 1}
            assert rows["north.1"]["next_hop"] == "north.0"
            assert running.stop() == ExitCode.OK
    finally:
        south.kill()
