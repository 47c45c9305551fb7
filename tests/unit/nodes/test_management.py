"""`$management` without a container: requests go in, replies come out, nothing else moves."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from cogwork.amqp.errors import Condition
from cogwork.amqp.message import Properties, Sections, Value, decode_sections, encode_sections
from cogwork.consensus.errors import Unavailable
from cogwork.dataplane.core import Core
from cogwork.dataplane.port import Port
from cogwork.nodes.management import ManagementNode
from cogwork.nodes.management.node import REQUEST_SIZE_BYTES_MAX, TURN_COST_MAX, WAITING_MAX
from cogwork.spi.effects import Effect, Send
from cogwork.spi.management import ManagementError, OnOutcome, Row
from cogwork.spi.node import NodeContext, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from cogwork.dataplane.terminus import Terminus
    from cogwork.spi.mesh import LinkRow

Plain: TypeAlias = Any

ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26


class Asker:
    """A requester that may do what it is told it may."""

    def __init__(self, *rights: tuple[str, str], identity: str | None = "ann") -> None:
        self.identity = identity
        self.rights = set(rights)
        self.takes_replies = True

    def may(self, right: str, address: str) -> bool:
        return (right, address) in self.rights

    def takes_reply(self, address: str) -> bool:
        return self.takes_replies


class Table:
    """A collection of so many rows."""

    attributes = ("name", "size")

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def rows(
        self, index: int, count: int, sees: Callable[[str], bool] | None = None
    ) -> Iterator[Row]:
        names = [name for name in self.names if sees is None or sees(name)]
        return ({"name": name, "size": len(name)} for name in names[index : index + count])

    def find(self, name: str) -> Row | None:
        return {"name": name, "size": len(name)} if name in self.names else None


class Shelf:
    """A queue that is a list."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = list(messages)
        self.aside: dict[int, bytes] = {}
        self.count = 0

    def peek(self, count: int, offset: int = 0) -> Sequence[tuple[bytes, Mapping[str, object]]]:
        return [(message, {"state": "ready"}) for message in self.messages][offset:][:count]

    def purge(self, count: int) -> int:
        return len(self.take_ready(count))

    def take_ready(self, count: int) -> Sequence[tuple[int, bytes]]:
        taken, self.messages = self.messages[:count], self.messages[count:]
        numbered = list(enumerate(taken, self.count))
        self.count += len(taken)
        self.aside.update(numbered)
        return numbered

    def moved(self, number: int) -> None:
        del self.aside[number]

    def put_back(self, number: int) -> None:
        self.messages.append(self.aside.pop(number))

    def routed_back(self, message: bytes) -> tuple[str | None, bytes]:
        """A dead letter is written `origin<body` here."""
        origin, mark, body = message.decode().partition("<")
        return (origin, body.encode()) if mark else (None, message)


