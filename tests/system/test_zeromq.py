"""Programs that speak ZeroMQ, and those that speak AMQP, through one mesh."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import zmq

from cogwork import sync

from .served import within
from .zeromq_mesh import EXAMPLES, Client, Gateway, gateway, linked, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GatewayError = session.GatewayError

WHEN = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
NUMBER = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One container for all tests that leave it as it was."""
    with gateway(tmp_path_factory.mktemp("zeromq") / "container") as found:
        yield found


@contextlib.contextmanager
def in_background(work: Callable[[], object]) -> Iterator[list[object]]:
    """Do something in a thread; its result, or its failure, is in the list at the end."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        thread.join(20)


def test_a_call_goes_to_one_of_a_queue_and_its_reply_comes_back(running: Gateway) -> None:
    service, caller = running.client(name="service"), running.client(name="caller")
    assert service.register("compute") == "unicast/compute"
    asked = {"vm": 7, "since": {"$datetime": "2026-05-01T12:30:00Z"}}
    with in_background(lambda: caller.call("compute", asked, subject="start")) as found:
        seen = service.serve_one(lambda request: {"raw": {"$bytes": "AAEC"}, "of": request.body})
    assert seen.header["subject"] == "start"
    assert seen.header["reply"] is True
    assert found == [{"raw": {"$bytes": "AAEC"}, "of": asked}]


def test_calls_are_shared_out(running: Gateway) -> None:
    services = [running.client() for _ in range(2)]
    for each in services:
        each.register("shared", window=1)
    caller = running.client()
    for number in range(2):
        caller.send("CALL", {"id": f"n{number}", "to": "shared"}, number)
    for each in services:
        each.serve_one(lambda request: request.body)
    results = [caller.receive() for _ in range(2)]
    assert sorted((each.header["id"], each.body) for each in results) == [("n0", 0), ("n1", 1)]


def test_a_peers_name_is_its_own(running: Gateway) -> None:
    first, second = running.client("peer2peer"), running.client("peer2peer")
    first.register("only-one")
    second.send("REGISTER", {"id": 1, "to": "only-one"})
    answer = second.receive()
    assert (answer.verb, answer.header["code"]) == ("ERROR", "not-allowed")
    assert "is held" in answer.header["text"]
    first.ask("LEAVE", {"to": "only-one"})
    assert second.register("only-one") == "exclusive/only-one"


def test_a_cast_is_done_when_a_service_has_done_it(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("casts")
    caller.send("CAST", {"id": 5, "to": "casts"}, {"x": 1})
    request = service.receive()
    assert request.header["reply"] is False
    assert not caller.socket.poll(100)
    service.send("DONE", {"id": request.header["id"]})
    assert caller.receive()[:2] == ("DONE", {"id": 5})


def test_a_service_that_fails_tells_its_caller(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("failing")
    with in_background(lambda: caller.call("failing", None)) as found:
        service.serve_one(lambda request: 1 // 0)
    assert isinstance(found[0], GatewayError)
    assert found[0].header["code"] == "failed"
    assert found[0].header["type"] == "ZeroDivisionError"


def test_what_one_service_gives_back_goes_to_another(running: Gateway) -> None:
    first, second, caller = (running.client() for _ in range(3))
    first.register("passed")
    with in_background(lambda: caller.call("passed", "x")) as found:
        request = first.receive()
        first.send("FAIL", {"id": request.header["id"], "code": "release"})
        first.ask("LEAVE", {"to": "passed"})
        second.register("passed")
        second.serve_one(lambda request: request.body + "y")
    assert found == ["xy"]


def test_everyone_who_subscribes_gets_what_is_published(running: Gateway) -> None:
    subscribers = [running.client("pubsub") for _ in range(3)]
    for each in subscribers:
        each.register("news.#")
    publisher = running.client("pubsub")
    publisher.cast("news.weather.berlin", {"sun": True})
    for each in subscribers:
        message = each.receive()
        assert message.header["address"] == "topic/news.weather.berlin"
        assert message.body == {"sun": True}
    with pytest.raises(GatewayError, match="PubSub has no replies"):
        publisher.call("news.x", None)


def test_peers_find_each_other_and_talk_without_the_gateway(running: Gateway) -> None:
    server, asker = running.client("peer2peer"), running.client("peer2peer")
    server.register("host-3", endpoint="tcp://127.0.0.1:9", public_key="k")
    found = asker.ask("LOOKUP", {"to": "host-3"})
    assert found.verb == "FOUND"
    assert found.header["endpoints"] == [{"endpoint": "tcp://127.0.0.1:9", "public_key": "k"}]
    with pytest.raises(GatewayError, match="nobody who serves it has told"):
        asker.ask("LOOKUP", {"to": "host-4"})


def test_nobody_there_is_told_in_time(running: Gateway) -> None:
    caller = running.client()
    with pytest.raises(GatewayError, match="nobody") as found:
        caller.call("nobody", None, timeout_s=0.3)
    assert found.value.code == "unreachable"


def test_a_service_that_comes_within_the_deadline_still_gets_the_call(running: Gateway) -> None:
    caller, service = running.client(), running.client()
    with in_background(lambda: caller.call("late", 1, timeout_s=10)) as found:
        running.becomes(under_way=1)
        service.register("late")
        service.serve_one(lambda request: request.body + 1)
    assert found == [2]


def test_a_service_that_does_not_answer_costs_its_caller_the_deadline(running: Gateway) -> None:
    caller, service = running.client(), running.client()
    service.register("silent")
    with pytest.raises(GatewayError, match="no reply in time") as found:
        caller.call("silent", None, timeout_s=0.3)
    assert found.value.code == "timeout"
    request = service.receive()
    service.send("REPLY", {"id": request.header["id"]}, "too late")
    running.becomes(outstanding=0)
    assert not caller.socket.poll(50)


# -- AMQP


def test_amqp_calls_zeromq(running: Gateway) -> None:
    service = running.client()
    service.register("for.amqp")
    asked = {"when": WHEN, "raw": b"\0\1", "id": NUMBER, "price": Decimal("1.50"), "n": [1, None]}
    with (
        sync.connect(running.url) as mesh,
        in_background(lambda: mesh.request("unicast/for.amqp", asked).body) as found,
    ):
        seen = service.serve_one(lambda request: request.body)
    assert seen.body == {
        "when": {"$datetime": "2026-05-01T12:30:00Z"},
        "raw": {"$bytes": "AAE="},
        "id": {"$uuid": str(NUMBER)},
        "price": {"$decimal": "1.50"},
        "n": [1, None],
    }
    assert found == [asked]


def test_zeromq_publishes_and_subscribes_with_amqp(running: Gateway) -> None:
    client = running.client("pubsub")
    client.register("both.*")
    with sync.connect(running.url) as mesh, mesh.subscribe("topic/both.*") as messages:
        client.cast("both.ways", {"$$bytes": "not bytes"}, subject="s", properties={"n": 1})
        message = messages.receive(5)
        assert message is not None
        assert (message.body, message.subject) == ({"$bytes": "not bytes"}, "s")
        assert message.properties == {"n": 1}
        assert client.receive().body == {"$$bytes": "not bytes"}
        mesh.publish("topic/both.back", b"\xff", content_type="image/x")
        back = client.receive()
        assert (back.header["raw"], back.body) == ("image/x", b"\xff")


def test_a_message_need_not_name_its_address(running: Gateway) -> None:
    """As `cogwork send` sends it: its link leads there."""
    client = running.client("pubsub")
    client.register("unnamed")
    client.register("un.*")
    with sync.connect(running.url) as mesh:
        for address in ("topic/unnamed", "topic/un.named"):
            with mesh.publisher(address) as out:
                out.send(address)
    found = [client.receive() for _ in range(2)]
    assert sorted((each.header["to"], each.header.get("address")) for each in found) == [
        ("un.*", None),
        ("unnamed", "topic/unnamed"),
    ]


@pytest.mark.parametrize("id_", [None, 1])
def test_a_cast_to_a_stored_queue_stays_there(running: Gateway, id_: int | None) -> None:
    """`timeout_s` is how long it is tried, `ttl_s` how long it lives."""
    address = f"queue/kept-{id_}"
    caller = running.client()
    named = {} if id_ is None else {"id": id_}
    caller.send("CAST", {"address": address, "timeout_s": 0.2, **named}, "for ever")
    caller.send("CAST", {"address": address, "timeout_s": 0.2, "ttl_s": 600, **named}, "long")
    caller.send("CAST", {"address": address, "ttl_s": 0.2, **named}, "short")
    if id_ is not None:
        for _ in range(3):
            assert caller.receive().verb == "DONE"
    time.sleep(1.5)
    with sync.connect(running.url) as mesh, mesh.consume(address) as items:
        for body, longest_s in (("for ever", None), ("long", 600)):
            item = items.receive(20)
            assert item is not None
            assert item.body == body
            if longest_s is None:
                assert item.ttl_s is None
            else:
                assert item.ttl_s is not None
                assert longest_s - 60 < item.ttl_s <= longest_s - 1
            items.accept(item)
        assert items.receive(0.2) is None


def test_a_ttl_that_is_none_is_refused(running: Gateway) -> None:
    caller = running.client()
    caller.send("CAST", {"id": 1, "to": "x", "ttl_s": -1}, None)
    answer = caller.receive()
    assert answer.verb == "ERROR"
    assert "ttl_s" in answer.header["text"]


def test_a_call_is_tried_until_its_time_is_over(running: Gateway) -> None:
    """Also in the last moment before that, which a pause between offers must not cut off."""
    caller = running.client()
    began_s = time.monotonic()
    caller.send("CALL", {"id": 1, "to": "nobody-at-all", "timeout_s": 2.5}, None)
    answer = caller.receive()
    assert (answer.verb, answer.header["code"]) == ("ERROR", "unreachable")
    assert time.monotonic() - began_s >= 2.4


def test_what_fails_with_a_type_keeps_its_code(running: Gateway) -> None:
    service, caller = running.client(), running.client()
    service.register("coded")
    caller.send("CALL", {"id": 1, "to": "coded"}, None)
    request = service.receive()
    header = {"id": request.header["id"], "code": "no-such-vm", "type": "KeyError", "text": "7"}
    service.send("FAIL", header)
    answer = caller.receive()
    assert answer.verb == "ERROR"
    told = {key: answer.header[key] for key in ("code", "condition", "type", "text")}
    assert told == {"code": "failed", "condition": "no-such-vm", "type": "KeyError", "text": "7"}


def test_a_req_socket_gets_an_answer_that_it_can_read(running: Gateway) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    socket = context.socket(zmq.REQ)
    try:
        socket.connect(running.kinds["roundrobin"])
        socket.send_multipart([b"COG1", b"HELLO", b"", b"{}"])
        assert socket.poll(20_000), "an answer, and not silence"
        frames = socket.recv_multipart()
    finally:
        socket.close(0)
    assert frames[:2] == [b"COG1", b"ERROR"]
    header = json.loads(frames[3])
    assert "DEALER" in header["text"]


def test_a_stored_queue_keeps_what_nobody_takes(running: Gateway) -> None:
    client = running.client()
    client.ask("CAST", {"address": "queue/kept"}, [1, 2])
    client.send("CAST", {"address": "queue/kept"}, "no id, no outcome")
    client.ask("REGISTER", {"address": "queue/kept"})
    request = client.receive()
    assert request.body == [1, 2]
    client.send("DONE", {"id": request.header["id"]})
    assert client.serve_one(lambda request: None).body == "no id, no outcome"
    within(30, lambda: running.container.address("queue/kept")["depth"] == 0, "it is empty")


def test_across_containers(tmp_path: Path) -> None:
    with linked(tmp_path) as (north, south):
        service, caller = north.client(), south.client()
        service.register("far")
        peer, asker = north.client("peer2peer"), south.client("peer2peer")
        peer.register("host", endpoint="tcp://127.0.0.1:1")
        for number in range(3):
            with in_background(partial(caller.call, "far", number)) as found:
                service.serve_one(lambda request: request.body + 1)
            assert found == [number + 1]

        def is_found() -> bool:
            with contextlib.suppress(GatewayError):
                return bool(asker.ask("LOOKUP", {"to": "host"}).header["endpoints"])
            return False

        within(30, is_found, "the other container's gateway tells of its peer")
        subscriber, publisher = south.client("pubsub"), north.client("pubsub")
        subscriber.register("news")
        within(30, lambda: _is_heard(publisher, subscriber), "a subscriber elsewhere hears it")
        with (
            sync.connect(south.url) as mesh,
            in_background(lambda: mesh.request("unicast/far", "a").body) as found,
        ):
            service.serve_one(lambda request: request.body * 2)
        assert found == ["aa"]


def _is_heard(publisher: Client, subscriber: Client) -> bool:
    publisher.cast("news", "x")
    return bool(subscriber.socket.poll(100))


# -- MessagePack, and what is wrong


def test_messagepack_carries_what_json_needs_tags_for(running: Gateway) -> None:
    socket, service = running.socket(), running.client()
    service.register("packed")
    pack = msgspec.msgpack.encode

    def send(verb: bytes, identity: bytes, header: dict[str, Any], *body: object) -> None:
        socket.send_multipart([b"COG1", verb, identity, pack(header), *map(pack, body)])

    send(b"HELLO", b"", {})
    identity = msgspec.msgpack.decode(socket.recv_multipart()[3])["session"].encode()
    ext = msgspec.msgpack.Ext(1, NUMBER.bytes)
    asked = {"when": WHEN, "raw": b"\0\1", "id": ext, "price": msgspec.msgpack.Ext(2, b"1.5")}
    send(b"CALL", identity, {"id": 1, "to": "packed"}, asked)
    seen = service.serve_one(lambda request: request.body)
    assert seen.body["when"] == {"$datetime": "2026-05-01T12:30:00Z"}
    assert seen.body["id"] == {"$uuid": str(NUMBER)}
    frames = socket.recv_multipart()
    assert frames[1] == b"RESULT"
    back = msgspec.msgpack.decode(frames[4])
    assert (back["when"], back["raw"], back["id"].data) == (WHEN, b"\0\1", NUMBER.bytes)


DEEP = b"[" * 40 + b"]" * 40
HOSTILE = {
    "nothing": [b""],
    "another protocol": [b"HTTP", b"CALL", b"", b"{}"],
    "many frames": [b"COG1"] * 100,
    "no JSON": [b"COG1", b"HELLO", b"", b"{"],
    "no map": [b"COG1", b"HELLO", b"", b"[]"],
    "no verb": [b"COG1", b"\xff\0", b"", b"{}"],
    "a stranger": [b"COG1", b"CALL", b"x" * 32, b'{"id": 1, "to": "a"}'],
    "a long header": [b"COG1", b"HELLO", b"", b'{"name": "%s"}' % (b"x" * 20_000)],
    "a broken map": [b"COG1", b"HELLO", b"", b"\xdf\xff\xff\xff\xff"],
    "a lease of no time": [b"COG1", b"HELLO", b"", b'{"lease_s": 0}'],
    "a name that is none": [b"COG1", b"HELLO", b"", b'{"name": 7}'],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_message_gets_an_error(running: Gateway, name: str) -> None:
    socket = running.socket()
    socket.send_multipart(HOSTILE[name])
    frames = socket.recv_multipart()
    assert frames[:2] == [b"COG1", b"ERROR"]
    header = _header_of(frames[3])
    expected = "unknown-session" if name == "a stranger" else "bad-message"
    assert header["code"] == expected, header


def _header_of(frame: bytes) -> dict[str, Any]:
    is_json = frame.startswith(b"{")
    found: dict[str, Any] = json.loads(frame) if is_json else msgspec.msgpack.decode(frame)
    return found


BAD_CALLS: dict[str, tuple[bytes, bytes, str]] = {
    "too deep": (b'{"id": 1, "to": "a"}', DEEP, "more than 32 deep"),
    "too many": (
        b'{"id": 1, "to": "a"}',
        b"[" + b"1," * 100_001 + b"1]",
        "more than 100000 values",
    ),
    "no body": (b'{"id": 1, "to": "a"}', b"{", "no JSON"),
    "a tag of nothing": (b'{"id": 1, "to": "a"}', b'{"$pickle": "x"}', "$datetime"),
    "no base64": (b'{"id": 1, "to": "a"}', b'{"$bytes": "?"}', "$bytes"),
    "a time without zone": (b'{"id": 1, "to": "a"}', b'{"$datetime": "2026-01-01T00:00"}', "UTC"),
    "a large integer": (b'{"id": 1, "to": "a"}', b"36893488147419103232", "64 bits"),
    "no address": (b'{"id": 1}', b"1", "needs `to`"),
    "no id": (b'{"to": "a"}', b"1", "needs an id"),
    "no address at all": (b'{"id": 1, "to": ""}', b"1", "to: a text"),
    "nested properties": (b'{"id": 1, "to": "a", "properties": {"a": []}}', b"1", "properties"),
    "no time": (b'{"id": 1, "to": "a", "timeout_s": -1}', b"1", "timeout_s"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_call_that_is_wrong_says_what_is(running: Gateway, name: str) -> None:
    header, body, text = BAD_CALLS[name]
    client = running.client()
    client.socket.send_multipart([b"COG1", b"CALL", client.id.encode(), header, body])
    answer = client.receive()
    assert answer.verb == "ERROR"
    assert text in answer.header["text"]
    assert client.ask("PING", {}).verb == "PONG", "the session goes on"


def test_the_examples_work_together(running: Gateway) -> None:
    def start(name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(EXAMPLES / name), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def run(name: str, *arguments: str) -> str:
        command = [sys.executable, str(EXAMPLES / name), *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=20
        ).stdout

    kinds = running.kinds
    servers = [
        start("service.py", "--endpoint", kinds["roundrobin"]),
        start("subscriber.py", "weather.#", "--endpoint", kinds["pubsub"], "--count", "2"),
        start("peer.py", "serve", "clock", "--endpoint", kinds["peer2peer"]),
    ]
    try:
        for each in servers:
            assert each.stdout is not None
            assert each.stdout.readline()
        assert run("caller.py", "1", "2.5", "--endpoint", kinds["roundrobin"]) == "3.5\n"
        run("publisher.py", "weather.berlin", "sunny", "--endpoint", kinds["pubsub"])
        with sync.connect(running.url) as mesh, mesh.publisher("topic/weather.berlin") as out:
            out.send("rainy")
        assert servers[1].stdout is not None
        told = servers[1].stdout.read()
        assert told == "topic/weather.berlin sunny\nweather.# rainy\n"
        asked = run("peer.py", "ask", "clock", "--endpoint", kinds["peer2peer"])
        assert asked.count("$datetime") == 2
    finally:
        for each in servers:
            each.terminate()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()
