"""Clients of AMQP 0-9-1 at the listeners of AMQP 1.0: header, login, virtual host, limits, end."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pika
import pytest
from amqp.connection import Connection
from certificates import Authority
from pika.exceptions import (
    AMQPConnectionError,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from cogwork.bench.servers.process import free_ports
from cogwork.config.password_hash import hash_password

from .served import OPEN, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .served import Served

# pika leaves sockets open where it is refused.
UNCLOSED = "ignore::pytest.PytestUnraisableExceptionWarning"
pytestmark = pytest.mark.filterwarnings(UNCLOSED)  # see above

HEADER = b"AMQP\x00\x00\x09\x01"

USERS = f"""
[[user]]
name = "jo"
password_hash = "{hash_password("secret")}"
permissions = [{{ address = "queue/#", rights = ["manage", "send", "receive"], vhost = "*" }}]

[[vhost]]
name = "shop"
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("basic"), OPEN + USERS) as running:
        yield running


def port_of(container: Served) -> int:
    return int(container.url.rpartition(":")[2])


def parameters(container: Served, **given: Any) -> pika.ConnectionParameters:
    return pika.ConnectionParameters("127.0.0.1", port_of(container), **given)


def connected(container: Served, **given: Any) -> pika.BlockingConnection:
    return pika.BlockingConnection(parameters(container, **given))


def test_a_client_that_is_told_nothing_is_the_anonymous_user(container: Served) -> None:
    connection = connected(container)
    assert connection.publisher_confirms_supported
    assert connection.basic_nack_supported
    assert connection.consumer_cancel_notify_supported
    rows = json.loads(container.run("status", container.url, "--json"))["connections"]
    (row,) = [each for each in rows if each["protocol"] == "AMQP 0-9-1"]
    assert (row["user"], row["vhost"], row["is_open"]) == ("", "", True)
    assert row["product"].startswith("Pika Python Client Library ")
    connection.channel()
    rows = json.loads(container.run("status", container.url, "--json"))["connections"]
    assert [each["sessions"] for each in rows if each["protocol"] == "AMQP 0-9-1"] == [1]
    connection.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_user_logs_in_by_either_mechanism(container: Served, mechanism: str) -> None:
    host = f"127.0.0.1:{port_of(container)}"
    login = {"userid": "jo", "password": "secret", "login_method": mechanism}
    with Connection(host, virtual_host="shop", **login) as connection:
        assert connection.server_properties["product"] == "RabbitMQ"
        rows = json.loads(container.run("status", container.url, "--json"))["connections"]
        (row,) = [each for each in rows if each["protocol"] == "AMQP 0-9-1"]
        assert (row["user"], row["vhost"]) == ("jo", "shop")
        connection.channel().close()


def test_a_wrong_password_is_refused_in_words(container: Served) -> None:
    wrong = pika.PlainCredentials("jo", "wrong")
    with pytest.raises(ProbableAuthenticationError, match=r"403.*Login was refused using"):
        connected(container, credentials=wrong)


def test_a_virtual_host_that_is_not_there_is_refused_in_words(container: Served) -> None:
    with pytest.raises(ProbableAccessDeniedError, match=r"530.*vhost nowhere not found"):
        connected(container, virtual_host="nowhere")


@pytest.mark.parametrize(
    "header", [b"AMQP\x01\x01\x00\x09", b"AMQP\x01\x01\x08\x00", b"AMQP\x00\x00\x09\x00"]
)
def test_an_earlier_version_is_answered_with_the_header_of_0_9_1(
    container: Served, header: bytes
) -> None:
    assert answer_to(container, header) == HEADER


@pytest.mark.parametrize("header", [b"AMQP\x00\x02\x00\x00", b"GET / HT"])
def test_anything_else_is_answered_with_a_header_of_1_0(container: Served, header: bytes) -> None:
    assert answer_to(container, header) == b"AMQP\x03\x01\x00\x00"


def answer_to(container: Served, header: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port_of(container)), 10) as sock:
        sock.sendall(header)
        found = b""
        while piece := sock.recv(4096):
            found += piece
        return found


