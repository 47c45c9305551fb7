"""`$management` of a container in a process of its own, asked by a foreign client."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
from proton import ConnectionException, Delivery, Message, ulong
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached, SendException

from cogwork.config.password_hash import hash_password

from .manager import Manager
from .served import OPEN, Served, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "four spare teeth"

CONFIGURATION = f"""{OPEN}
[[user]]
name = "ann"
password_hash = "{hash_password(SECRET)}"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]

[[user]]
name = "bob"
password_hash = "{hash_password(SECRET)}"
permissions = [
  {{ address = "$management", rights = ["send"] }},
  {{ address = "topic/flights.#", rights = ["receive"] }},
  {{ address = "queue/bobs.#", rights = ["send", "manage"] }},
]

[[vhost]]
name = "blue"
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One container for all questions."""
    with served(tmp_path_factory.mktemp("managed"), CONFIGURATION) as running:
        yield running


@pytest.fixture
def manager(container: Served) -> Iterator[Manager]:
    with Manager(container.url) as asking:
        yield asking


def as_user(container: Served, name: str) -> Manager:
    return Manager(container.url.replace("://", f"://{name}:{SECRET.replace(' ', '%20')}@"))


def test_the_container_tells_of_itself(container: Served, manager: Manager) -> None:
    row = manager.get("READ", "container")
    assert row["name"] == socket.gethostname()
    assert row["process_id"] == container.process.pid
    assert row["endpoints"] == [container.url]
    assert row["totals"]["connections"] >= 1
    assert row["limits"]["connections"] == 10_000


def test_a_link_shows_credit_and_deliveries(manager: Manager) -> None:
    connection = manager.connection
    receiver = connection.create_receiver("managed/plain", credit=7, name="taker")
    connection.create_sender("managed/plain").link.send(Message(body="x"))
    receiver.receive(timeout=5)
    row = manager.row("link", link="taker")
    assert row["direction"] == "out"
    assert row["address"] == "managed/plain"
    assert (row["deliveries"], row["unsettled"]) == (1, 1)
    receiver.accept()
    address = manager.row("address", address="managed/plain")
    assert (address["in"], address["out"], address["senders"], address["receivers"]) == (1, 1, 1, 1)


def test_an_address_counts_what_nobody_took(manager: Manager) -> None:
    sender = manager.connection.create_sender("topic/managed.silence")
    sender.send(Message(body="x"))
    row = manager.row("address", address="topic/managed.silence")
    assert (row["kind"], row["distribution"]) == ("topic", "multicast")
    assert (row["in"], row["out"], row["unmatched"]) == (1, 0, 1)


def test_requests_pipeline(manager: Manager) -> None:
    connection = manager.connection
    replies = connection.create_receiver(None, credit=200, dynamic=True)
    sender = connection.create_sender("$management", name="pipeline")
    reply_to = replies.link.remote_source.address
    for number in range(100):
        operation = "QUERY" if number % 2 else "READ"
        asked = {"operation": operation, "type": "container"}
        sender.link.send(Message(id=number, reply_to=reply_to, properties=asked))
    seen = {replies.receive(timeout=5).correlation_id for _ in range(100)}
    assert seen == set(range(100))


def test_a_connection_is_closed_with_a_reason(container: Served, manager: Manager) -> None:
    victim = BlockingConnection(container.url, timeout=5)
    name = manager.row("connection", container=victim.container.container_id)["name"]
    manager.get("CLOSE", "connection", {"reason": "maintenance"}, name=name)
    with pytest.raises(ConnectionException, match="maintenance"):
        victim.wait(lambda: False, timeout=5)
    assert manager.refusal("CLOSE", "connection", name=name)[0] == 404


def test_a_link_is_detached(manager: Manager) -> None:
    receiver = manager.connection.create_receiver("managed/detached", credit=1, name="victim")
    name = manager.row("link", link="victim")["name"]
    manager.get("DETACH", "link", name=name)
    with pytest.raises(LinkDetached, match="closed by management"):
        receiver.receive(timeout=5)
    assert manager.connection.create_receiver("managed/detached", credit=1).link is not None


def test_every_entity_has_the_attributes_of_its_type(manager: Manager) -> None:
    manager.get("CREATE", "queue", name="queue/attributes")
    for kind, attributes in manager.get("GET-ATTRIBUTES").items():
        for row in manager.rows(kind)[:5]:
            found = manager.get("READ", kind, name=row["name"])
            assert {*found} - {"type"} == {*attributes}, kind
            assert found["type"] == kind


# -- patterns


def publish(connection: BlockingConnection, *topics: str) -> None:
    """Send without waiting: a topic's message is accepted once its subscribers have settled it."""
    for topic in topics:
        connection.create_sender(topic).link.send(Message(body=topic))


