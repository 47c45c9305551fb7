"""Identities of the gateway's own: they outlive connections, and end with their lease."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import zmq
import zmq.auth

from cogwork.cli.exit_codes import ExitCode

from .manager import Manager
from .served import COGWORK, OPEN, within
from .zeromq_mesh import Gateway, gateway, session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GatewayError, Session = session.GatewayError, session.Session


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A container whose sessions may have short leases, and few things under way."""
    folder = tmp_path_factory.mktemp("zeromq-sessions") / "container"
    with gateway(folder, "lease_s = 60\nunder_way = 2\nhigh_water_mark = 10\n") as found:
        yield found


def test_one_identity_serves_all_three_sockets(short: Gateway) -> None:
    first = short.client("roundrobin", name="process")
    others = [short.client(kind, session=first.id) for kind in ("pubsub", "peer2peer")]
    for each in others:
        assert each.ask("PING", {}).verb == "PONG"
    before = short.status()["sessions"]
    first.send("BYE", {})
    short.becomes(sessions=before - 1)
    with pytest.raises(GatewayError, match="say HELLO first"):
        others[0].ask("PING", {})


def test_a_reply_finds_a_client_that_has_reconnected(short: Gateway) -> None:
    service, caller = short.client(), short.client()
    service.register("slow")
    caller.send("CALL", {"id": 1, "to": "slow", "timeout_s": 20}, "x")
    request = service.receive()
    caller.socket.close(0)
    service.send("REPLY", {"id": request.header["id"]}, "y")
    short.becomes(outstanding=0)
    again = short.client(session=caller.id)
    again.send("PING", {})
    assert {again.receive().verb for _ in range(2)} == {"PONG", "RESULT"}


def test_a_service_that_reconnects_goes_on(short: Gateway) -> None:
    service, caller = short.client(), short.client()
    service.register("moved")
    service.socket.close(0)
    caller.send("CALL", {"id": 1, "to": "moved", "timeout_s": 20}, "x")
    short.becomes(under_way=1)
    again = short.client(session=service.id)
    again.send("PING", {})
    while again.serve_one(lambda request: request.body + "y").verb != "REQUEST":
        pass
    assert caller.receive().body == "xy"


def test_a_lease_that_ends_takes_its_registrations_along(short: Gateway) -> None:
    before = short.status()["registrations"]
    service = short.socket()
    service.send_multipart([b"COG1", b"HELLO", b"", b'{"lease_s": 5}'])
    identity = json.loads(service.recv_multipart()[3])["session"].encode()
    service.send_multipart([b"COG1", b"REGISTER", identity, b'{"id": 1, "to": "leased"}'])
    assert service.recv_multipart()[1] == b"DONE"
    assert "unicast/leased" in short.addresses()
    caller = short.client()
    caller.send("CALL", {"id": 1, "to": "leased", "timeout_s": 20}, None)
    assert service.recv_multipart()[1] == b"REQUEST"
    answer = caller.receive()
    assert answer.header["code"] == "in-doubt", "whoever has a call and goes leaves it in doubt"
    short.becomes(registrations=before)
    assert "unicast/leased" not in short.addresses()


def test_the_last_to_leave_removes_the_queue(short: Gateway) -> None:
    services = [short.client() for _ in range(2)]
    for each in services:
        each.register("two")
    services[0].ask("LEAVE", {"to": "two"})
    assert "unicast/two" in short.addresses()
    services[1].send("BYE", {})
    within(30, lambda: "unicast/two" not in short.addresses(), "the queue is gone")


def test_a_session_cannot_do_without_bounds(short: Gateway) -> None:
    service, caller = short.client(), short.client()
    service.register("bounded", window=1)
    for number in range(3):
        caller.send("CALL", {"id": number, "to": "bounded", "timeout_s": 20}, None)
    refused = caller.receive()
    assert (refused.header["id"], refused.header["code"]) == (2, "busy")
    for _ in range(2):
        service.serve_one(lambda request: None)
    assert sorted(caller.receive().header["id"] for _ in range(2)) == [0, 1]
    with pytest.raises(GatewayError, match="registered there already"):
        service.register("bounded")


def test_a_subscriber_that_does_not_read_gets_all_that_it_was_promised(short: Gateway) -> None:
    count, size = 300, 20_000
    slow, publisher = short.client("pubsub"), short.client("pubsub")
    slow.register("flood", window=20)
    for number in range(count):
        publisher.cast("flood", {"n": number, "fill": "x" * size}, timeout_s=20) if (
            number == 0
        ) else publisher.send("CAST", {"to": "flood"}, {"n": number, "fill": "x" * size})
    seen = [slow.receive(20).body["n"] for _ in range(count)]
    assert seen == list(range(count))


def test_a_large_body_goes_through_whole(short: Gateway) -> None:
    service, caller = short.client(), short.client()
    service.register("large")
    text = "x" * 3_000_000
    caller.send("CALL", {"id": 1, "to": "large"}, text)
    service.serve_one(lambda request: len(request.body))
    assert caller.receive().body == len(text)


# -- CURVE, and options


