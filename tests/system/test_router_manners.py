"""What clients count on that were written for a router: a stock one, across a mesh of three."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from proton import Delivery, Message, Timeout, symbol
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, SendException

from .meshes import linked, meshed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proton.utils import BlockingReceiver

TIMEOUT_S = 30.0
LONG_AGO_S = 2700.0
"""What the last AMQP driver of oslo.messaging names as the end of a call: minutes after 1970."""


class Ends:
    """Clients at the two ends of a line of three containers."""

    def __init__(self, near: BlockingConnection, far: BlockingConnection) -> None:
        self.near = near
        self.far = far

    def relay(self, address: str, body: str) -> None:
        """Send from the far end, settled, by the anonymous relay; and write it."""
        sender = self.far.create_sender(None, options=AtMostOnce())
        sender.send(Message(address=address, body=body))
        _work(self.far, 0.2)

    def reply_address(self) -> BlockingReceiver:
        """Ask for a dynamic address at the near end."""
        return self.near.create_receiver(None, dynamic=True, credit=10)


def _work(connection: BlockingConnection, for_s: float) -> None:
    """Have a connection read and write for a while."""
    end_s = time.monotonic() + for_s
    with suppress(Timeout):
        connection.wait(lambda: time.monotonic() > end_s, timeout=2 * for_s)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    with meshed(tmp_path_factory.mktemp("mesh"), "abc", ["ab", "bc"]) as members:
        linked(members.values())
        near = BlockingConnection(members["a"].url, timeout=TIMEOUT_S)
        far = BlockingConnection(members["c"].url, timeout=TIMEOUT_S)
        yield Ends(near, far)
        near.close()
        far.close()


def test_the_open_says_what_it_is_and_that_it_relays(ends: Ends) -> None:
    opened: Any = ends.near.conn
    # To a client that says nothing of itself it is what those of RabbitMQ look for.
    assert opened.remote_properties[symbol("product")] == "RabbitMQ"
    assert opened.remote_properties[symbol("version")]
    assert symbol("ANONYMOUS-RELAY") in opened.remote_offered_capabilities


def test_a_dynamic_address_is_its_own_and_is_reached_from_everywhere(ends: Ends) -> None:
    one, other = ends.reply_address(), ends.reply_address()
    assert one.link.remote_source.address != other.link.remote_source.address
    ends.relay(str(one.link.remote_source.address), "reply")
    assert one.receive().body == "reply"


def test_what_was_never_forwarded_is_released(ends: Ends) -> None:
    gone = ends.reply_address()
    address = gone.link.remote_source.address
    gone.close()
    relay = ends.far.create_sender(None)
    for nowhere in (address, "exclusive/nova/compute/nobody", "unicast/nova/nobody"):
        with pytest.raises(SendException) as caught:
            relay.send(Message(address=nowhere, body="call"))
        assert caught.value.state == Delivery.RELEASED


def test_an_address_without_a_consumer_gives_no_credit_until_one_comes(ends: Ends) -> None:
    sender = ends.far.create_sender("unicast.openstack.late")
    _work(ends.far, 0.3)
    assert sender.link.credit == 0
    consumer = ends.near.create_receiver("unicast.openstack.late", credit=10)
    ends.far.wait(lambda: sender.link.credit > 0, timeout=TIMEOUT_S)
    consumer.close()


def test_a_time_to_live_counts_and_an_end_before_the_beginning_does_not(ends: Ends) -> None:
    server = ends.near.create_receiver("exclusive/nova/compute/h1", credit=10)
    sender = ends.far.create_sender("exclusive/nova/compute/h1", options=AtMostOnce())
    ends.far.wait(lambda: sender.link.credit > 0, timeout=TIMEOUT_S)
    sender.send(Message(body="call", ttl=30, expiry_time=LONG_AGO_S))
    _work(ends.far, 0.2)
    found = server.receive()
    assert (found.body, found.expiry_time) == ("call", LONG_AGO_S)
    assert 0 < found.ttl <= 30
