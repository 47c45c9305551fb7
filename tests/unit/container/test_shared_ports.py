"""Containers that share a port: who dials meets one of them by chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hosted import Hosted
from wires import Peer

from cogwork.amqp.extensions import ESTABLISHMENT_FAILED
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import Close, Open
from cogwork.amqp.redirect import MESH, Redirect
from cogwork.config.mesh_settings import MeshOptions
from cogwork.container.connections.balance import Balance
from cogwork.container.connections.redirect import Newcomer
from cogwork.container.mesh.names import INCARNATION, NUMBER, OTHER_CONTAINER
from cogwork.router.mesh.messages import Figures

OWN = "amqp://h:5672"
OTHER = "amqp://other:5672"


def test_the_second_connection_of_a_pair_whose_first_is_elsewhere_is_closed() -> None:
    peer = Peer(Hosted())
    peer.feed(AMQP_HEADER)
    properties = {MESH: "control", NUMBER: 7, INCARNATION: 8}
    peer.say(Open(container_id="south", max_frame_size=32_768, properties=properties))
    (_, opened), (_, closed) = peer.heard
    assert isinstance(opened, Open)
    assert (opened.properties or {}).get(ESTABLISHMENT_FAILED) is True
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.condition == OTHER_CONTAINER


def redirects(hosts: dict[str, tuple[str, ...]]) -> list[str]:
    """Return where a drained container that listens at `OWN` sends three newcomers."""
    figures = Figures(connections=0, messages=0, memory_bytes=0, queues=0, peers=0)
    links = {name: SimpleNamespace(figures=figures) for name in hosts}
    known = SimpleNamespace(
        neighbours=SimpleNamespace(active=links), set_figures=lambda figures: None
    )
    mesh = SimpleNamespace(mesh=known, hosts=hosts, set_hosts=lambda urls: None)
    peers = SimpleNamespace(clients=5, redirect=None)
    balance = Balance(cast("Any", mesh), cast("Any", peers), {}, MeshOptions())
    balance.advertise((OWN,))
    balance.drain()
    balance.tick(0.0)
    redirect = cast("Any", peers.redirect)
    found: list[Redirect | None] = [redirect(Newcomer("amqp")) for _ in range(3)]
    return [str(each.target) for each in found if each is not None]


def test_nobody_is_sent_to_a_worker_behind_the_same_port() -> None:
    assert redirects({"north.1": (OWN,)}) == []
    assert redirects({"north.1": (OWN,), "south": (OTHER,)}) == ["other:5672"] * 3