def test_curve_lets_in_those_who_are_known(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (tmp_path / "known").mkdir()
    zmq.auth.create_certificates(keys, "gateway")
    zmq.auth.create_certificates(tmp_path / "known", "client")
    zmq.auth.create_certificates(keys, "stranger")
    options = f'curve_secret_file = "{keys}/gateway.key_secret"\ncurve_clients_dir = "known"\n'
    public, _ = zmq.auth.load_certificate(keys / "gateway.key")

    def keys_of(path: Path) -> object:
        return session.Keys(public, *zmq.auth.load_certificate(path))

    folder = tmp_path / "container"
    folder.mkdir()
    (tmp_path / "known").rename(folder / "known")
    users = '[[user]]\nname = "client"\n' + OPEN
    with gateway(folder, options, users) as running:
        assert running.status()["curve"] is True
        known = running.client(keys=keys_of(folder / "known" / "client.key_secret"))
        assert known.ask("PING", {}).verb == "PONG"
        strange: dict[str, Any] = {"keys": keys_of(keys / "stranger.key_secret")}
        for more in ({}, strange):
            stranger = running.client(session="x", **more)
            stranger.socket.sndtimeo = 300  # once it has been refused, there is nobody to send to
            with suppress(zmq.Again):
                stranger.send("PING", {})
            assert not stranger.socket.poll(300)
        within(30, lambda: running.status()["refused_keys"] >= 1, "a stranger's key is refused")
        known.close()


def test_options_that_cannot_be_are_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text('[gateway.zeromq]\nroundrobin = "tcp://0.0.0.0:0"\n')
    ended = _serve(tmp_path, "--config", str(file))
    assert ended.returncode == ExitCode.CONFIGURATION
    assert "is not on loopback, where only CURVE may be spoken" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_gateway_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = _serve(tmp_path, "--gateway", "zeromqq")
    assert ended.returncode == ExitCode.CONFIGURATION
    assert "gateway 'zeromqq': there is none of this name; installed: zeromq" in ended.stderr


def test_a_port_that_is_taken_is_told(short: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(f'[gateway.zeromq]\nroundrobin = "{short.kinds["roundrobin"]}"\n')
    ended = _serve(tmp_path, "--config", str(file))
    assert ended.returncode == ExitCode.CONNECTION
    assert f"gateway.zeromq.roundrobin: {short.kinds['roundrobin']}" in ended.stderr


def _serve(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*COGWORK, "serve", "--listen", "127.0.0.1:0", *options]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=30, check=False
    )


def test_what_is_under_way_ends_before_the_container_does(tmp_path: Path) -> None:
    with gateway(tmp_path / "container") as running:
        service, caller = running.client(), running.client()
        service.register("last")
        caller.send("CALL", {"id": 1, "to": "last", "timeout_s": 20}, "x")
        request = service.receive()
        running.container.process.send_signal(signal.SIGTERM)

        def is_stopping() -> bool:
            caller.send("CAST", {"id": 2, "to": "nobody", "timeout_s": 0.1}, "y")
            return bool(caller.receive().header.get("code") == "stopping")

        within(30, is_stopping, "nothing new is taken on")
        service.send("REPLY", {"id": request.header["id"]}, "z")
        answers = [caller.receive()]
        while answers[-1].verb != "RESULT":
            answers.append(caller.receive())
        assert answers[-1].body == "z"
        running.container.process.wait(10)
        assert running.container.process.returncode == 0


def test_a_gateway_whose_connection_is_closed_opens_another_one(tmp_path: Path) -> None:
    with gateway(tmp_path / "container") as running:
        service, caller = running.client(), running.client()
        service.register("again")
        rows = running.container.status()["connections"]
        number = next(row["name"] for row in rows if row["listener"] == "inside://zeromq")
        with Manager(running.url) as manager:
            manager.get("CLOSE", "connection", name=number)
        told = service.receive()
        assert (told.verb, told.header["code"]) == ("ERROR", "detached")
        service.register("again")
        caller.send("CALL", {"id": 1, "to": "again"}, "x")
        service.serve_one(lambda request: request.body)
        assert caller.receive().body == "x"
        said = running.container.run("status", running.url)
        assert "gateway zeromq on tcp://127.0.0.1:" in said
        assert "sessions 2," in " ".join(said.split())


FULL = '[[queue]]\naddress = "queue/full"\nmaximum_length = 5\n'


def fill(found: Gateway) -> None:
    """Cast more than a queue, and then the gateway's connection, has room for."""
    publisher = found.client("pubsub")
    for number in range(6_000):
        publisher.send("CAST", {"address": "queue/full", "timeout_s": 3600}, number)
    within(20, lambda: found.status()["received"] > 5_000, "the gateway has no credit any more")


def test_a_consumer_empties_the_queue_that_has_taken_all_credit(tmp_path: Path) -> None:
    with gateway(tmp_path / "container", "high_water_mark = 10000\n", FULL) as found:
        fill(found)
        consumer = found.client()
        consumer.register("full", address="queue/full", window=4)
        for number in range(100):
            request = consumer.receive()
            assert (request.verb, request.body) == ("REQUEST", number)
            consumer.send("DONE", {"id": request.header["id"]})
        caller = found.client()
        assert caller.ask("PING", {}).verb == "PONG"


def test_what_waits_for_credit_goes_by_the_next_connection(tmp_path: Path) -> None:
    with gateway(tmp_path / "container", "high_water_mark = 10000\n", FULL) as found:
        fill(found)
        with Manager(found.url) as manager:
            manager.ask("CLOSE", "connection", name="1")
            within(10, lambda: bool(found.client().id), "a client is welcome")
            consumer = found.client()
            consumer.register("full", address="queue/full", window=4)
            assert consumer.receive().verb == "REQUEST"
