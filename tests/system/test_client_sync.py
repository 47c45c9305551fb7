"""The synchronous facade, and containers for tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork import sync
from cogwork.client.fields import batch_of
from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def test_the_same_calls_without_a_loop() -> None:
    with (
        container() as url,
        sync.connect(url) as client,
        client.subscribe("topic/sync.#") as messages,
    ):
        client.publish("topic/sync.a", "one", subject="s")
        with client.publisher("topic/sync.b") as out:
            out.send("two")
            assert all(outcome.is_accepted for outcome in out.send_batch(["three", "four"]))
        got = [next(messages).body for _ in range(4)]
        assert sorted(map(str, got)) == ["four", "one", "three", "two"]
        assert messages.receive(timeout_s=0.05) is None


def test_a_message_that_nobody_takes_is_given_up_in_time() -> None:
    with (
        container() as url,
        sync.connect(url) as client,
        client.publisher("service/nobody") as out,
    ):
        with pytest.raises(cogwork.Released, match=r"service/nobody: it was not sent within 0.2 s"):
            out.send("too early", timeout_s=0.2)
        assert [str(each.state) for each in out.send_batch([1], timeout_s=0.2)] == ["released"]
        client.publish("queue/somebody", "in time", timeout_s=10)


def test_items_are_settled_through_the_consumer() -> None:
    with (
        container() as url,
        sync.connect(url) as client,
        client.consume("queue/sync", credit=1) as items,
    ):
        with client.publisher("queue/sync") as out:
            out.send_batch(range(4))
        items.accept(next(items))
        items.reject(next(items), "no good")
        released = next(items)
        items.release(released)
        again = next(items)
        assert again.body == released.body
        items.modify(again, failed=True)
        assert next(items).delivery_count == 1


SINGLE_BODIES = ["abc", b"ab", bytearray(b"ab"), memoryview(b"ab"), {"order": 1}]


@pytest.mark.parametrize("body", SINGLE_BODIES)
def test_a_single_body_is_no_batch(body: Iterable[object]) -> None:
    with pytest.raises(TypeError, match=r"write \[body\]"):
        batch_of(body)


def test_no_batch_is_made_of_the_parts_of_one_body() -> None:
    with (
        container() as url,
        sync.connect(url) as client,
        client.publisher("queue/sync") as out,
    ):
        stream = client.stream("sync")
        for send in (out.send_batch, stream.append):
            with pytest.raises(TypeError, match="a list of bodies is expected, not a single str"):
                send("abc")


def test_threads_share_a_mesh() -> None:
    with (
        container() as url,
        sync.connect(url) as client,
        client.subscribe("topic/threads") as messages,
    ):
        got = list[object]()
        waiting = threading.Thread(target=lambda: got.append(next(messages).body))
        waiting.start()
        client.publish("topic/threads", "hello")
        waiting.join(10)
        assert got == ["hello"]


def test_calls_come_back_or_fail() -> None:
    with container() as url, sync.connect(url) as client:
        reply = client.request(
            "$management",
            properties={"operation": "GET-MGMT-NODES", "type": "", "name": ""},
        )
        assert reply.properties["statusCode"] == 200
        with pytest.raises(cogwork.Released, match="service/nobody"):
            client.request("service/nobody", 1)


def test_errors_come_out_as_they_are() -> None:
    with pytest.raises(cogwork.ConnectError):
        sync.connect("amqp://127.0.0.1:1").__enter__()


def test_a_container_is_there_in_a_moment() -> None:
    began_s = time.process_time()  # the container runs in this process, too
    with container() as url, sync.connect(url) as client:
        client.publish("sink/moment", 1)
    assert time.process_time() - began_s < 1


def test_a_container_takes_a_configuration() -> None:
    configuration = """
[[user]]
name = "jo"
password_hash = "scrypt$ln=4,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$x"
"""
    with pytest.raises(cogwork.CogworkError):
        container(configuration)
    with container('id = "named"', id="other") as url:
        assert url.startswith("amqp://127.0.0.1:")


def test_a_taken_port_is_an_error() -> None:
    with container() as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(cogwork.CogworkError, match=str(port)):
            container(port=port).start()


def test_a_mesh_says_that_it_is_not_open_yet_or_any_more() -> None:
    uses: list[Callable[[sync.Client], object]] = [
        lambda client: client.publish("topic/a", 1),
        lambda client: client.subscribe("topic/a"),
        lambda client: client.stream("orders"),
        lambda client: client.call("compute", "start"),
        lambda client: client.schemas.all(),
    ]
    with container() as url:
        client = sync.connect(url)
        client.close()
        for use in uses:
            with pytest.raises(cogwork.NotOpened, match=r"`with cogwork\.sync\.connect"):
                use(client)
        with client, client.subscribe("topic/a") as messages:
            with pytest.raises(RuntimeError, match="open already"):
                client.__enter__()
            client.publish("topic/a", 1)
            assert next(messages).body == 1
        client.close()
        for use in uses:
            with pytest.raises(cogwork.Disconnected, match="the client was closed"):
                use(client)
        with pytest.raises(cogwork.Disconnected, match="makes another one"):
            client.__enter__()
