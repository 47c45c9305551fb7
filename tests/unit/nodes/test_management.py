"""`$management` without a container: requests are answered, or it is said why not."""

from __future__ import annotations

from typing import Any, cast

import pytest
from management_world import (
    ACCEPTED,
    REJECTED,
    RELEASED,
    Asker,
    FakeContainer,
    ItemTable,
    World,
    status,
    text,
    value,
)

from cogwork.amqp.message import Properties, Sections, encode_sections
from cogwork.dataplane.core import Core
from cogwork.nodes.management import ManagementNode
from cogwork.nodes.management.node import REQUEST_SIZE_BYTES_MAX, TURN_COST_MAX, WAITING_MAX
from cogwork.plugin.node import NodeContext, Refused


def test_a_request_is_answered_and_accepted(world: World) -> None:
    reply = world.ask(operation="READ", type="container")
    assert (status(reply), value(reply)) == (200, {"name": "box", "size": 3, "type": "container"})
    assert world.outcomes == {99: (ACCEPTED, None)}


def test_a_reply_carries_the_correlation_id_before_the_message_id(world: World) -> None:
    message = Sections(
        properties=Properties(message_id=1, correlation_id="mine", reply_to="here"),
        application_properties={"operation": "GET-MGMT-NODES"},
    )
    world.send_raw(1, encode_sections(message))
    world.work()
    assert value(world.replies["mine"]) == ["$management"]


@pytest.mark.parametrize(
    ("asked", "expected", "says"),
    [
        ({}, 400, "type is missing; one of container, connection"),
        ({"type": "tomato"}, 400, "type is 'tomato'; one of"),
        ({"type": "link"}, 501, "'no operation' for a link: there are DELETE, DETACH"),
        ({"type": "link", "operation": "PAINT"}, 501, "'PAINT' for a link"),
        ({"type": "link", "operation": "READ"}, 400, "application-property name: which link?"),
        ({"type": "link", "operation": "READ", "name": "-"}, 404, "there is no link '-'"),
        ({"type": "link", "operation": "QUERY", "index": -1}, 400, "from 0, not -1"),
        ({"type": "link", "operation": "QUERY", "count": "x"}, 400, "from 1, not 'x'"),
        ({"type": "connection", "operation": "CLOSE", "name": "7"}, 404, "no connection '7'"),
        ({"type": "queue", "operation": "PURGE", "name": "q"}, 404, "there is no queue 'q'"),
        ({"operation": "SUBSCRIBE", "name": "l"}, 400, "SUBSCRIBE needs pattern, a string"),
        ({"operation": "UNSUBSCRIBE", "name": "l", "pattern": "p"}, 404, "no link l"),
    ],
)
def test_a_wrong_request_is_told_what_would_be_right(
    world: World, asked: dict[str, object], expected: int, says: str
) -> None:
    reply = world.ask(**asked)
    assert status(reply) == expected
    assert says in text(reply)


def test_attributes_that_are_not_there_are_named(world: World) -> None:
    reply = world.ask({"attributeNames": ["name", "colour"]}, operation="QUERY", type="link")
    assert status(reply) == 400
    assert "a link has no attribute 'colour': there are name, size" in text(reply)


def test_queries_come_in_pages(world: World) -> None:
    names: list[str] = []
    while True:
        reply = world.ask(
            {"attributeNames": ["name"]}, operation="QUERY", type="link", index=len(names)
        )
        page = value(reply)
        assert page["attributeNames"] == ["name"]
        names += [name for (name,) in page["results"]]
        assert reply.application_properties is not None
        assert reply.application_properties["count"] == len(page["results"])
        if len(names) == reply.application_properties["total"]:
            break
    assert names == world.container.collections["link"].names


def test_a_turn_is_short_however_many_ask(world: World) -> None:
    for number in range(100):
        world.send(number, operation="QUERY", type="link")
    world.core.flush()
    first = len(world.order)
    assert 0 < first < TURN_COST_MAX
    assert len(world.container.later) == 1, "it asked for one more turn"
    world.work()
    assert world.order == list(range(100))


