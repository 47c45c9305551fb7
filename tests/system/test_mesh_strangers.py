"""Containers that do not keep to the rules: refused, told why, and the mesh goes on."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Open, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.config.mesh_settings import Link
from cogwork.container.mesh import tunnels
from cogwork.container.mesh.control_connection import ControlConnection
from cogwork.container.mesh.data_connection import DataConnection
from cogwork.container.mesh.dialler import LinkDialler
from cogwork.container.mesh.names import FROM, HOPS, INCARNATION, MESH, NUMBER, TO, VHOST

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.mesh.connection import MeshConnection
    from cogwork.container.mesh.peer_link import PeerLink
    from cogwork.dataplane.link import Link as AmqpLink
    from cogwork.dataplane.session import SessionEndpoint


async def is_well(mesh: Linked, *names: str) -> None:
    """See that a topic goes between containers as ever."""
    there = await mesh.enter((await mesh.client(names[-1])).subscribe("topic/well"))
    await eventually(mesh.is_settled, "what is wanted is known")
    client = await mesh.client(names[0])
    await client.publish("topic/well", "yes")
    (message,) = await asyncio.wait_for(there.take(1), 5)
    assert message.body == "yes"
    await there.shut()


# -- connections


def odd(
    kind: type[MeshConnection], change: Callable[[dict[Symbol, object]], object], **fields: int
) -> type[MeshConnection]:
    """Make a kind of connection that opens in an unusual way."""

    class Odd(kind):  # type: ignore[misc,valid-type]  # a class that is an argument
        def opening(self) -> Open:
            opening: Open = super().opening()
            assert opening.properties is not None
            change(opening.properties)
            for name, value in fields.items():
                setattr(opening, name, value)
            return opening

    return Odd


async def dial(mesh: Linked, name: str, kind: type[MeshConnection]) -> MeshConnection:
    """Have the stranger dial a container with one connection."""
    stranger = mesh.containers["stranger"]
    dialler = LinkDialler(stranger.mesh, Link(url=mesh.address(name)))
    return await asyncio.wait_for(dialler._open(kind, stranger.mesh.diallers.next_number()), 5)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (odd(DataConnection, lambda said: said.pop(NUMBER)), "an open without cogwork:number"),
        (odd(DataConnection, lambda said: said.update({NUMBER: "1"})), "an open without"),
        (odd(DataConnection, lambda said: said.pop(INCARNATION)), "an open without"),
        (odd(DataConnection, lambda said: said.update({MESH: "both"})), "neither data nor control"),
        (odd(DataConnection, lambda said: said.update({MESH: 7})), "neither data nor control"),
        (ControlConnection, "the other connection of the pair is not here"),
        (odd(DataConnection, len, max_frame_size=512), "containers take frames of 32768 bytes"),
    ],
)
@story
async def test_an_open_that_makes_no_link_is_refused_with_the_reason(
    kind: type[MeshConnection], says: str
) -> None:
    async with linked("a-b") as mesh:
        await mesh.start("stranger")
        with pytest.raises(ConnectionError, match=says):
            await dial(mesh, "a", kind)
        assert mesh.containers["a"].mesh.incoming_peers._waiting == {}
        await mesh.stop("stranger")
        await is_well(mesh, "a", "b")


@story
async def test_a_data_connection_alone_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.container.mesh.incoming_peers.WAIT_S", 0.3)
    async with linked("a-b") as mesh:
        await mesh.start("stranger")
        alone = await dial(mesh, "a", DataConnection)
        mesh.containers["stranger"].mesh.diallers.next_number = lambda: alone.number  # type: ignore[method-assign]  # a stranger does as it likes
        with pytest.raises(ConnectionError, match="a second data connection"):
            await dial(mesh, "a", DataConnection)
        assert not alone.connection.is_over
        await eventually(lambda: alone.connection.is_over, "it is closed")
        assert mesh.containers["a"].mesh.incoming_peers._waiting == {}
        with pytest.raises(ConnectionError, match="the other connection of the pair is not here"):
            await dial(mesh, "a", ControlConnection)


async def with_stranger(mesh: Linked) -> None:
    """Add a container next to `a` that knows the way into everything."""
    await mesh.start("stranger", ["a"])
    await mesh.settle()


def control_of(mesh: Linked) -> ControlConnection:
    (peer_link,) = mesh.containers["stranger"].mesh.peer_links
    return peer_link.control


@pytest.mark.parametrize("offence", ["garbage", "no data section", "flood"])
@story
async def test_who_breaks_the_rules_is_cut_off_and_taken_again_after_a_pause(
    offence: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("cogwork.container.mesh.incoming_peers.KEPT_OUT_S", 1.0)
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        incoming_peers = mesh.containers["a"].mesh.incoming_peers
        control = control_of(mesh)
        if offence == "garbage":
            control.send(b"\xff" * 40)
        elif offence == "no data section":
            control._protocol._waiting.append(b"\x00\x53\x77\xa1\x05hello")
            control._protocol._send_waiting()
        else:
            for _ in range(40):
                for _ in range(200):
                    control.send(b"\x07" + b"x" * 60_000)
                await asyncio.sleep(0)
                if incoming_peers.is_kept_out("stranger"):
                    break
        mesh.containers["stranger"].core.flush()
        await eventually(lambda: incoming_peers.is_kept_out("stranger"), "it is cut off")
        peer_links = mesh.containers["a"].mesh.peer_links
        await eventually(
            lambda: all(
                peer_link.lost.is_set() for peer_link in peer_links if peer_link.peer != "b"
            ),
            "the link ends",
        )
        await eventually(
            lambda: (
                "is not taken again for"
                in str(next(iter(mesh.containers["stranger"].mesh.diallers)).problem)
                or not incoming_peers.is_kept_out("stranger")
            ),
            "it is told",
        )
        said = [
            each for each in caplog.messages if each.startswith("mesh: ") and "stranger" in each
        ]
        assert len(said) == 1, said
        await is_well(mesh, "a", "b")
        await eventually(
            lambda: mesh.containers["a"].mesh.mesh.next_hop("stranger") == "stranger",
            "it is linked again",
        )


@story
async def test_another_version_of_the_protocol_is_refused_at_both_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked("a-b") as mesh:
        await mesh.start("stranger")
        stranger = mesh.containers["stranger"].mesh
        stranger.mesh.own.version += 1
        stranger.diallers.add(mesh.address("a"))
        says = "container a speaks version 1 of the mesh protocol; stranger speaks version 2"
        await eventually(lambda: says in caplog.text, "it is logged")
        await eventually(
            lambda: "version" in str(next(iter(stranger.diallers)).problem), "it is told"
        )
        await mesh.stop("stranger")
        await is_well(mesh, "a", "b")


# -- tunnels


def is_taken(session: SessionEndpoint) -> bool:
    return session.remote is not None


def tunnel(mesh: Linked, **changes: object) -> SessionEndpoint:
    """Begin a session from the stranger, by way of `a`, to `b` unless changes say otherwise."""
    (peer_link,) = mesh.containers["stranger"].mesh.peer_links
    says: dict[Symbol, object] = {
        FROM: "stranger",
        TO: "b",
        INCARNATION: mesh.containers["stranger"].incarnation,
        NUMBER: 1_000_000,
        HOPS: 0,
    }
    for name, value in changes.items():
        key = Symbol(f"cogwork:{name}")
        if value is None:
            says.pop(key)
        else:
            says[key] = value
    return peer_link.data.connection.begin_session(says)


async def refusal_of(mesh: Linked, begin: Callable[[], SessionEndpoint]) -> AmqpError:
    """Return with what a session is ended."""
    ended: list[AmqpError | None] = []
    (peer_link,) = mesh.containers["stranger"].mesh.peer_links
    peer_link.data.on_session_ended = lambda _, error: ended.append(error)  # type: ignore[method-assign,assignment]  # a stranger does as it likes
    begin()
    mesh.containers["stranger"].core.flush()
    await eventually(lambda: bool(ended), "it is ended")
    assert ended[0] is not None
    return ended[0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"from": None}, "does not say cogwork:from"),
        ({"to": None}, "does not say cogwork:to"),
        ({"to": 7}, "does not say cogwork:to"),
        ({"incarnation": None}, "does not say cogwork:incarnation"),
        ({"number": "1"}, "does not say cogwork:number"),
        ({"hops": None}, "does not say cogwork:hops"),
        ({"hops": 64}, "more than 64 containers"),
        ({"hops": 63}, "more than 64 containers"),
        ({"hops": -1}, "more than 64 containers"),
        ({"to": "nowhere"}, "no way to container 'nowhere'"),
        ({"to": "stranger"}, "no way to container 'stranger'"),
        ({"from": "a"}, "comes back to where it began"),
        ({"from": "b"}, "comes back to where it began"),
        ({"to": "a", "number": 0}, "a newer tunnel is there already"),
        ({"to": "b", "number": 0}, "a newer tunnel is there already"),
    ],
)
@story
async def test_a_tunnel_that_cannot_be_is_ended_with_the_reason(
    changes: dict[str, object], says: str
) -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        if changes.get("number") == 0:
            tunnel(mesh, to=changes["to"])
            mesh.containers["stranger"].core.flush()
        error = await refusal_of(mesh, lambda: tunnel(mesh, **changes))
        assert says in str(error.description)
        connections = [
            connection
            for each in mesh.containers.values()
            for connection in each.mesh.data_connections()
        ]
        await eventually(
            lambda: all(len(each.relayed) <= 1 for each in connections), "nothing is left of it"
        )
        await is_well(mesh, "a", "b")
        await is_well(mesh, "b", "stranger")


@story
async def test_a_newer_tunnel_ends_the_one_before() -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        first = tunnel(mesh, number=5)
        second = tunnel(mesh, number=6)
        mesh.containers["stranger"].core.flush()
        await eventually(lambda: first.is_over, "the first is ended")
        assert not second.is_over
        third = tunnel(mesh, number=1, incarnation=mesh.containers["stranger"].incarnation + 1)
        mesh.containers["stranger"].core.flush()
        await eventually(lambda: second.is_over, "the second is ended")
        assert not third.is_over


@story
async def test_invented_names_of_tunnels_are_forgotten_and_those_of_containers_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tunnels, "CONTAINERS_MAX", 8)
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        tunnel(mesh, number=5)
        for number in range(50):
            ghost = tunnel(mesh, **{"from": f"ghost{number}"})
            mesh.containers["stranger"].core.flush()
            await eventually(partial(is_taken, ghost), "it is taken")
        error = await refusal_of(mesh, lambda: tunnel(mesh, number=4))
        assert "a newer tunnel is there already" in str(error.description)
        assert len(mesh.containers["b"].mesh.tunnels._latest) <= 9
        await is_well(mesh, "a", "b")


# -- links


class Watch:
    """What becomes of a link."""

    def __init__(self) -> None:
        self.error: AmqpError | None = None
        self.is_attached = False

    def attached(self, link: AmqpLink) -> None:
        self.is_attached = (
            link.remote is not None
            and (link.remote.source if link.role is Role.RECEIVER else link.remote.target)
            is not None
        )

    def stopping(self, link: AmqpLink) -> None:
        pass

    def detached(self, _link: AmqpLink, error: AmqpError | None) -> None:
        self.error = error


def is_refused(watch: Watch) -> bool:
    return watch.error is not None


def attach(session: SessionEndpoint, role: Role, vhost: object = "", **fields: Any) -> Watch:
    """Attach a link that carries nothing."""
    link = session.open_link(f"odd {len(session.links)}", role)
    link.context = watch = Watch()
    usual: dict[str, Any] = {"source": Source(), "target": Target(), "properties": {VHOST: vhost}}
    link.attach(**(usual | fields))
    session.connection.flush()
    return watch


@pytest.mark.parametrize(
    ("role", "fields", "says"),
    [
        (Role.SENDER, {"vhost": "red"}, "a virtual host that is not served here"),
        (Role.SENDER, {"vhost": 7}, "a virtual host that is not served here"),
        (Role.SENDER, {"target": None}, "a sender without a target"),
        (Role.SENDER, {"target": Target(address="topic/a.*")}, "holds wildcards"),
        (Role.SENDER, {"target": Target(address="topic/")}, "names no topic"),
        (Role.SENDER, {"target": Target(address="_reply/b.1/1")}, "has gone"),
        (Role.RECEIVER, {"source": None}, "a receiver whose source names no queue"),
        (Role.RECEIVER, {"source": Source()}, "a receiver whose source names no queue"),
        (Role.RECEIVER, {"source": Source(address="topic/a")}, "is not a queue"),
        (Role.RECEIVER, {"source": Source(address="unicast/a")}, "is not a queue"),
        (Role.RECEIVER, {"source": Source(address="$management")}, "is not a queue"),
    ],
)
@story
async def test_a_link_that_cannot_be_is_refused_with_the_reason(
    role: Role, fields: dict[str, Any], says: str
) -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        session = tunnel(mesh)
        watch = attach(session, role, **fields)
        await eventually(lambda: watch.error is not None, "it is refused")
        assert watch.error is not None
        assert says in str(watch.error.description)
        assert not session.is_over
        good = attach(session, Role.SENDER, target=Target(address="topic/a"))
        await eventually(lambda: good.is_attached, "the tunnel is as good as ever")


@story
async def test_a_selector_that_is_none_is_refused() -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        key = Symbol("apache.org:selector-filter:string")
        bad: dict[Symbol, object] = {
            key: Described(ULong(0x0000_468C_0000_0004), "colour = = 'red'")
        }
        session = tunnel(mesh)
        watch = attach(session, Role.RECEIVER, source=Source(address="work/a", filter=bad))
        await eventually(lambda: watch.error is not None, "it is refused")
        assert watch.error is not None
        assert watch.error.condition == Condition.INVALID_FIELD


@story
async def test_links_outside_of_tunnels_are_refused() -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        there = await mesh.enter((await mesh.client("stranger")).subscribe("topic/a"))
        await mesh.settle()
        await (await mesh.client("a")).publish("topic/a", 1)
        (peer_link,) = mesh.containers["stranger"].mesh.peer_links
        session = next(
            each
            for each in peer_link.data.connection.sessions
            if each.remote is not None and each.remote.remote_channel is None
        )
        watch = attach(session, Role.SENDER, target=Target(address="topic/a"))
        await eventually(lambda: watch.error is not None, "it is refused")
        assert watch.error is not None
        assert watch.error.description == "a link outside of a tunnel"
        await (await mesh.client("a")).publish("topic/a", 2)
        assert [each.body for each in await there.take(2)] in ([1, 2], [1])


@story
async def test_a_control_connection_has_no_other_links() -> None:
    async with linked("a-b") as mesh:
        await with_stranger(mesh)
        control = control_of(mesh)
        session = control.connection.begin_session()
        for watch in (
            attach(session, Role.RECEIVER, source=Source(address="topic/a")),
            attach(session, Role.SENDER, target=Target(address="topic/a")),
        ):
            await eventually(partial(is_refused, watch), "it is refused")
            assert watch.error is not None
            assert watch.error.description == "a control connection has no other links"
        await is_well(mesh, "a", "stranger")


@story
async def test_a_connection_that_breaks_early_is_no_refusal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked("a-b") as mesh:
        await mesh.start("stranger")
        stranger = mesh.containers["stranger"].mesh
        add_peer_link = stranger.add_peer_link
        broken: list[PeerLink] = []

        def break_the_first(
            control: ControlConnection, data: DataConnection, dialler: LinkDialler | None
        ) -> PeerLink:
            peer_link = add_peer_link(control, data, dialler)
            if not broken:
                broken.append(peer_link)
                peer_link.control.connection.on_lost(104)
            return peer_link

        stranger.add_peer_link = break_the_first  # type: ignore[method-assign]  # a stranger does as it likes
        stranger.diallers.add(mesh.address("a"))
        await eventually(lambda: bool(broken), "it has dialled")
        assert not broken[0].was_up
        await eventually(lambda: any(each.was_up for each in stranger.peer_links), "it is linked")
        assert not next(iter(stranger.diallers)).is_refused
        assert "refuses" not in caplog.text