def received(receiver: BlockingReceiver, count: int) -> list[str]:
    bodies = []
    for _ in range(count):
        bodies.append(str(receiver.receive(timeout=5).body))
        receiver.accept()
    return bodies


def test_patterns_change_without_detaching(manager: Manager) -> None:
    receiver = manager.connection.create_receiver("topic/flights.JFK.#", credit=10, name="screen")
    assert manager.get("SUBSCRIBE", name="screen", pattern="topic/flights.LAX.*")["changed"]
    assert not manager.get("SUBSCRIBE", name="screen", pattern="topic/flights.LAX.*")["changed"]
    publish(manager.connection, "topic/flights.LAX.AA", "topic/flights.SFO.AA")
    assert received(receiver, 1) == ["topic/flights.LAX.AA"]
    assert manager.get("UNSUBSCRIBE", name="screen", pattern="topic/flights.JFK.#")["changed"]
    publish(manager.connection, "topic/flights.JFK.BA", "topic/flights.LAX.BA")
    assert received(receiver, 1) == ["topic/flights.LAX.BA"]
    assert manager.row("link", link="screen")["patterns"] == ["flights.LAX.*"]


def test_pages_beyond_the_end_are_empty(manager: Manager) -> None:
    page = manager.get("QUERY", type="link", index=ulong(2**64 - 1), count=ulong(2**64 - 1))
    assert page["results"] == []


def test_a_subscriber_may_start_without_a_pattern(manager: Manager) -> None:
    receiver = manager.connection.create_receiver("topic", credit=10, name="blank")
    publish(manager.connection, "topic/blank.one")
    manager.get("SUBSCRIBE", name="blank", pattern="topic/blank.#")
    publish(manager.connection, "topic/blank.two")
    assert received(receiver, 1) == ["topic/blank.two"]


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("queue/a", "none of the link's topics; as an address with wildcards it starts with"),
        ("topic", "none of the link's topics"),
        ("", "needs pattern, a string"),
    ],
)
def test_a_wrong_pattern_is_told_what_would_be_right(
    manager: Manager, pattern: str, says: str
) -> None:
    manager.connection.create_receiver("topic/wrong.#", credit=1, name="wrong")
    status, text = manager.refusal("SUBSCRIBE", name="wrong", pattern=pattern)
    assert status == 400
    assert says in text


def test_a_link_that_is_no_subscriber_has_no_patterns(manager: Manager) -> None:
    manager.connection.create_receiver("managed/plain", credit=1, name="plain")
    status, text = manager.refusal("SUBSCRIBE", name="plain", pattern="topic/a")
    assert (status, "no topic's subscriber" in text) == (400, True)
    status, text = manager.refusal("SUBSCRIBE", name="nobody", pattern="topic/a")
    assert (status, "there is no link 'nobody'" in text) == (404, True)


# -- permissions