class Neighbours:
    """A mesh that is a table of URLs with costs."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.costs: dict[str, int] = {}

    def links(self) -> Sequence[LinkRow]:
        return ()

    def add_link(self, url: str, cost: int) -> None:
        if ":" not in url:
            raise Refused(f"found {url}, expected HOST:PORT", Condition.INVALID_FIELD)
        if url in self._table.names:
            raise Refused(f"{url} is linked already")
        self.costs[url] = cost
        self._table.names.append(url)

    def remove_link(self, url: str) -> None:
        del self.costs[url]

    def snapshot(self) -> dict[str, object]:
        return {"id": "box"}


class FakeContainer:
    """What the node sees of a container."""

    def __init__(self, *, is_default: bool = True) -> None:
        self.asker: Asker | None = Asker(("manage", "$management"))
        self.later: list[Callable[[], None]] = []
        self.queues: dict[str, Shelf] = {}
        self.accepts = True
        self.done: list[tuple[object, ...]] = []
        self.pending: list[OnOutcome] = []
        self.answers_at_once = True
        self.trouble: Exception | None = None
        self.collections = {
            "container": Table(["box"]),
            "connection": Table(["1", "2"]),
            "session": Table([]),
            "link": Table([str(number) for number in range(1000)]),
            "address": Table(["queue/a", "queue/b"]),
            "queue": Table(["queue/a", "queue/b"]),
            "node": Table([]),
        }
        links = Table(["here:1"])
        if is_default:
            self.collections |= {"org.cogwork.link": links, "org.cogwork.mesh": Table(["box"])}
        self.mesh = Neighbours(links)

    def requester(self, source: Terminus | None) -> Asker | None:
        return self.asker

    def soon(self, step: Callable[[], None]) -> None:
        self.later.append(step)

    def close_connection(self, name: str, reason: str) -> bool:
        self.done.append(("close", name, reason))
        return name in self.collections["connection"].names

    def detach_link(self, name: str, reason: str) -> bool:
        self.done.append(("detach", name, reason))
        return name in self.collections["link"].names

    def bind(self, requester: object, link: str, pattern: str) -> bool:
        self.done.append(("bind", link, pattern))
        return True

    def unbind(self, requester: object, link: str, pattern: str) -> bool:
        raise ManagementError(404, f"no link {link}")

    def queue(self, address: str) -> Shelf | None:
        return self.queues.get(address)

    def declare_queue(self, address: str, options: Mapping[str, object]) -> bool:
        self.done.append(("declare", address, dict(options)))
        return address not in self.collections["queue"].names

    def delete_queue(self, address: str) -> bool:
        return self.queues.pop(address, None) is not None

    async def relocate_queue(
        self, address: str, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append(("relocate", address, [*voters], [*learners]))

    def begin(self, work: Coroutine[object, object, object]) -> Future[object]:
        done: Future[object] = Future()
        try:
            done.set_result(asyncio.run(work))
        except Exception as error:
            done.set_exception(error)
        return done

    def send(self, address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        if address not in self.queues:
            return False
        if not self.answers_at_once:
            self.pending.append(on_outcome)
            return True
        if self.accepts:
            self.queues[address].messages.append(message)
        on_outcome(accepted=self.accepts)
        return True


class World:
    """A management node, and what stands around it."""

    def __init__(self, container: FakeContainer | None = None) -> None:
        self.core = Core()
        self.container = container or FakeContainer()
        self.replies: dict[object, Sections] = {}
        self.order: list[object] = []
        self.outcomes: dict[int, tuple[int, bytes | None]] = {}
        self._port = Port(self.core, self)
        self.node = ManagementNode(
            NodeContext(
                core=self.core,
                address="$management",
                is_prefix=False,
                options={},
                container_id="box",
                emit=self._emit,
                container=self.container,
            )
        )

    def _emit(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Send)
            reply = decode_sections(effect.message)
            assert reply.properties is not None
            self.replies[reply.properties.correlation_id] = reply
            self.order.append(reply.properties.correlation_id)

    def on_batch(self, port: Port) -> None:
        outcomes, port.outcomes = port.outcomes, []
        self.outcomes |= {token: (code, state) for token, code, state, _ in outcomes}

    def send_raw(self, token: int, message: bytes, *, settled: bool = False) -> None:
        self.node.entry("$management").send(self._port, token, message, settled)

    def send(
        self, token: int, body: object = None, reply_to: str | None = "here", **asked: Plain
    ) -> None:
        """Sends a request without letting it be worked on yet."""
        message = Sections(
            properties=Properties(message_id=token, reply_to=reply_to),
            application_properties=asked,
            body=Value(body),
        )
        self.send_raw(token, encode_sections(message))

    def ask(self, body: object = None, **asked: Plain) -> Sections:
        """Sends one request and works until it is answered."""
        self.send(99, body, **asked)
        self.work()
        return self.replies[99]

    def work(self, turns: int = 1000) -> None:
        """Lets the node have turns for as long as it wants them."""
        self.core.flush()
        while self.container.later and turns:
            turns -= 1
            steps, self.container.later = self.container.later, []
            for step in steps:
                step()
            self.core.flush()


@pytest.fixture
def world() -> World:
    return World()


def status(reply: Sections) -> int:
    assert reply.application_properties is not None
    return int(str(reply.application_properties["statusCode"]))


def text(reply: Sections) -> str:
    assert reply.application_properties is not None
    return str(reply.application_properties["statusDescription"])


def value(reply: Sections) -> Plain:
    assert isinstance(reply.body, Value), text(reply)
    return reply.body.value


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
    world.container.queues = {"queue/a": Shelf(*([b"x"] * 1000)), "queue/b": Shelf()}
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
    world.container.queues = {"queue/a": Shelf(b"x")}
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
    world.container.queues = {"queue/a": Shelf(b"x"), "queue/b": Shelf()}
    world.container.asker = Asker(("manage", "queue/a"))
    reply = world.ask(operation="MOVE", type="queue", name="queue/a", target="queue/b")
    assert (status(reply), text(reply)) == (403, "no permission to send at 'queue/b'")


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
    world.container.collections["link"].find = lambda name: 1 / 0  # type: ignore[method-assign]  # it fails
    world.send(1, operation="READ", type="link", name="1")
    world.send(2, operation="GET-TYPES")
    world.work()
    assert status(world.replies[1]) == 500
    assert status(world.replies[2]) == 200, "the next one is answered all the same"
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


# -- queues


def test_a_new_queue_is_201_and_one_that_is_there_200(world: World) -> None:
    options = {"maximum_length": 5}
    assert status(world.ask(options, operation="CREATE", type="queue", name="queue/new")) == 201
    assert status(world.ask(options, operation="CREATE", type="queue", name="queue/a")) == 200
    assert world.container.done[0] == ("declare", "queue/new", options)


def test_peeking_leaves_the_items(world: World) -> None:
    world.container.queues = {"queue/a": Shelf(*(b"%d" % number for number in range(30)))}
    found = value(world.ask(operation="PEEK", type="queue", name="queue/a", count=25, index=2))
    assert [item["message"] for item in found] == [b"%d" % number for number in range(2, 27)]
    assert found[0]["state"] == "ready"
    assert len(world.container.queues["queue/a"].messages) == 30


def test_purging_says_how_many(world: World) -> None:
    world.container.queues = {"queue/a": Shelf(*([b"x"] * 25_000))}
    assert value(world.ask(operation="PURGE", type="queue", name="queue/a")) == {"purged": 25_000}


def mover(world: World) -> None:
    world.container.asker = Asker(("manage", "$management"), ("send", "queue/b"))


def test_items_move_in_order_and_no_more_than_asked(world: World) -> None:
    mover(world)
    world.container.queues = {
        "queue/a": Shelf(*(b"%d" % n for n in range(250))),
        "queue/b": Shelf(),
    }
    asked = {"operation": "MOVE", "type": "queue", "name": "queue/a", "target": "queue/b"}
    assert value(world.ask(**asked, count=201))["moved"] == 201
    assert world.container.queues["queue/b"].messages == [b"%d" % n for n in range(201)]
    assert len(world.container.queues["queue/a"].messages) == 49


def test_what_the_target_refuses_goes_back(world: World) -> None:
    mover(world)
    world.container.accepts = False
    world.container.queues = {"queue/a": Shelf(*([b"x"] * 150)), "queue/b": Shelf()}
    asked = {"operation": "MOVE", "type": "queue", "name": "queue/a", "target": "queue/b"}
    assert value(world.ask(**asked)) == {"moved": 0, "refused": 150, "unconfirmed": 0}
    assert len(world.container.queues["queue/a"].messages) == 150


def test_outcomes_of_the_same_turn_are_not_waited_for(world: World) -> None:
    mover(world)
    world.container.answers_at_once = False
    world.container.queues = {"queue/a": Shelf(*([b"x"] * 1000)), "queue/b": Shelf()}
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
    world.container.queues = {"queue/a": Shelf(b"x", b"y"), "queue/b": Shelf()}
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
    ("target", "says"),
    [("topic/a", "no queue, or not declared yet"), ("queue/a", "both the queue and the target")],
)
def test_items_move_to_another_queue_only(world: World, target: str, says: str) -> None:
    world.container.asker = Asker(("manage", "$management"), ("send", target))
    world.container.queues = {"queue/a": Shelf(b"x")}
    reply = world.ask(operation="MOVE", type="queue", name="queue/a", target=target)
    assert status(reply) == 400
    assert says in text(reply)


def test_the_dead_go_back_where_they_came_from(world: World) -> None:
    world.container.asker = Asker(
        ("manage", "$management"), ("send", "queue/a"), ("send", "queue/b")
    )
    world.container.queues = {
        "queue/a": Shelf(),
        "queue/b": Shelf(),
        "queue/dead": Shelf(b"queue/a<one", b"queue/b<two", b"who?", b"queue/c<no right"),
    }
    found = value(world.ask(operation="REDRIVE", type="queue", name="queue/dead"))
    assert found == {"moved": 2, "refused": 2, "unconfirmed": 0}
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


def test_only_the_address_itself_is_management() -> None:
    core = Core()
    for address, container in (("$management/x", FakeContainer()), ("$management", None)):
        context = NodeContext(core, address, False, {}, "box", lambda effects: None, container)
        with pytest.raises(Refused):
            ManagementNode(context)


def test_nothing_is_received_from_it(world: World) -> None:
    with pytest.raises(Refused, match="reply-to"):
        world.node.subscribe(type("Subscription", (), {"address": "$management"})())  # type: ignore[arg-type]  # a fake


def test_closing_forgets_what_waits(world: World) -> None:
    for number in range(100):
        world.send(number, operation="QUERY", type="link")
    world.core.flush()
    world.node.close()
    assert world.node.status()["waiting"] == 0


# -- the mesh


def test_a_link_is_made_with_its_cost_and_given_up(world: World) -> None:
    asked = {"type": "org.cogwork.link", "name": "there:2"}
    reply = world.ask(**asked, operation="CREATE", cost=7)
    assert (status(reply), value(reply)["name"]) == (201, "there:2")
    assert world.container.mesh.costs == {"there:2": 7}
    page = value(world.ask(operation="QUERY", type="org.cogwork.link"))
    assert page["results"] == [["here:1", 6], ["there:2", 7]]
    assert status(world.ask(**asked, operation="DELETE")) == 204
    assert world.container.mesh.costs == {}


@pytest.mark.parametrize(
    ("asked", "expected", "says"),
    [
        ({"operation": "CREATE", "name": "here:1"}, 409, "here:1 is linked already"),
        ({"operation": "CREATE", "name": "nowhere"}, 400, "found nowhere, expected HOST:PORT"),
        ({"operation": "CREATE", "name": "a:1", "cost": 0}, 400, "cost is a whole number from 1"),
        ({"operation": "CREATE"}, 400, "application-property name"),
        ({"operation": "DELETE", "name": "a:1"}, 404, "no such link that is dialled from here"),
    ],
)
def test_a_link_that_cannot_be_made_or_found_is_told(
    world: World, asked: dict[str, object], expected: int, says: str
) -> None:
    reply = world.ask(**asked, type="org.cogwork.link")
    assert status(reply) == expected
    assert says in text(reply)
    assert world.container.mesh.costs == {}


def test_the_mesh_needs_no_name(world: World) -> None:
    reply = world.ask(operation="READ", type="org.cogwork.mesh")
    assert value(reply) == {"name": "box", "size": 3, "type": "org.cogwork.mesh"}


def test_the_mesh_is_no_other_virtual_hosts_business() -> None:
    world = World(FakeContainer(is_default=False))
    reply = world.ask(operation="CREATE", type="org.cogwork.link", name="there:2")
    assert status(reply) == 400
    assert world.container.mesh.costs == {}
