"""A bridge between RabbitMQ and Cogwork loses nothing, whoever is killed meanwhile."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import AMQPError
from rabbitmq import RabbitMq

import cogwork
from cogwork.bench.servers.process import Missing, free_ports

from .served import ended, started, within

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel


@pytest.fixture
def rabbit(tmp_path: Path) -> Iterator[RabbitMq]:
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    server = RabbitMq(folder)
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        yield server
    finally:
        server.kill()


def url_of(rabbit: RabbitMq) -> str:
    return f"rabbitmq://{rabbit.hosts}"


@contextlib.contextmanager
def channel_of(rabbit: RabbitMq, *queues: str) -> Iterator[BlockingChannel]:
    """A channel in confirm mode, and durable queues."""
    parameters = pika.URLParameters(f"amqp://{rabbit.hosts}/%2F")
    connection = pika.BlockingConnection(parameters)
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        for queue in queues:
            channel.queue_declare(queue, durable=True)
        yield channel
    finally:
        with contextlib.suppress(AMQPError):
            connection.close()


def publish(channel: BlockingChannel, queue: str, count: int) -> None:
    for number in range(count):
        properties = pika.BasicProperties(delivery_mode=2, message_id=str(number))
        channel.basic_publish("", queue, str(number).encode(), properties, mandatory=True)


def taken(channel: BlockingChannel, queue: str) -> list[int]:
    """Everything that a queue of RabbitMQ has."""
    found: list[int] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append(int(body))


def drained(url: str, address: str) -> list[int]:
    """Everything that a queue of Cogwork has."""
    found: list[int] = []
    with cogwork.sync.connect(url) as client, client.consume(address, credit=500) as items:
        while (item := items.receive(1.0)) is not None:
            found.append(int(item.body))  # type: ignore[call-overload]  # octets of a number
            items.accept(item)
    return found


@contextlib.contextmanager
def bridging(*words: str) -> Iterator[subprocess.Popen[str]]:
    with started("bridge", *words, "--json", "--every", "0.2") as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


class Reports:
    """What a bridge says, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.last: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.last = json.loads(line)["routes"]

    def moved(self, at: int = 0) -> int:
        return int(self.last[at]["moved"]) if self.last else 0


def test_both_ways(rabbit: RabbitMq) -> None:
    with cogwork.testing.container() as url, channel_of(rabbit, "orders", "bills") as channel:
        properties = pika.BasicProperties(
            content_type="text/plain",
            correlation_id="c",
            priority=3,
            delivery_mode=2,
            headers={"tenant": "blue", "x-trace": "t"},
        )
        channel.basic_publish("", "orders", b"1", properties)
        with cogwork.sync.connect(url) as client:
            client.publish("queue/bills", b"2", subject="paid", properties={"tenant": "red"})
        words = [url_of(rabbit), url, "--queue", "orders", "--back", "bills=bills"]
        ran = ended("bridge", *words, "--until-idle", "2", "--json")
        assert ran.returncode == 0, ran.stderr
        with cogwork.sync.connect(url) as client, client.consume("queue/orders") as items:
            item = items.receive(5)
            assert item is not None
            items.accept(item)
        method, back, body = channel.basic_get("bills", auto_ack=True)
    routes = json.loads(ran.stdout.splitlines()[-1])["routes"]
    assert [each["moved"] for each in routes] == [1, 1]
    assert {each["state"] for each in routes} == {"stopped"}
    assert (item.body, item.content_type, item.correlation_id) == (b"1", "text/plain", "c")
    assert (item.priority, item.durable, item.properties["tenant"]) == (3, True, "blue")
    assert item.annotations["x-trace"] == "t"
    assert len(str(item.properties["cogwork-bridges"])) == 12
    assert method is not None
    assert (body, back.headers["tenant"], back.delivery_mode) == (b"2", "red", 2)


