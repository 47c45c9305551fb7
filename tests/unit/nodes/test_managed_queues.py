"""Queues by `$management`: made, looked at, emptied, moved, given other holders."""

from __future__ import annotations

import pytest
from management_world import Asker, ItemTable, World, status, text, value

from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.plugin.management import ManagementError


def test_a_new_queue_is_201_and_one_that_is_there_200(world: World) -> None:
    options = {"maximum_length": 5}
    assert status(world.ask(options, operation="CREATE", type="queue", name="queue/new")) == 201
    assert status(world.ask(options, operation="CREATE", type="queue", name="queue/a")) == 200
    assert world.container.done[0] == ("declare", "queue/new", options)


def test_no_queue_is_declared_as_its_own_dead_letter_address(world: World) -> None:
    asked = {"operation": "CREATE", "type": "queue", "name": "queue/a"}
    reply = world.ask({"dead_letter": "/queue/a"}, **asked)
    assert (status(reply), world.container.done) == (400, [])
    assert "the queue's own address" in text(reply)


def test_peeking_leaves_the_items(world: World) -> None:
    world.container.queues = {"queue/a": ItemTable(*(b"%d" % number for number in range(30)))}
    found = value(world.ask(operation="PEEK", type="queue", name="queue/a", count=25, index=2))
    assert [item["message"] for item in found] == [b"%d" % number for number in range(2, 27)]
    assert found[0]["state"] == "ready"
    assert len(world.container.queues["queue/a"].messages) == 30


def test_purging_says_how_many(world: World) -> None:
    world.container.queues = {"queue/a": ItemTable(*([b"x"] * 25_000))}
    assert value(world.ask(operation="PURGE", type="queue", name="queue/a")) == {"purged": 25_000}


def mover(world: World) -> None:
    world.container.asker = Asker(("manage", "$management"), ("send", "queue/b"))


def test_items_move_in_order_and_no_more_than_asked(world: World) -> None:
    mover(world)
    world.container.queues = {
        "queue/a": ItemTable(*(b"%d" % n for n in range(250))),
        "queue/b": ItemTable(),
    }
    asked = {"operation": "MOVE", "type": "queue", "name": "queue/a", "target": "queue/b"}
    assert value(world.ask(**asked, count=201))["moved"] == 201
    assert world.container.queues["queue/b"].messages == [b"%d" % n for n in range(201)]
    assert len(world.container.queues["queue/a"].messages) == 49


def test_what_the_target_refuses_goes_back(world: World) -> None:
    mover(world)
    world.container.accepts = False
    world.container.queues = {"queue/a": ItemTable(*([b"x"] * 150)), "queue/b": ItemTable()}
    asked = {"operation": "MOVE", "type": "queue", "name": "queue/a", "target": "queue/b"}
    assert value(world.ask(**asked)) == {"moved": 0, "refused": 150, "unconfirmed": 0}
    assert len(world.container.queues["queue/a"].messages) == 150


def test_outcomes_of_the_same_turn_are_not_waited_for(world: World) -> None:
    mover(world)
    world.container.answers_at_once = False
    world.container.queues = {"queue/a": ItemTable(*([b"x"] * 1000)), "queue/b": ItemTable()}
    world.send(1, operation="MOVE", type="queue", name="queue/a", target="queue/b")
    world.core.flush()
    while world.container.later:
        pending, world.container.pending = world.container.pending, []
        for outcome in pending:
            outcome(accepted=True)
        world.work(turns=1)
    assert value(world.replies[1])["moved"] == 1000, "without a tick"


def test_an_outcome_that_comes_late_still_counts(world: World) -> None:
    mover(world)
    world.container.answers_at_once = False
    world.container.queues = {"queue/a": ItemTable(b"x", b"y"), "queue/b": ItemTable()}
    world.send(1, operation="MOVE", type="queue", name="queue/a", target="queue/b")
    world.work()
    assert world.replies == {}, "it waits for the outcomes"
    for _ in range(100):
        world.node.tick(0.0)
        world.work()
    assert value(world.replies[1]) == {"moved": 0, "refused": 0, "unconfirmed": 2}
    accepted, refused = world.container.pending
    accepted(accepted=True)
    refused(accepted=False)
    assert world.container.queues["queue/a"].messages == [b"y"]