def test_bob_sees_only_what_is_his(container: Served, manager: Manager) -> None:
    manager.get("CREATE", "queue", name="queue/bobs.one")
    manager.get("CREATE", "queue", name="queue/anns")
    with as_user(container, "bob") as bob:
        assert [row["address"] for row in bob.rows("queue")] == ["queue/bobs.one"]
        for kind in ("connection", "link", "session", "node"):
            assert bob.refusal("QUERY", kind)[0] == 403
        assert bob.refusal("READ", "container") == (
            403,
            "no permission to manage at '$management' "
            "(grant manage on '$management': no wildcard reaches it)",
        )
        assert bob.refusal("PURGE", "queue", name="queue/anns")[0] == 403
        assert bob.get("PURGE", "queue", name="queue/bobs.one") == {"purged": 0}


def test_bob_changes_his_own_patterns_only(container: Served, manager: Manager) -> None:
    manager.connection.create_receiver("topic/flights.#", credit=1, name="anns")
    link = manager.row("link", link="anns")["name"]
    with as_user(container, "bob") as bob:
        bob.connection.create_receiver("topic/flights.JFK", credit=1, name="bobs")
        assert bob.get("SUBSCRIBE", name="bobs", pattern="topic/flights.LAX")["changed"]
        assert bob.refusal("SUBSCRIBE", name="bobs", pattern="topic/secret")[0] == 403
        assert bob.refusal("SUBSCRIBE", name=link, pattern="topic/flights.LAX") == (
            403,
            f"link '{link}' is another connection's",
        )


def test_a_reply_goes_to_the_requester_only(container: Served) -> None:
    """Otherwise the container would send where bob may not."""
    with as_user(container, "bob") as bob:
        sender = bob.connection.create_sender("$management", name="other")
        with pytest.raises(SendException) as refused:
            sender.send(Message(reply_to="queue/anns", properties={"operation": "GET-TYPES"}))
        assert refused.value.state == Delivery.REJECTED


def test_virtual_hosts_do_not_see_each_other(container: Served, manager: Manager) -> None:
    with Manager(container.url, virtual_host="vhost:blue") as blue:
        blue.get("CREATE", "queue", name="queue/blue")
        assert [row["vhost"] for row in blue.rows("connection")] == ["blue"]
        assert len(blue.rows("link")) == 2
        assert "queue/blue" not in [row["address"] for row in manager.rows("queue")]
        assert "blue" in [row["vhost"] for row in manager.rows("connection")], "the operator does"


# -- queues


def fill(connection: BlockingConnection, queue: str, count: int) -> None:
    sender = connection.create_sender(queue)
    for number in range(count):
        sender.send(Message(body=f"item {number}"))
    sender.close()


def test_a_queue_is_declared_once(manager: Manager) -> None:
    options = {"maximum_length": 3, "maximum_length_policy": "reject"}
    assert manager.ask("CREATE", "queue", options, name="queue/declared").properties[
        "statusCode"
    ] == (201)
    again = manager.ask("CREATE", "queue", options, name="queue/declared")
    assert again.properties["statusCode"] == 200
    status, text = manager.refusal("CREATE", "queue", {"maximum_length": 4}, name="queue/declared")
    assert status == 409
    assert "maximum_length = 3, not 4" in text
    row = manager.get("READ", "queue", name="queue/declared")
    assert row["options"]["maximum_length"] == 3


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("queue/wrong", {"colour": "red"}, "no option 'colour': there are ttl_s"),
        ("queue/wrong", {"maximum_length": -1}, "maximum_length takes an integer from 1"),
        ("queue/wrong", {"delay": "maybe"}, "delay takes true or false, not 'maybe'"),
        ("queue/*", {}, "holds wildcards"),
        ("topic/a", {}, "is for a topic, which is no queue"),
        ("sink/a", {}, "is for a sink, which is no queue"),
    ],
)
def test_a_wrong_declaration_is_told_what_would_be_right(
    manager: Manager, name: str, options: dict[str, object], says: str
) -> None:
    status, text = manager.refusal("CREATE", "queue", options, name=name)
    assert status == 400
    assert says in text


def test_a_plain_name_becomes_a_queue(manager: Manager) -> None:
    manager.get("CREATE", "queue", name="orders")
    fill(manager.connection, "orders", 3)
    assert manager.row("queue", address="orders")["depth"] == 3