def test_a_header_may_come_octet_by_octet_and_with_more_behind_it(container: Served) -> None:
    with socket.create_connection(("127.0.0.1", port_of(container)), 10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for octet in HEADER:
            sock.sendall(bytes([octet]))
        assert sock.recv(1) == b"\x01"  # a method frame: connection.start
    heartbeat = b"\x08\x00\x00\x00\x00\x00\x00\xce"
    with socket.create_connection(("127.0.0.1", port_of(container)), 10) as sock:
        sock.sendall(HEADER + heartbeat + heartbeat)
        assert sock.recv(1) == b"\x01"


def test_a_damaged_frame_is_told_and_ends_the_connection_alone(container: Served) -> None:
    other = connected(container)
    with socket.create_connection(("127.0.0.1", port_of(container)), 10) as sock:
        sock.sendall(HEADER + b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0b\x00")
        found = b""
        while b"FRAME_ERROR" not in found:
            piece = sock.recv(4096)
            assert piece, found
            found += piece
    other.channel().queue_declare("still-there")
    other.close()


def test_heartbeats_keep_a_quiet_connection_and_end_a_silent_one(container: Served) -> None:
    quiet = connected(container, heartbeat=1)
    quiet.process_data_events(3.5)
    quiet.channel()
    quiet.close()
    silent = connected(container, heartbeat=1)  # nobody has it send anything
    assert len(of_basic(container)) == 1
    within(10, lambda: not of_basic(container), "the silent one is given up")
    assert silent.is_open  # it has not looked
    with pytest.raises(AMQPConnectionError):
        silent.process_data_events(5)


def of_basic(container: Served) -> list[dict[str, Any]]:
    rows = json.loads(container.run("status", container.url, "--json"))["connections"]
    return [row for row in rows if row["protocol"] == "AMQP 0-9-1"]


def test_channels_have_a_limit(container: Served) -> None:
    connection = connected(container, channel_max=2)
    connection.channel(1)
    connection.channel(2)
    with pytest.raises(ConnectionClosedByBroker, match=r"530.*channel_max"):
        connection.channel(3)


def test_both_protocols_are_served_by_tls_and_at_a_path(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("server", "127.0.0.1", "localhost")
    path, (port,) = tmp_path / "it.sock", free_ports(1)
    listeners = f"""
[[listen]]
path = "{path}"

[[listen]]
port = {port}
transport = "amqps"
[listen.tls]
certificate = "{certificate}"
"""
    with served(tmp_path, listeners) as container:
        context = ssl.create_default_context(cafile=str(authority.file))
        options = pika.SSLOptions(context, "localhost")
        given = pika.ConnectionParameters("127.0.0.1", port, ssl_options=options)
        connection = pika.BlockingConnection(given)
        channel = connection.channel()
        assert channel.queue_declare("a").method.queue == "a"
        rows = of_basic(container)
        assert [row["listener"] for row in rows] == [f"amqps://127.0.0.1:{port}"]
        connection.close()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
            sock.sendall(HEADER)
            assert sock.recv(1) == b"\x01"


def test_it_can_be_switched_off_and_on_again(tmp_path: Path) -> None:
    with served(tmp_path, "[amqp091]\nenabled = false\n") as container:
        assert answer_to(container, HEADER) == b"AMQP\x03\x01\x00\x00"
        file = tmp_path / "cogwork.toml"
        file.write_text(file.read_text().replace("enabled = false", 'version = "4.1.0"'))
        container.process.send_signal(signal.SIGHUP)

        def is_on() -> bool:
            try:
                connected(container).close()
            except AMQPConnectionError:
                return False
            return True

        within(10, is_on, "the reload has switched it on")
        with Connection(f"127.0.0.1:{port_of(container)}") as connection:
            assert connection.server_properties["version"] == "4.1.0"


def test_a_container_that_stops_says_so(tmp_path: Path) -> None:
    with served(tmp_path) as container:
        connection = connected(container)
        container.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosedByBroker, match=r"320.*CONNECTION_FORCED"):
            connection.process_data_events(10)


def test_an_administrator_closes_a_connection(tmp_path: Path) -> None:
    with served(tmp_path) as container:
        connection = connected(container)
        (row,) = of_basic(container)
        container.run("connection", "close", container.url, row["name"])
        with pytest.raises(ConnectionClosedByBroker, match="320"):
            connection.process_data_events(10)


def test_what_a_reload_takes_back_ends_connections(tmp_path: Path) -> None:
    with served(tmp_path, OPEN + USERS) as container:
        jo = connected(container, credentials=pika.PlainCredentials("jo", "secret"))
        file = tmp_path / "cogwork.toml"
        file.write_text(file.read_text().replace('name = "jo"', 'name = "jane"'))
        container.process.send_signal(signal.SIGHUP)
        with pytest.raises(ConnectionClosedByBroker, match=r"ACCESS_REFUSED|CONNECTION_FORCED"):
            jo.process_data_events(10)


def test_publishers_are_told_that_memory_is_short_and_consumers_go_on(tmp_path: Path) -> None:
    with served(tmp_path) as container:
        told: list[str] = []
        connection = connected(container, heartbeat=1)
        connection.add_on_connection_blocked_callback(
            lambda _connection, frame: told.append(frame.method.reason)
        )
        connection.add_on_connection_unblocked_callback(lambda *_: told.append("go on"))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"before")
        assert channel.queue_declare("q", passive=True).method.message_count == 1
        file = tmp_path / "cogwork.toml"
        calm = file.read_text()
        file.write_text(calm + "\n[limits]\nmemory_watermark = 0.0001\n")
        container.process.send_signal(signal.SIGHUP)
        waited(connection, told, ["low on memory"])
        channel.basic_publish("", "q", b"meanwhile")
        with closing(connected(container)) as other:
            taker = other.channel()
            assert taker.basic_get("q", auto_ack=True)[2] == b"before"
            connection.process_data_events(4)  # longer than its heartbeats are borne to be missed
            assert taker.basic_get("q", auto_ack=True)[2] is None
            file.write_text(calm)
            container.process.send_signal(signal.SIGHUP)
            waited(connection, told, ["low on memory", "go on"])
            channel.queue_declare("q", passive=True)
            assert taker.basic_get("q", auto_ack=True)[2] == b"meanwhile"
        connection.close()


def waited(connection: pika.BlockingConnection, told: list[str], expected: list[str]) -> None:
    deadline_s = time.monotonic() + 10
    while told != expected and time.monotonic() < deadline_s:
        connection.process_data_events(0.1)
    assert told == expected
