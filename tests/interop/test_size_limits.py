"""A receiver's max-message-size (AMQP 1.0 §2.7.3): what is larger is left to others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proton import Link, Message
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver

from .clients import fresh_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .broker import Settings

TIMEOUT_S = 30.0
LIMIT_BYTES = 1_000


class Limit(LinkOption):
    """Takes no message larger than that."""

    def apply(self, link: Link) -> None:
        link.max_message_size = LIMIT_BYTES


@pytest.fixture
def connection(broker: Settings) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(broker.anonymous()["url"], timeout=TIMEOUT_S)
    yield connection
    connection.close()


@pytest.mark.parametrize("size_bytes", [2_000, 100_000])
@pytest.mark.parametrize("kind", ["queue", "topic", "service"])
def test_what_is_larger_goes_to_others(
    connection: BlockingConnection, kind: str, size_bytes: int
) -> None:
    address = f"{kind}/{fresh_address()}"
    small = connection.create_receiver(address, credit=10, name="small", options=Limit())
    any_size = connection.create_receiver(address, credit=10, name="any")
    sender = connection.create_sender(address, options=AtMostOnce())
    for _ in range(2):
        sender.send(Message(body=bytes(size_bytes)))
        assert len(_take(any_size)) == size_bytes
    any_size.close()
    sender.send(Message(body="small"))
    assert _take(small) == "small"


def _take(receiver: BlockingReceiver) -> Any:
    body = receiver.receive(TIMEOUT_S).body
    if receiver.fetcher is not None and receiver.fetcher.unsettled:
        receiver.accept()
    return body