def test_a_queue_in_use_is_not_deleted(manager: Manager) -> None:
    receiver = manager.connection.create_receiver("queue/used", credit=1)
    status, text = manager.refusal("DELETE", "queue", name="queue/used")
    assert (status, "in use by 0 senders, 1 receivers" in text) == (409, True)
    receiver.close()
    assert manager.ask("DELETE", "queue", name="queue/used").properties["statusCode"] == 204
    assert manager.refusal("READ", "queue", name="queue/used")[0] == 404


def test_items_are_shown_moved_and_purged(manager: Manager) -> None:
    fill(manager.connection, "queue/from", 20)
    manager.get("CREATE", "queue", name="queue/to")
    shown = manager.get("PEEK", "queue", name="queue/from", count=3)
    assert [item["state"] for item in shown] == ["ready"] * 3
    asked = {"name": "queue/from", "target": "queue/to"}
    found = manager.get("MOVE", "queue", **asked, count=15)
    assert found == {"moved": 15, "refused": 0, "unconfirmed": 0}
    receiver = manager.connection.create_receiver("queue/to", credit=15)
    assert received(receiver, 15) == [f"item {number}" for number in range(15)]
    assert manager.get("PURGE", "queue", name="queue/from") == {"purged": 5}
    assert manager.row("queue", address="queue/from")["depth"] == 0


def test_what_does_not_fit_goes_back(manager: Manager) -> None:
    fill(manager.connection, "queue/many", 10)
    small = {"maximum_length": 4, "maximum_length_policy": "reject"}
    manager.get("CREATE", "queue", small, name="queue/small")
    found = manager.get("MOVE", "queue", name="queue/many", target="queue/small")
    assert found == {"moved": 4, "refused": 6, "unconfirmed": 0}
    assert manager.row("queue", address="queue/many")["depth"] == 6


def test_the_dead_are_driven_back(manager: Manager) -> None:
    manager.get("CREATE", "queue", {"dead_letter": "queue/dead"}, name="queue/alive")
    fill(manager.connection, "queue/alive", 3)
    receiver = manager.connection.create_receiver("queue/alive", credit=3)
    for _ in range(3):
        receiver.receive(timeout=5)
        receiver.reject()
    receiver.close()
    within(30, lambda: manager.row("queue", address="queue/dead")["depth"] == 3, "three are dead")
    found = manager.get("REDRIVE", "queue", name="queue/dead")
    assert found == {"moved": 3, "refused": 0, "unconfirmed": 0, "strangers": 0}
    receiver = manager.connection.create_receiver("queue/alive", credit=3)
    assert received(receiver, 3) == ["item 0", "item 1", "item 2"]


# -- without pausing traffic


@pytest.mark.timeout(120)
def test_ten_thousand_links_are_listed_without_a_pause(container: Served, manager: Manager) -> None:
    """An echo keeps running meanwhile: it is answered between one page and the next."""
    crowd = BlockingConnection(container.url, timeout=30)
    assert crowd.conn is not None
    sessions = []
    for _ in range(5):
        session = crowd.conn.session()
        session.open()
        sessions.append(session)
    for number in range(10_000):
        link = sessions[number % 5].receiver(f"crowd {number}")
        link.source.address = f"topic/crowd.{number}"
        link.open()
    crowd.wait(lambda: manager.get("READ", "container")["totals"]["links"] >= 10_000, timeout=60)
    begun, stop, answers = threading.Event(), threading.Event(), [0]

    def echo() -> None:
        with Manager(container.url) as other:
            while not stop.is_set():
                other.ask("GET-MGMT-NODES")
                begun.set()
                answers[0] += 1

    thread = threading.Thread(target=echo)
    thread.start()
    try:
        assert begun.wait(30)
        before = answers[0]
        rows = manager.rows("link")
        between = answers[0] - before
    finally:
        stop.set()
        thread.join()
        crowd.close()
    assert len({row["name"] for row in rows}) >= 10_000
    # Forty pages; in one pause there would be the one answer that was under way, or two.
    assert between >= 10