def test_a_broker_of_another_make_by_amqp_1_0(rabbit: RabbitMq) -> None:
    other = f"amqp://{rabbit.hosts}"
    with cogwork.testing.container() as url, channel_of(rabbit, "orders", "bills") as channel:
        publish(channel, "orders", 20)
        with cogwork.sync.connect(url) as client:
            client.publish("queue/bills", b"7")
        queues = ["--queue", "/amq/queue/orders=orders", "--back", "bills=/amq/queue/bills"]
        ran = ended("bridge", other, url, *queues, "--until-idle", "2", timeout_s=60)
        assert ran.returncode == 0, ran.stderr
        assert sorted(drained(url, "queue/orders")) == list(range(20))
        assert taken(channel, "bills") == [7]
        assert taken(channel, "orders") == []


def test_a_bridge_that_cannot_connect_stops_when_it_is_told() -> None:
    """Nobody listens at the one end, and the other takes connections and says nothing."""
    (nobody,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        words = [f"amqp://127.0.0.1:{port}", f"rabbitmq://127.0.0.1:{nobody}"]
        with bridging(*words, "--queue", "a", "--back", "b") as bridge:
            reports = Reports(bridge)
            within(30, lambda: "waiting" in str(reports.last), "one cannot be reached")
            bridge.terminate()
            assert bridge.wait(30) == 0


def test_by_amqp_0_9_1_on_both_sides_nothing_is_translated(rabbit: RabbitMq) -> None:
    with cogwork.testing.container() as url, channel_of(rabbit, "orders") as channel:
        headers = {"list": [1, {"deep": True}], "octets": b"\xff", "none": None}
        properties = pika.BasicProperties(headers=headers, type="t", app_id="a", timestamp=7)
        channel.basic_publish("", "orders", b"\x00\xff", properties)
        there = url.replace("amqp://", "rabbitmq://")
        host, _, port = url.removeprefix("amqp://").partition(":")
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, int(port)))
        arrived = connection.channel()
        arrived.queue_declare("orders", durable=True)
        ran = ended("bridge", url_of(rabbit), there, "--queue", "orders", "--until-idle", "2")
        assert ran.returncode == 0, ran.stderr
        _, found, body = arrived.basic_get("orders", auto_ack=True)
        connection.close()
    assert body == b"\x00\xff"
    assert found.headers.pop("cogwork-bridges")
    assert found.headers == headers
    assert (found.type, found.app_id, found.timestamp) == ("t", "a", 7)


