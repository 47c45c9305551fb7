"""`/management`: what clients of RabbitMQ 4 declare, bind, purge and delete over AMQP 1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proton import Message, symbol
from proton.utils import BlockingConnection, LinkDetached

from cogwork.config.password_hash import hash_password

from .basic_clients import basic_channel, taken
from .meshes import linked, meshed
from .rabbitmq_pair import Pair
from .served import OPEN, READY_TIMEOUT_S, Served, served, within
from .trios import EDGES, IDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = f"""{OPEN}
[[user]]
name = "bob"
password_hash = "{hash_password("bob")}"
permissions = [
  {{ address = "queue/bobs", rights = ["manage"] }},
  {{ address = "exchange/news", rights = ["receive"] }},
]
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("rabbitmq"), CONFIGURATION) as running:
        yield running


@pytest.fixture
def pair(container: Served) -> Iterator[Pair]:
    with Pair(container) as asking:
        yield asking


def row(answer: tuple[int, object]) -> dict[str, Any]:
    status, body = answer
    assert status in (200, 201)
    assert isinstance(body, dict)
    return body


def properties_of(connection: BlockingConnection) -> Any:
    assert connection.conn is not None
    return connection.conn.remote_properties


def test_clients_are_told_what_they_look_for(container: Served, pair: Pair) -> None:
    told = properties_of(pair.connection)
    assert told[symbol("product")] == "RabbitMQ"
    assert str(told[symbol("version")]).startswith("4.")
    own = BlockingConnection(container.url, properties={"product": "another"})
    assert properties_of(own)[symbol("product")] == "cogwork"
    own.close()


