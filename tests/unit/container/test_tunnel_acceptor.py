"""Links that other containers attach: while it is not known what their cluster has, and when this
container is about to stop.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import peers
import pytest
from text_messages import message

from cogwork.amqp.performatives import Attach, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.names import FROM, MOVE
from cogwork.container.mesh.tunnel_acceptor import TunnelAcceptor
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.incoming import IncomingLink

ATTACHES = {
    "lends": Attach(name="x", handle=0, role=Role.RECEIVER, source=Source(address="work/x")),
    "takes": Attach(name="x", handle=0, role=Role.SENDER, target=Target(address="work/x")),
    "is moved": Attach(
        name="x", handle=0, role=Role.SENDER, target=Target(address="work/x"), properties={MOVE: 1}
    ),
}


def acceptor_of(here: Here | Sent) -> TunnelAcceptor:
    """Make the acceptor of what stands for a container and its virtual host: all that it asks."""
    return TunnelAcceptor(cast("MeshService", here), {"": cast("VirtualHost", here)})


class Nodes(dict[str, object]):
    """Those of the virtual host, which makes none."""

    def __init__(self, make: Callable[..., object]) -> None:
        super().__init__()
        self.of = make


class Here:
    """A container with a virtual host, and a link that another container attaches.

    Attributes:
        made: Addresses of which something was made, or used.
        refused: Why the link was.
    """

    is_leaving = False

    def __init__(self, *, is_current: bool, kind: str = "queue") -> None:
        self.core, self.name = Core(), ""
        self.nodes = Nodes(self.make)
        self.id = "a"
        self.readiness = SimpleNamespace(holds_all=lambda: is_current)
        self.made: list[str] = []
        self.refused: list[str] = []
        begun = SimpleNamespace(remote_channel=None, properties={FROM: "b"})
        self.session = SimpleNamespace(remote=begun)
        self._kind = kind

    def rule_of(self, address: str) -> tuple[str, object]:
        return address, SimpleNamespace(kind=self._kind, options={})

    def make(self, *what: object) -> object:
        self.made += [each for each in what if isinstance(each, str)]
        raise StopIteration  # it would be attached now

    entry_of = near_entry_of = make

    def refuse(self, condition: str, description: str) -> None:
        assert condition == "amqp:not-found"
        self.refused.append(description)

    def attach(self, attach: Attach) -> None:
        acceptor = acceptor_of(self)
        acceptor.take(self, attach)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("what", ATTACHES)
def test_nothing_is_made_that_the_cluster_may_have_declared(what: str) -> None:
    here = Here(is_current=False)
    here.attach(ATTACHES[what])
    assert here.refused == ["'work/x' is not known here yet"]
    assert here.made == []


@pytest.mark.parametrize("what", ATTACHES)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_there_is_used_and_made_once_all_is_known(what: str, is_there: bool) -> None:
    here = Here(is_current=not is_there)
    if is_there:
        here.nodes["work/x"] = None
    with pytest.raises(StopIteration):
        here.attach(ATTACHES[what])
    assert here.made == ["work/x"]


def test_what_keeps_nothing_is_made_at_any_time() -> None:
    here = Here(is_current=False, kind="direct")
    with pytest.raises(StopIteration):
        here.attach(ATTACHES["takes"])
    assert here.made == ["work/x"]


class Sent:
    """What two other containers send to a queue and to a topic here.

    Attributes:
        acceptor: Where their links are.
        queue: The one into the queue.
        topic: The one into the topic.
    """

    def __init__(self) -> None:
        self.core = Core()
        self.peer = peers.Peer(self.core)
        self.acceptor = acceptor_of(self)
        self.near, self.nodes = None, Nodes(self.near_entry_of)
        self.id = "a"
        self.readiness = SimpleNamespace(holds_all=lambda: True)
        self.queue, self.topic = self.link("queue/x"), self.link("topic/x")
        links = {
            number: SimpleNamespace(
                end=end, remote=Attach(name="x", handle=0, role=Role.SENDER, target=target)
            )
            for number, (end, target) in enumerate(
                [(self.queue, Target(address="queue/x")), (self.topic, Target(address="topic/x"))]
            )
        }
        begun = SimpleNamespace(remote_channel=None, properties={FROM: "b"})
        ours = SimpleNamespace(remote_channel=1, properties={})
        self.sessions = [
            SimpleNamespace(remote=begun, links=links),
            SimpleNamespace(remote=ours, links={0: SimpleNamespace(end=None, remote=None)}),
        ]

    def link(self, address: str) -> IncomingLink:
        return self.peer.publisher(self.near_entry_of(address))

    def near_entry_of(self, address: str) -> AddressEntry:
        entry = AddressEntry(self.core, address, BALANCED_CODE)
        consumer = peers.Peer(self.core)
        outlet = OutgoingLink(consumer.session, 0, False)
        consumer.session.map_link(0, outlet)
        entry.add_outlet(outlet)
        consumer.flow(outlet, 10)
        return entry

    def attach(self, address: str) -> IncomingLink:
        """Have one more link come; return its end here."""
        ends: list[IncomingLink] = []
        link = SimpleNamespace(
            session=SimpleNamespace(remote=self.sessions[0].remote, end=self.peer.session),
            handle=7,
            carry=ends.append,
            attach=lambda **_: None,
        )
        target = Target(address=address)
        attach = Attach(name="y", handle=7, role=Role.SENDER, target=target)
        self.acceptor.take(cast("Link", link), attach)
        return ends[0]

    def data_connections(self) -> list[Sent]:
        return [self]

    def rule_of(self, address: str) -> tuple[str, object]:
        return address, SimpleNamespace(kind=address.partition("/")[0], options={})


def test_a_container_that_stops_has_others_send_no_more_to_its_queues() -> None:
    sent = Sent()
    assert sent.queue.credit > 0
    assert sent.acceptor.end_credit()
    assert sent.queue.credit == 0
    assert sent.topic.credit > 0
    assert not sent.acceptor.end_credit(), "there is nothing more to wait for"


def test_what_was_under_way_is_taken_and_waited_for() -> None:
    sent = Sent()
    sent.acceptor.end_credit()
    sent.peer.send(sent.topic, message("of no concern"))
    assert sent.acceptor.unanswered == 0
    sent.peer.send(sent.queue, message("late"))
    assert sent.acceptor.unanswered == 1


@pytest.mark.parametrize(("address", "has_credit"), [("queue/y", False), ("topic/y", True)])
def test_a_link_into_a_queue_that_comes_meanwhile_gets_no_credit(
    address: str, has_credit: bool
) -> None:
    sent = Sent()
    assert sent.attach(address).credit > 0
    sent.acceptor.end_credit()
    assert (sent.attach(address).credit > 0) is has_credit