@contextlib.contextmanager
def container_at(port: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A container with a disk, in a process of its own, that is killed in the end."""
    config = folder.with_suffix(".toml")
    config.write_text('[[address]]\nprefix = "queue/"\nin_doubt_timeout_s = 1.0\n')
    options = ["--id", "north", "--listen", f"127.0.0.1:{port}", "--data", str(folder)]
    with started("serve", *options, "--config", str(config), "--json") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process


class Feeder:
    """Publishes numbers without a pause, whoever is killed meanwhile.

    Attributes:
        sent: How many have been confirmed.
    """

    def __init__(self, feed: Callable[[], Iterator[Callable[[int], object]]]) -> None:
        self.sent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(feed,), daemon=True)
        self._thread.start()

    def _run(self, feed: Callable[[], Iterator[Callable[[int], object]]]) -> None:
        with contextlib.contextmanager(feed)() as send:
            while not self._stopping.is_set():
                send(self.sent)
                self.sent += 1

    def stop(self) -> set[int]:
        """End, and return all that was published."""
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        return set(range(self.sent))


def feeding_rabbit(rabbit: RabbitMq, queue: str) -> Feeder:
    channels: list[BlockingChannel] = []

    def send(number: int) -> None:
        properties = pika.BasicProperties(delivery_mode=2)
        while True:
            try:
                if not channels:
                    url = f"amqp://{rabbit.hosts}/%2F"
                    connection = pika.BlockingConnection(pika.URLParameters(url))
                    channels.append(connection.channel())
                    channels[0].confirm_delivery()
                channels[0].basic_publish("", queue, str(number).encode(), properties)
            except (AMQPError, OSError):
                channels.clear()
                time.sleep(0.1)
            else:
                return

    def feed() -> Iterator[Callable[[int], object]]:
        yield send
        channels[0].connection.close()

    return Feeder(feed)


def feeding_cogwork(url: str, address: str) -> Feeder:
    def feed() -> Iterator[Callable[[int], object]]:
        with (
            cogwork.sync.connect(url) as client,
            client.publisher(address, on_doubt="resend") as out,
        ):
            yield lambda number: out.send(str(number).encode())

    return Feeder(feed)


def goes_on(reports: Reports) -> None:
    """Wait until more has been moved."""
    before = reports.moved()
    try:
        within(60, lambda: reports.moved() > before + 50, "more has been moved")
    except AssertionError as error:
        raise AssertionError(f"{error}; {reports.last}") from error


def test_nothing_is_lost_to_cogwork_while_all_three_are_killed(
    rabbit: RabbitMq, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    url = f"amqp://127.0.0.1:{port}"
    with channel_of(rabbit, "orders"):
        feeder = feeding_rabbit(rabbit, "orders")
    words = [url_of(rabbit), url, "--queue", "orders", "--prefetch", "20"]
    with bridging(*words) as bridge:
        reports = Reports(bridge)
        with container_at(port, tmp_path / "data"):
            goes_on(reports)
        with container_at(port, tmp_path / "data"):
            goes_on(reports)
            rabbit.kill()
            rabbit.start()
            goes_on(reports)
            bridge.kill()
            bridge.wait()
            published = feeder.stop()
            ran = ended("bridge", *words, "--until-idle", "5", "--json", timeout_s=90)
            assert ran.returncode == 0, ran.stderr
            found = drained(url, "queue/orders")
    with channel_of(rabbit, "orders") as channel:
        assert taken(channel, "orders") == []
    assert published <= set(found)


def test_nothing_is_lost_to_rabbitmq_while_all_three_are_killed(
    rabbit: RabbitMq, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    url = f"amqp://127.0.0.1:{port}"
    with channel_of(rabbit, "bills"):
        pass
    words = [url_of(rabbit), url, "--back", "bills", "--prefetch", "20"]
    with bridging(*words) as bridge:
        reports = Reports(bridge)
        with container_at(port, tmp_path / "data"):
            feeder = feeding_cogwork(url, "queue/bills")
            goes_on(reports)
            rabbit.kill()
            rabbit.start()
            goes_on(reports)
        with container_at(port, tmp_path / "data"):
            goes_on(reports)
            bridge.kill()
            bridge.wait()
            published = feeder.stop()
            ran = ended("bridge", *words, "--until-idle", "5", "--json", timeout_s=90)
            assert ran.returncode == 0, ran.stderr
            assert drained(url, "queue/bills") == []
    with channel_of(rabbit, "bills") as channel:
        found = taken(channel, "bills")
    assert published <= set(found)


def test_sigterm_finishes_what_has_begun(rabbit: RabbitMq) -> None:
    """Every message is at one side, and at one side alone."""
    with cogwork.testing.container() as url, channel_of(rabbit, "orders") as channel:
        feeder = feeding_rabbit(rabbit, "orders")
        with bridging(url_of(rabbit), url, "--queue", "orders", "--prefetch", "10") as bridge:
            reports = Reports(bridge)
            goes_on(reports)
            bridge.terminate()
            assert bridge.wait(30) == 0
        published = feeder.stop()
        there = drained(url, "queue/orders")
        here = taken(channel, "orders")
    assert there
    assert sorted([*there, *here]) == sorted(published)


def test_a_full_queue_is_waited_for(rabbit: RabbitMq) -> None:
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
    with cogwork.testing.container() as url, channel_of(rabbit) as channel:
        channel.queue_declare("small", durable=True, arguments=arguments)
        with cogwork.sync.connect(url) as client, client.publisher("queue/small") as out:
            out.send_batch([str(number).encode() for number in range(50)])
        with bridging(url_of(rabbit), url, "--back", "small", "--prefetch", "5") as bridge:
            reports = Reports(bridge)
            found: list[int] = []

            def all_are_here() -> bool:
                found.extend(taken(channel, "small"))
                return set(found) == set(range(50))

            within(60, all_are_here, "all have come")
            assert reports.moved() >= 10


def test_a_queue_that_is_not_there_stops_its_route_alone(rabbit: RabbitMq) -> None:
    with cogwork.testing.container() as url, channel_of(rabbit, "orders") as channel:
        publish(channel, "orders", 3)
        words = [url_of(rabbit), url, "--queue", "none", "--queue", "orders"]
        ran = ended("bridge", *words, "--until-idle", "2", "--json")
        assert sorted(drained(url, "queue/orders")) == [0, 1, 2]
    assert ran.returncode == 1
    none, orders = json.loads(ran.stdout.splitlines()[-1])["routes"]
    assert none["state"] == "failed"
    assert "no queue 'none'" in none["problem"]
    assert (orders["state"], orders["moved"]) == ("stopped", 3)


def test_messages_that_come_round_stop_the_route_and_stay(rabbit: RabbitMq) -> None:
    with cogwork.testing.container() as url, channel_of(rabbit, "orders") as channel:
        publish(channel, "orders", 1)
        words = [url_of(rabbit), url, "--queue", "orders", "--until-idle", "2"]
        assert ended("bridge", *words).returncode == 0
        back = [url, url_of(rabbit), "--queue", "orders", "--until-idle", "2"]
        assert ended("bridge", *back).returncode == 0
        ran = ended("bridge", *words)
        assert ran.returncode == 1
        assert "routes form a circle" in ran.stderr
        assert taken(channel, "orders") == [0]


def test_a_file_of_routes(
    rabbit: RabbitMq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "routes.toml"
    with cogwork.testing.container() as url, channel_of(rabbit, "orders") as channel:
        monkeypatch.setenv("OLD_PASSWORD", "guest")
        file.write_text(
            "[[route]]\n"
            f'source = "rabbitmq://guest:${{OLD_PASSWORD}}@127.0.0.1:{rabbit.port}"\n'
            f'target = "{url}"\nqueue = "orders"\nto-queue = "queue/new"\nprefetch = 10\n'
        )
        publish(channel, "orders", 5)
        ran = ended("bridge", "--config", str(file), "--until-idle", "2")
        assert ran.returncode == 0, ran.stderr
        assert sorted(drained(url, "queue/new")) == list(range(5))
    assert "5 moved" in ran.stdout
    assert "guest" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("route = 7", "Expected `array`, got `int` - at `$.route`"),
        ("[[route]]\nsource = 'amqp://a'\n", "missing required field `target`"),
        ("[[route]]\nfrom = 'amqp://a'\n", "unknown field `from`"),
        (
            "[[route]]\nsource = 'amqp://${NONE_SUCH}@a'\ntarget = 'amqp://b'\nqueue = 'q'\n",
            "NONE_SUCH",
        ),
        (
            "[[route]]\nsource = 'amqp://a'\ntarget = 'amqp://b'\nqueue = 'q'\n"
            "[[route]]\nsource = 'amqp://b'\ntarget = 'amqp://a'\nqueue = 'q'\n",
            "they form a circle",
        ),
        (
            "[[route]]\nsource = 'amqp://a,amqp://c'\ntarget = 'amqp://b'\nqueue = 'q'\n",
            "one URL for each side",
        ),
        ("[[route", "Expected"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "routes.toml"
    file.write_text(text)
    ran = ended("bridge", "--config", str(file))
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "give SOURCE, TARGET and --queue or --back, or --config"),
        (["amqp://a", "amqp://b"], "give SOURCE, TARGET and --queue or --back, or --config"),
        (["amqp://a", "amqp://b", "--queue", "=x"], "'=x' is no queue"),
        (["amqp://a", "amqp://b", "--queue", "q", "--back", "q"], "they form a circle"),
        (["amqp://a", "amqp://b", "--queue", "q", "--queue", "q"], "is there twice"),
        (["mqtt://a", "amqp://b", "--queue", "q"], "unknown URL scheme 'mqtt'"),
    ],
)
def test_what_makes_no_sense_is_one_line(words: list[str], problem: str) -> None:
    ran = ended("bridge", *words)
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
