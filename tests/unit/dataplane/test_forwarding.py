"""Messages that go to private queues of another container: wrapped, taken out, and answered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from basic_client import ACCEPTED, RELEASED
from test_basic_exchanges import World

from cogwork.amqp091.content import BasicProperties
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.container.vhost.private_bindings import PrivateBindings
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.forwarding import (
    FORWARD_MESSAGE_FORMAT,
    ForwardInlet,
    ForwardOutlet,
    LostWay,
)
from cogwork.plugin.exchange_types import exchange_type
from cogwork.router.exchanges.binding import QUEUE, Binding, Destination
from cogwork.router.exchanges.forwards import Forward, PrivateBinding

if TYPE_CHECKING:
    from cogwork.dataplane.addresses.exchange import Changes


class Linked(World):
    """Queue `a` is at this container; `b` and `c` are private ones of another, in the same core."""

    def __init__(self) -> None:
        super().__init__()
        here = {"a": self.entries["a"]}
        self.node.find_queue = here.get
        self.node.find_forward = self.forward
        self.private = PrivateBindings(self.entries.get)
        for name, kind in (("d", "direct"), ("t", "topic"), ("h", "headers")):
            factory = exchange_type(kind)
            assert factory is not None
            matcher = factory({}, lambda _below: 0)
            self.private.add_exchange(DeclaredExchange(name, kind), matcher)
        for queue in "bc":
            self.private.add_queue(queue, is_reserved=True)
        self.inlet = ForwardInlet(self.core, partial(self.private.inlet_for, self.core))
        self.way = AddressEntry(self.core, "$forwarded/other", CLOSEST_CODE)
        self.way.add_outlet(self.inlet)
        self.lost = LostWay(self.core)

    def forward(self, forward: Forward, changes: Changes) -> AddressEntry:
        entry = AddressEntry(self.core, "other", CLOSEST_CODE)
        entry.add_outlet(ForwardOutlet(self.core, self.way, forward.route.octets, changes))
        return entry

    def bind_there(self, exchange: str, queue: str, key: bytes) -> None:
        """Bind a private queue there, and tell this container of it."""
        kinds = {"d": "direct", "t": "topic", "h": "headers"}
        self.private.bound(exchange, Binding(Destination(QUEUE, queue), key))
        told = PrivateBinding(kinds[exchange], exchange, key, {})
        self.node.graph.bind(exchange, told.seen_from("other"))
        self.node.changed()

    def lose_way(self) -> None:
        self.way.add_outlet(self.lost)
        self.way.remove_outlet(self.inlet)


@pytest.fixture
def linked() -> Linked:
    return Linked()


def test_several_queues_there_get_one_copy_each_and_the_octets_that_were_sent(
    linked: Linked,
) -> None:
    linked.bind("t", "a", b"#")
    for queue in "bc":
        linked.bind_there("t", queue, b"k.*")
        linked.bind_there("t", queue, b"#")
    properties = BasicProperties(headers={"n": 1}, delivery_mode=2)
    assert linked.publish("t", b"body", "k.l", properties=properties, token=1) == ACCEPTED
    assert linked.held() == {"a": 1, "b": 1, "c": 1}
    assert linked.bodies("b") == ["body"]
    assert [each[:2] for each in linked.client.outcomes] == [(1, ACCEPTED)]
    assert linked.core.open_fanouts == 0


def test_further_keys_go_along_where_the_message_hides_them(linked: Linked) -> None:
    linked.bind_there("d", "b", b"hidden")
    properties = BasicProperties(headers={"BCC": ["hidden"]})
    assert linked.publish("d", b"x", "other", properties=properties, token=1) == ACCEPTED
    assert linked.held() == {"b": 1}
    assert linked.publish("d", b"x", "other", token=2) == RELEASED


def test_what_nobody_takes_there_counts_for_nothing_if_somebody_does_here(linked: Linked) -> None:
    linked.bind_there("t", "b", b"#")
    linked.private.unbound("t", Binding(Destination(QUEUE, "b"), b"#"))
    assert linked.publish("t", b"1", "k", token=1) == RELEASED
    linked.bind("t", "a", b"#")
    assert linked.publish("t", b"2", "k", token=2) == ACCEPTED
    assert linked.held() == {"a": 1}
    assert linked.core.open_fanouts == 0


@pytest.mark.parametrize("is_bound_here", [False, True])
def test_a_copy_that_finds_no_way_is_in_doubt_until_nobody_is_there(
    linked: Linked, is_bound_here: bool
) -> None:
    linked.bind_there("t", "b", b"#")
    if is_bound_here:
        linked.bind("t", "a", b"#")
    linked.lose_way()
    assert linked.publish("t", b"1", "k", token=1) not in (ACCEPTED, RELEASED, 0)
    linked.lost.is_given_up = True
    wanted = ACCEPTED if is_bound_here else RELEASED
    assert linked.publish("t", b"2", "k", token=2) == wanted
    assert linked.publish("t", b"3", "k") == 0
    assert linked.lost.dropped == 3
    assert linked.core.open_fanouts == 0


@pytest.mark.parametrize(
    "octets", [b"", b"\0" * 11, b"\0" * 7 + b"\xff" + b"\0" * 4, b"\0" * 8 + b"\xff" * 4]
)
def test_octets_that_are_no_wrapping_are_refused(linked: Linked, octets: bytes) -> None:
    assert FORWARD_MESSAGE_FORMAT == 0x43574600
    linked.way.send(linked.lost, 7, octets, settled=False)
    assert linked.held() == {}