def test_what_takes_long_is_overtaken(world: World) -> None:
    world.container.queues = {"queue/a": ItemTable(*([b"x"] * 1000)), "queue/b": ItemTable()}
    world.container.asker = Asker(("manage", "$management"), ("send", "queue/b"))
    world.send(1, operation="MOVE", type="queue", name="queue/a", target="queue/b")
    world.send(2, operation="GET-TYPES")
    world.work()
    assert world.order == [2, 1]
    assert value(world.replies[1]) == {"moved": 1000, "refused": 0, "unconfirmed": 0}


# -- who may


@pytest.mark.parametrize(("identity", "expected"), [(None, 401), ("bob", 403)])
@pytest.mark.parametrize(
    "asked",
    [
        {"type": "container", "operation": "READ"},
        {"type": "link", "operation": "QUERY"},
        {"type": "connection", "operation": "CLOSE", "name": "1"},
        {"type": "link", "operation": "DETACH", "name": "1"},
        {"type": "queue", "operation": "PURGE", "name": "queue/a"},
        {"type": "queue", "operation": "CREATE", "name": "queue/a"},
        {"type": "queue", "operation": "DELETE", "name": "queue/a"},
        {"type": "queue", "operation": "PEEK", "name": "queue/a"},
        {"type": "queue", "operation": "MOVE", "name": "queue/a", "target": "queue/b"},
        {"type": "queue", "operation": "REDRIVE", "name": "queue/a"},
        {"type": "queue", "operation": "RELOCATE", "name": "queue/a"},
        {"type": "org.cogwork.link", "operation": "QUERY"},
        {"type": "org.cogwork.link", "operation": "CREATE", "name": "there:2"},
        {"type": "org.cogwork.link", "operation": "DELETE", "name": "here:1"},
        {"type": "org.cogwork.mesh", "operation": "READ"},
    ],
)
def test_who_may_not_manage_is_refused(
    world: World, asked: dict[str, object], identity: str | None, expected: int
) -> None:
    world.container.queues = {"queue/a": ItemTable(b"x")}
    world.container.asker = Asker(("send", "queue/b"), identity=identity)
    reply = world.ask(**asked)
    assert status(reply) == expected
    assert "no permission to manage" in text(reply)
    assert world.container.done == []
    assert world.container.mesh.costs == {}
    assert world.container.queues["queue/a"].messages == [b"x"]


def test_who_manages_one_queue_sees_that_one(world: World) -> None:
    world.container.asker = Asker(("manage", "queue/b"))
    page = value(world.ask(operation="QUERY", type="queue"))
    assert page["results"] == [["queue/b", 7]]
    assert status(world.ask(operation="READ", type="queue", name="queue/b")) == 200
    assert status(world.ask(operation="READ", type="queue", name="queue/a")) == 403


def test_moving_needs_the_right_to_send(world: World) -> None:
    world.container.queues = {"queue/a": ItemTable(b"x"), "queue/b": ItemTable()}
    world.container.asker = Asker(("manage", "queue/a"))
    reply = world.ask(operation="MOVE", type="queue", name="queue/a", target="queue/b")
    assert (status(reply), text(reply)) == (403, "no permission to send at 'queue/b'")


def test_a_dead_letter_address_needs_the_right_to_send(world: World) -> None:
    asked = {"operation": "CREATE", "type": "queue", "name": "queue/new"}
    options = {"dead_letter": "queue/secret"}
    world.container.asker = Asker(("manage", "queue/new"))
    reply = world.ask(options, **asked)
    assert (status(reply), text(reply)) == (403, "no permission to send at 'queue/secret'")
    assert world.container.done == []
    world.container.asker.rights.add(("send", "queue/secret"))
    assert status(world.ask(options, **asked)) == 201


def test_a_capture_needs_the_right_to_receive(world: World) -> None:
    asked = {"operation": "CREATE", "type": "stream", "name": "stream/mine", "capture": "topic/a"}
    options = {"capture": ["topic/a", "topic/secret.#"]}
    world.container.asker = Asker(("manage", "stream/mine"), ("receive", "topic/a"))
    reply = world.ask(options, **asked)
    assert (status(reply), text(reply)) == (403, "no permission to receive at 'topic/secret.#'")


def test_patterns_change_without_the_right_to_manage(world: World) -> None:
    world.container.asker = Asker()
    reply = world.ask(operation="SUBSCRIBE", name="mine", pattern="topic/a.#")
    assert value(reply) == {"changed": True}
    assert world.container.done == [("bind", "mine", "topic/a.#")]


