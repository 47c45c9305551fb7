"""A peer that takes small frames: it gets none that is larger, and is told what fits into none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Attach, Begin, Close, Detach, End, Open, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Described, Symbol
from cogwork.config.settings import Configuration

if TYPE_CHECKING:
    from cogwork.amqp.frames import Frame

SMALLEST = 512
LONG = "topic/" + "long" * 200


ASIDE = 7
"""The channel of a session whose links these tests look at themselves."""


class Small(Peer):
    """A peer whose frames are as small as they may be; its reader refuses larger ones."""

    def __init__(self, hosted: Hosted) -> None:
        super().__init__(hosted, max_frame_size=SMALLEST)
        self.frames: list[Frame] = []

    def attach(self, role: Role, name: str = "link", handle: int = 0, **fields: Any) -> None:
        if len(self.of(Begin)) == 1:
            self.say(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), b"", ASIDE)
        termini: dict[str, Any] = {"source": Source(), "target": Target(), **fields}
        self.say(Attach(name=name, handle=handle, role=role, **termini), b"", ASIDE)

    @property
    def refusal(self) -> AmqpError:
        """Why the last link was refused."""
        attach, detach = self.of(Attach)[-1], self.of(Detach)[-1]
        assert (attach.target if attach.role is Role.RECEIVER else attach.source) is None
        assert detach.error is not None
        return detach.error


@pytest.fixture
def hosted() -> Hosted:
    return Hosted()


@pytest.fixture
def peer(hosted: Hosted) -> Small:
    return Small(hosted).greet()


SELECTED: dict[Symbol, object] = {
    Symbol("s"): Described(Symbol("apache.org:selector-filter:string"), "a = '%s'" % (500 * "x"))
}
TOO_LONG: dict[str, tuple[Role, dict[str, Any]]] = {
    "publisher": (Role.SENDER, {"target": Target(address=LONG)}),
    "subscriber": (Role.RECEIVER, {"source": Source(address=LONG)}),
    "direct": (Role.RECEIVER, {"source": Source(address="unicast/" + LONG)}),
    "queue": (Role.RECEIVER, {"source": Source(address="queue/" + "q" * 600)}),
    "selector": (Role.RECEIVER, {"source": Source(address="topic/a", filter=SELECTED)}),
    "reply": (Role.RECEIVER, {"source": Source(dynamic=True, capabilities=(Symbol("c" * 600),))}),
}


@pytest.mark.parametrize("kind", TOO_LONG)
def test_a_link_whose_answer_does_not_fit_is_refused(
    hosted: Hosted, peer: Small, kind: str
) -> None:
    role, fields = TOO_LONG[kind]
    peer.attach(role, **fields)
    assert peer.refusal.condition == Condition.FRAME_SIZE_TOO_SMALL
    assert f"at most {SMALLEST}" in str(peer.refusal.description)
    assert not hosted.container.links
    for vhost in hosted.container.vhosts.values():
        assert all(
            not entry.outlets and not entry.sources for entry in vhost.space.entries.values()
        )
    peer.say(Detach(handle=0, closed=True), b"", ASIDE)
    peer.attach(Role.SENDER, "another", target=Target(address="topic/short"))
    assert len(hosted.container.links) == 1
    assert not peer.of(Close)


def test_a_link_whose_name_fits_into_no_frame_ends_its_session(peer: Small) -> None:
    peer.attach(Role.SENDER, "n" * 1000, target=Target(address="topic/a"))
    error = peer.of(End)[0].error
    assert error is not None
    assert error.condition == Condition.FRAME_SIZE_TOO_SMALL
    assert not peer.of(Close)


def test_an_error_says_as_much_as_fits(peer: Small) -> None:
    peer.attach(Role.SENDER, target=Target(address="topic/" + "*" + ".x" * 400))
    assert peer.refusal.description is not None
    assert peer.refusal.description.endswith("...")
    peer.feed(b"\x00\x00\x00\x10\x02\x00\x00\x63" + b"\x00\x53\x17\x45\x00\x00\x00\x00")
    assert peer.close_error is not None
    assert peer.close_error.condition == Condition.NOT_ALLOWED


def test_an_open_leaves_out_what_does_not_fit() -> None:
    hosted = Hosted(Configuration(id="c" * 64, listeners=[LISTEN]))
    hosted.container.peers.offer(Symbol("cogwork:more"), {Symbol("told"): "x" * 1000})
    small = Small(hosted).greet()
    assert small.of(Open)[0].container_id == "c" * 64
    large = Peer(hosted).greet()
    assert Symbol("cogwork:more") in (large.of(Open)[0].properties or {})


def test_large_messages_come_in_small_frames(hosted: Hosted, peer: Small) -> None:
    consumer = peer.consumer("topic/a", credit=10)
    Peer(hosted).greet().publisher("topic/a").send(b"x" * 10_000)
    assert consumer.bodies == [b"x" * 10_000]
    assert consumer.arrivals[0].frames > 10_000 // SMALLEST