@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        ("topic/a", 404, "no queue, or not declared yet"),
        ("queue/a", 400, "both the queue and the target"),
    ],
)
def test_items_move_to_another_queue_only(world: World, target: str, code: int, says: str) -> None:
    world.container.asker = Asker(("manage", "$management"), ("send", target))
    world.container.queues = {"queue/a": ItemTable(b"x")}
    reply = world.ask(operation="MOVE", type="queue", name="queue/a", target=target)
    assert status(reply) == code
    assert says in text(reply)


def test_the_dead_go_back_where_they_came_from(world: World) -> None:
    world.container.asker = Asker(
        ("manage", "$management"), ("send", "queue/a"), ("send", "queue/b")
    )
    world.container.queues = {
        "queue/a": ItemTable(),
        "queue/b": ItemTable(),
        "queue/dead": ItemTable(b"queue/a<one", b"queue/b<two", b"who?", b"queue/c<no right"),
    }
    found = value(world.ask(operation="REDRIVE", type="queue", name="queue/dead"))
    assert found == {"moved": 2, "refused": 2, "unconfirmed": 0, "strangers": 1}
    assert world.container.queues["queue/a"].messages == [b"one"]
    assert world.container.queues["queue/b"].messages == [b"two"]
    assert world.container.queues["queue/dead"].messages == [b"who?", b"queue/c<no right"]


def test_a_queue_gets_other_holders(world: World) -> None:
    asked = {"operation": "RELOCATE", "type": "queue", "name": "queue/a"}
    reply = world.ask({"replicas": ["b", "c"], "learners": ["d"]}, **asked)
    assert (status(reply), value(reply)) == (202, {"name": "queue/a", "size": 7})
    assert status(world.ask({"replicas": ["c"]}, **asked)) == 202
    assert world.container.done == [
        ("relocate", "queue/a", ["b", "c"], ["d"]),
        ("relocate", "queue/a", ["c"], []),
    ]


@pytest.mark.parametrize(
    ("body", "trouble", "expected", "says"),
    [
        ({}, None, 400, "RELOCATE needs replicas"),
        ({"replicas": []}, None, 400, "RELOCATE needs replicas"),
        ({"replicas": "b"}, None, 400, "replicas is a list of strings"),
        ({"replicas": ["b"], "learners": [7]}, None, 400, "learners is a list of strings"),
        ({"replicas": ["b"]}, ValueError("b has no room"), 400, "b has no room"),
        ({"replicas": ["b"]}, Unavailable("no majority"), 503, "no majority"),
        ({"replicas": ["b"]}, ManagementError(404, "no queue"), 404, "no queue"),
    ],
)
def test_why_a_queue_gets_no_other_holders(
    world: World, body: dict[str, object], trouble: Exception | None, expected: int, says: str
) -> None:
    world.container.trouble = trouble
    reply = world.ask(body, operation="RELOCATE", type="queue", name="queue/a")
    assert status(reply) == expected
    assert says in text(reply)
    assert world.container.done == []


@pytest.mark.parametrize(
    ("trouble", "expected", "says"),
    [
        (None, 404, "there is no queue 'queue/z'"),
        (Unavailable("b is away"), 503, "'queue/z' is not deleted: b is away; delete it again"),
        (
            Unknown("b is silent"),
            503,
            "not known whether 'queue/z' is deleted, or will be: b",
        ),
    ],
)
def test_why_a_queue_of_the_cluster_is_not_deleted(
    world: World, trouble: Exception | None, expected: int, says: str
) -> None:
    world.container.trouble = trouble
    reply = world.ask(operation="DELETE", type="queue", name="queue/z")
    assert status(reply) == expected
    assert says in text(reply)