# -- what cannot be answered


def test_without_reply_to_the_outcome_says_why(world: World) -> None:
    world.send(1, reply_to=None, operation="READ", type="container")
    world.work()
    code, state = world.outcomes[1]
    assert code == REJECTED
    assert b"reply-to" in (state or b"")
    assert world.replies == {}


def test_of_a_request_is_read_what_it_asks(world: World) -> None:
    asked = Sections(
        properties=Properties(message_id=1, reply_to="here"),
        application_properties={"operation": "READ", "type": "container"},
    )
    unreadable = b"\x00\x53\x72\xc1\x05\x02\xa3\x01\xff\x40"
    world.send_raw(1, unreadable + encode_sections(asked))
    world.work()
    assert status(world.replies[1]) == 200


def test_a_reply_that_may_not_be_sent_is_not(world: World) -> None:
    assert world.container.asker is not None
    world.container.asker.takes_replies = False
    world.send(1, operation="READ", type="container")
    world.work()
    assert world.outcomes[1][0] == REJECTED
    assert world.replies == {}


@pytest.mark.parametrize("message", [b"\x00", b"\x00\x53\x73\x45\x00", b"tomato"])
def test_bytes_that_are_no_message_are_rejected(world: World, message: bytes) -> None:
    world.send_raw(1, message)
    world.work()
    assert world.outcomes[1][0] == REJECTED
    assert status(world.ask(operation="READ", type="container")) == 200


def test_a_huge_request_is_rejected_unread(world: World) -> None:
    world.send_raw(1, b"\x00" * (REQUEST_SIZE_BYTES_MAX + 1))
    world.work()
    assert world.outcomes[1][0] == REJECTED


def test_the_line_is_not_endless(world: World) -> None:
    for number in range(WAITING_MAX + 50):
        world.send(number, operation="QUERY", type="link")
    world.core.flush()
    assert RELEASED in {code for code, _ in world.outcomes.values()}
    assert world.node.status()["waiting"] == WAITING_MAX - len(world.order)


def test_a_fault_of_ours_is_answered_and_told(world: World) -> None:
    faults: list[Exception] = []
    world.core.on_error = lambda port, error: faults.append(error)
    world.container.collections["link"].find = cast("Any", lambda name: 1 / 0)  # type: ignore[method-assign]  # it fails
    world.send(1, operation="READ", type="link", name="1")
    world.send(2, operation="GET-TYPES")
    world.work()
    assert status(world.replies[1]) == 500
    assert status(world.replies[2]) == 200, "the next one is answered all the same"
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


def test_only_the_address_itself_is_management() -> None:
    core = Core()
    for address, container in (("$management/x", FakeContainer()), ("$management", None)):
        context = NodeContext(
            core, address, False, {}, "box", lambda effects: None, cast("Any", container)
        )
        with pytest.raises(Refused):
            ManagementNode(context)


def test_nothing_is_received_from_it(world: World) -> None:
    with pytest.raises(Refused, match="reply-to"):
        world.node.subscribe(type("Subscription", (), {"address": "$management"})())


def test_closing_forgets_what_waits(world: World) -> None:
    for number in range(100):
        world.send(number, operation="QUERY", type="link")
    world.core.flush()
    world.node.close()
    assert world.node.status()["waiting"] == 0


def test_what_is_denied_is_denied_to_the_operator_too(world: World) -> None:
    assert isinstance(world.container.asker, Asker)
    assert status(world.ask(operation="PURGE", type="queue", name="queue/a")) != 403
    world.container.asker.denied = {("manage", "queue/a")}
    assert status(world.ask(operation="PURGE", type="queue", name="queue/a")) == 403
    assert status(world.ask(operation="PURGE", type="queue", name="queue/b")) != 403


def test_all_connections_of_a_user_are_closed(world: World) -> None:
    body = {"reason": "on leave"}
    reply = world.ask(operation="DISCONNECT", type="connection", name="ann", body=body)
    assert value(reply) == {"closed": 2}
    assert world.container.done == [("disconnect", "ann", "on leave")]
    world.container.asker = Asker(("manage", "queue/a"))
    assert status(world.ask(operation="DISCONNECT", type="connection", name="ann")) == 403
