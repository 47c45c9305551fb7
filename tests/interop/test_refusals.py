"""What a stock client asks for that is not offered: it is told so, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proton import Data, Link, Message, Terminus, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, DurableSubscription, LinkOption
from proton.utils import BlockingConnection, LinkDetached

from .clients import fresh_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .broker import Settings

TIMEOUT_S = 30.0


class Shared(LinkOption):
    """Asks for a subscription that its consumers share, as JMS does."""

    def apply(self, link: Link) -> None:
        link.source.capabilities.put_array(False, Data.SYMBOL)
        link.source.capabilities.enter()
        link.source.capabilities.put_symbol(symbol("shared"))


class Transaction(MessagingHandler):
    """Begins a transaction."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.refusals: list[str] = []
        self.declared = False

    def on_start(self, event: Any) -> None:
        self.connection = event.container.connect(self._url)
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.declared = True
        event.connection.close()

    def on_link_error(self, event: Any) -> None:
        self.refusals.append(event.link.remote_condition.name)
        event.connection.close()


@pytest.fixture
def connection(broker: Settings) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(broker.anonymous()["url"], timeout=TIMEOUT_S)
    yield connection
    connection.close()


@pytest.mark.parametrize("option", [DurableSubscription(), Shared()], ids=["durable", "shared"])
def test_a_subscription_that_outlives_its_link_is_refused(
    connection: BlockingConnection, option: LinkOption
) -> None:
    with pytest.raises(LinkDetached) as caught:
        connection.create_receiver("topic/away", name="mine", options=option)
    assert caught.value.condition == "amqp:not-implemented"
    assert "a queue or a stream" in str(caught.value)


def test_a_queue_may_be_asked_for_durably(connection: BlockingConnection) -> None:
    address = f"queue/{fresh_address()}"
    connection.create_sender(address).send(Message(body="kept"))
    receiver = connection.create_receiver(address, options=DurableSubscription())
    assert receiver.link.remote_source.durability == Terminus.NONDURABLE
    assert receiver.receive(TIMEOUT_S).body == "kept"
    receiver.accept()


def test_a_transaction_is_refused(broker: Settings) -> None:
    handler = Transaction(broker.anonymous()["url"])
    Container(handler).run()
    assert handler.refusals == ["amqp:not-implemented"]
    assert not handler.declared
