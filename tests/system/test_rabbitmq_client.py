"""The Python client of RabbitMQ 4 (`rabbitmq-amqp-python-client`), as it is, on a container."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from .served import served

client = pytest.importorskip(
    "rabbitmq_amqp_python_client", reason="rabbitmq-amqp-python-client is not installed"
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .served import Served

ACCEPTED, RELEASED = "36", "38"


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("rabbitmq")) as running:
        yield running


@pytest.fixture
def connection(container: Served) -> Iterator[Any]:
    with dialled(container) as made:
        yield made


@contextlib.contextmanager
def dialled(container: Served) -> Iterator[Any]:
    """Connect for the length of a `with` block."""
    uri = container.url.replace("://", "://guest:guest@") + "/"
    environment = client.Environment(uri=uri)
    connection = environment.connection()
    connection.dial()
    try:
        yield connection
    finally:
        connection.close()
        environment.close()


def publish(connection: Any, address: str, *bodies: bytes) -> list[str]:
    """Publish messages; return what became of each."""
    publisher = connection.publisher(address)
    found = [str(publisher.publish(client.Message(body=each)).remote_state) for each in bodies]
    publisher.close()
    return found


class _Enough(Exception):
    """Ends a consumer, which has no other end."""


def consumed(container: Served, address: str, count: int, **given: Any) -> list[bytes]:
    """Consume so many messages, and accept each."""
    found: list[bytes] = []

    class Handler(client.AMQPMessagingHandler):  # type: ignore[misc, name-defined]  # untyped
        def on_amqp_message(self, event: Any) -> None:
            found.append(bytes(event.message.body))
            self.delivery_context.accept(event)
            if len(found) == count:
                raise _Enough

    with dialled(container) as connection:
        consumer = connection.consumer(address, message_handler=Handler(), **given)
        with contextlib.suppress(_Enough):
            consumer.run()
        consumer.close()
    return found


def test_queues_exchanges_and_bindings(container: Served, connection: Any) -> None:
    management = connection.management()
    management.declare_exchange(client.ExchangeSpecification(name="e 1"))
    management.declare_queue(client.QuorumQueueSpecification(name="q/1"))
    binding = client.ExchangeToQueueBindingSpecification(
        source_exchange="e 1", destination_queue="q/1", binding_key="k/1"
    )
    path = management.bind(binding)
    by_exchange = client.AddressHelper.exchange_address("e 1", "k/1")
    by_queue = client.AddressHelper.queue_address("q/1")
    assert publish(connection, by_exchange, b"a", b"b") == [ACCEPTED, ACCEPTED]
    assert publish(connection, by_queue, b"c") == [ACCEPTED]
    message = client.AddressHelper.message_to_address_helper(client.Message(body=b"d"), by_queue)
    anonymous = connection.publisher()
    assert str(anonymous.publish(message).remote_state) == ACCEPTED
    anonymous.close()
    info = management.queue_info("q/1")
    assert (info.message_count, info.consumer_count) == (4, 0)
    assert info.queue_type is client.QueueType.quorum
    assert consumed(container, by_queue, 4) == [b"a", b"b", b"c", b"d"]
    management.unbind(path)
    publish(connection, by_queue, b"e")
    assert management.purge_queue("q/1") == 1
    management.delete_queue("q/1")
    management.delete_exchange("e 1")
    with pytest.raises(client.ValidationCodeException, match="404"):
        management.queue_info("q/1")


def test_streams_from_an_offset(container: Served, connection: Any) -> None:
    management = connection.management()
    management.declare_queue(client.StreamSpecification(name="log", max_len_bytes=1_000_000))
    address = client.AddressHelper.queue_address("log")
    assert publish(connection, address, b"a", b"b", b"c", b"d") == [ACCEPTED] * 4
    assert management.queue_info("log").queue_type is client.QueueType.stream
    for start, expected in (
        (1, [b"b", b"c"]),
        (client.OffsetSpecification.first, [b"a", b"b", b"c", b"d"]),
        (client.OffsetSpecification.last, [b"d"]),
    ):
        options = client.StreamConsumerOptions(offset_specification=start)
        found = consumed(container, address, len(expected), consumer_options=options)
        assert found == expected
    management.delete_queue("log")