def test_a_queue_is_declared_shown_and_deleted(container: Served, pair: Pair) -> None:
    wanted = {"durable": True, "arguments": {"x-max-length": 5, "x-queue-type": "classic"}}
    status, made = pair.ask("PUT", "/queues/a%20b%2F1", wanted)
    assert status == 201
    assert isinstance(made, dict)
    assert pair.ask("PUT", "/queues/a%20b%2F1", wanted)[0] == 200
    with basic_channel(container) as channel:
        channel.queue_declare("a b/1", durable=True, arguments=wanted["arguments"])
        channel.basic_publish("", "a b/1", b"x")
    shown = row(pair.ask("GET", "/queues/a%20b%2F1"))
    assert {**shown, "replicas": None} == {
        "name": "a b/1",
        "vhost": "/",
        "type": "classic",
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "arguments": wanted["arguments"],
        "message_count": 1,
        "consumer_count": 0,
        "leader": shown["leader"],
        "replicas": None,
    }
    assert list(shown["replicas"].elements) == [shown["leader"]]
    assert pair.ask("DELETE", "/queues/a%20b%2F1") == (200, {"message_count": 1})
    assert pair.ask("DELETE", "/queues/a%20b%2F1") == (200, {"message_count": 0})
    expected = "queue 'a b/1' in vhost '/' not found"
    assert pair.ask("GET", "/queues/a%20b%2F1") == (404, expected)


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("PUT", "/queues/", {}, (400, "declare queue with empty name not allowed")),
        (
            "PUT",
            "/queues/a%0Ab",
            {},
            (400, "Bad name 'a\nb': line feed and carriage return characters not allowed"),
        ),
        (
            "PUT",
            "/queues/amq.own",
            {},
            (403, "queue 'amq.own' in vhost '/' starts with reserved prefix 'amq.'"),
        ),
        ("PUT", "/queues/q", {"durable": "yes"}, (400, "bad queue property 'durable': 'yes'")),
        ("PUT", "/queues/q", {"passive": True}, (400, "bad queue property 'passive': True")),
        ("PUT", "/queues/q", None, (400, "bad queue property: expected a map, not None")),
        (
            "DELETE",
            "/queues/none/messages",
            None,
            (404, "no queue 'none' in vhost '/'"),
        ),
        ("PUT", "/exchanges/", {}, (403, "operation not permitted on the default exchange")),
        (
            "PUT",
            "/exchanges/amq.own",
            {},
            (403, "exchange 'amq.own' in vhost '/' starts with reserved prefix 'amq.'"),
        ),
        ("PUT", "/exchanges/e", {"type": "odd"}, (400, "unknown exchange type 'odd'")),
        (
            "PUT",
            "/exchanges/amq.direct",
            {"type": "fanout"},
            (
                409,
                "inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': received "
                "'fanout' but current is 'direct'",
            ),
        ),
        (
            "POST",
            "/bindings",
            {"source": "none", "destination_queue": "q", "binding_key": "", "arguments": {}},
            (400, "no exchange 'none' in vhost '/'"),
        ),
        (
            "POST",
            "/bindings",
            {"source": "", "destination_queue": "q", "binding_key": "", "arguments": {}},
            (403, "operation not permitted on the default exchange"),
        ),
        ("DELETE", "/bindings/src=a", None, (400, "bad binding path segment 'src=a'")),
        (
            "GET",
            "/bindings?src=a",
            None,
            (400, "bad query: expected src, key, and one of dstq and dste"),
        ),
        ("GET", "/nowhere", None, (404, "there is nothing at '/nowhere'")),
        ("POST", "/queues/q", None, (400, "bad method 'POST': expected GET or PUT or DELETE")),
    ],
)
def test_what_cannot_be_is_refused_in_rabbitmqs_words(
    pair: Pair, method: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    assert pair.ask(method, path, body) == expected


def test_a_declaration_that_differs_is_refused(container: Served, pair: Pair) -> None:
    with basic_channel(container) as channel:
        channel.queue_declare("differs", durable=True)
    status, text = pair.ask("PUT", "/queues/differs", {"auto_delete": True})
    assert status == 409
    expected = "inequivalent arg 'auto_delete' for queue 'differs' in vhost '/': received 'true'"
    assert str(text).startswith(expected)


def test_messages_go_by_bindings_that_are_shown_and_undone(container: Served, pair: Pair) -> None:
    assert pair.ask("PUT", "/exchanges/e%2F1", {"type": "headers"}) == (204, None)
    assert pair.ask("PUT", "/exchanges/e%2F1", {"type": "headers"}) == (204, None)
    assert pair.ask("PUT", "/queues/bound", {})[0] == 201
    for arguments in ({}, {"x-match": "any", "n": 1}):
        wanted = {
            "source": "e/1",
            "destination_queue": "bound",
            "binding_key": "k 1",
            "arguments": arguments,
        }
        assert pair.ask("POST", "/bindings", wanted) == (204, None)
    where = "/bindings?src=e%2F1&dstq=bound&key=k+1"
    status, found = pair.ask("GET", where)
    assert status == 200
    assert isinstance(found, list)
    assert [each["arguments"] for each in found] == [{}, {"x-match": "any", "n": 1}]
    assert found[0]["location"] == "/bindings/src=e%2F1;dstq=bound;key=k%201;args="
    with basic_channel(container) as channel:
        channel.basic_publish("e/1", "any", b"through")
        assert [body for _, _, body in taken(channel, "bound", 1, auto_ack=True)] == [b"through"]
    for each in found:
        assert pair.ask("DELETE", each["location"]) == (204, None)
        assert pair.ask("DELETE", each["location"]) == (204, None)
    assert pair.ask("GET", where) == (200, [])
    assert pair.ask("DELETE", "/exchanges/e%2F1") == (204, None)
    assert pair.ask("DELETE", "/exchanges/e%2F1") == (204, None)


def test_exchanges_are_bound_to_exchanges(container: Served, pair: Pair) -> None:
    pair.ask("PUT", "/exchanges/from", {"type": "fanout"})
    pair.ask("PUT", "/exchanges/to", {"type": "fanout"})
    wanted = {
        "source": "from",
        "destination_exchange": "to",
        "binding_key": "",
        "arguments": {},
    }
    assert pair.ask("POST", "/bindings", wanted) == (204, None)
    with basic_channel(container) as channel:
        name = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(name, "to")
        channel.basic_publish("from", "", b"x")
        assert [body for _, _, body in taken(channel, name, 1, auto_ack=True)] == [b"x"]
    assert pair.ask("DELETE", "/bindings/src=from;dste=to;key=;args=") == (204, None)
    assert pair.ask("GET", "/bindings?src=from&dste=to&key=") == (200, [])


def test_an_exchange_that_has_gone_has_no_bindings(pair: Pair) -> None:
    assert pair.ask("GET", "/bindings?src=gone&dstq=q&key=k") == (200, [])
    assert pair.ask("DELETE", "/bindings/src=gone;dstq=q;key=k;args=") == (204, None)


def test_a_queue_is_purged(container: Served, pair: Pair) -> None:
    pair.ask("PUT", "/queues/full", {})
    with basic_channel(container) as channel:
        for _ in range(3):
            channel.basic_publish("", "full", b"x")
    within(5, lambda: row(pair.ask("GET", "/queues/full"))["message_count"] == 3, "")
    assert pair.ask("DELETE", "/queues/full/messages") == (200, {"message_count": 3})


def test_an_exclusive_queue_is_its_connections_and_goes_with_it(
    container: Served, pair: Pair
) -> None:
    with Pair(container) as other:
        assert other.ask("PUT", "/queues/mine", {"exclusive": True})[0] == 201
        assert row(other.ask("GET", "/queues/mine"))["exclusive"] is True
        status, text = pair.ask("DELETE", "/queues/mine")
        assert status == 400
        assert "cannot obtain exclusive access to locked queue 'mine'" in str(text)
    within(5, lambda: pair.ask("GET", "/queues/mine")[0] == 404, "the queue goes")


def test_requests_that_are_sent_together_are_carried_out_in_order(pair: Pair) -> None:
    numbers = []
    for at in range(150):
        numbers.append(pair.send("PUT", f"/queues/many{at % 3}", {}))
        numbers.append(pair.send("DELETE", f"/queues/many{at % 3}"))
    found = [pair.receive() for _ in numbers]
    assert [number for number, _, _ in found] == numbers
    assert [status for _, status, _ in found] == [201, 200] * 150


def test_permissions_are_those_of_amqp_091(container: Served) -> None:
    url = container.url.replace("://", "://bob:bob@")
    with Pair(Served(url, container.process)) as bob:
        assert bob.ask("PUT", "/queues/bobs", {})[0] == 201
        status, text = bob.ask("PUT", "/queues/another", {})
        assert (status, text) == (
            403,
            "configure access to queue 'another' in vhost '/' refused for user 'bob'",
        )
        status, text = bob.ask("GET", "/queues/another")
        assert status == 403
        status, text = bob.ask("DELETE", "/queues/bobs/messages")
        assert (status, text) == (
            403,
            "read access to queue 'bobs' in vhost '/' refused for user 'bob'",
        )


def test_a_request_without_a_link_for_its_answer_ends_the_link(container: Served) -> None:
    with Pair(container) as alone:
        alone.answers.close()
        alone.send("GET", "/queues/a")
        with pytest.raises(LinkDetached, match="paired link"):
            alone.connection.wait(lambda: False, timeout=5)


def test_a_request_has_to_say_where_its_answer_goes(pair: Pair) -> None:
    pair.send("GET", "/queues/a", reply_to="elsewhere")
    _, status, why = pair.receive()
    assert (status, why) == (400, "reply-to is 'elsewhere': expected '$me', the paired link")


def test_streams_are_queues(pair: Pair) -> None:
    wanted = {"arguments": {"x-queue-type": "stream", "x-max-length-bytes": 1_000_000}}
    assert pair.ask("PUT", "/queues/log", wanted)[0] == 201
    assert pair.ask("PUT", "/queues/log", wanted)[0] == 200
    sender = pair.connection.create_sender("/queues/log")
    for text in ("a", "b", "c"):
        sender.send(Message(text))
    sender.close()
    shown = row(pair.ask("GET", "/queues/log"))
    assert (shown["type"], shown["message_count"]) == ("stream", 3)
    expected = "purge not supported by queue 'log' in vhost '/'"
    assert pair.ask("DELETE", "/queues/log/messages") == (400, expected)
    status, why = pair.ask("PUT", "/queues/log", {})
    assert status == 409
    assert "inequivalent arg 'x-queue-type'" in str(why)
    assert pair.ask("DELETE", "/queues/log") == (200, {"message_count": 3})


def test_what_is_declared_at_one_container_is_there_at_all(tmp_path: Path) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as members:
        linked(members.values())
        for each in members.values():
            within(READY_TIMEOUT_S, each.has_levels, "the feature level rises")
        with Pair(members["a"].served) as a, Pair(members["b"].served) as b:
            assert a.ask("PUT", "/queues/q", {})[0] == 201
            assert a.ask("PUT", "/exchanges/e", {}) == (204, None)
            wanted = {
                "source": "e",
                "destination_queue": "q",
                "binding_key": "k",
                "arguments": {},
            }
            assert b.ask("POST", "/bindings", wanted) == (204, None)
            assert b.ask("PUT", "/queues/q", {})[0] == 200
            with basic_channel(members["c"].served) as channel:
                channel.confirm_delivery()
                channel.basic_publish("e", "k", b"x")
            assert row(a.ask("GET", "/queues/q"))["message_count"] == 1
            assert b.ask("DELETE", "/queues/q/messages") == (200, {"message_count": 1})
            assert b.ask("DELETE", "/queues/q")[0] == 200
            assert a.ask("GET", "/queues/q")[0] == 404
