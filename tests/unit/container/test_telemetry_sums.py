"""What is counted of addresses and containers that come and go for as long as a container runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosted import Hosted
from wires import Peer

from cogwork.container.telemetry import heartbeat, traffic
from cogwork.container.telemetry.heartbeat import Heartbeat
from cogwork.container.telemetry.settings import Telemetry
from cogwork.container.telemetry.traffic import Traffic

if TYPE_CHECKING:
    import pytest

KEPT, USED = 10, 100


def look(counted: Traffic, hosted: Hosted) -> None:
    container = hosted.container
    counted.look(container.vhosts, container.mesh, iter(container.peers.connections))


def test_addresses_that_have_gone_are_forgotten_and_their_messages_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "ADDRESSES_MAX", KEPT)
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    peer = Peer(hosted).greet()
    standing = peer.publisher("topic/standing")
    for number in range(USED):
        address = f"topic/{number}"
        publisher = peer.publisher(address)
        for each in (publisher, standing):
            each.send(b"counted")
        look(counted, hosted)
        publisher.detach()
        vhost.drop(address)
    assert len(counted.addresses) <= KEPT
    assert counted.addresses["", "topic/standing"].totals[0] == USED
    sums = counted.addresses.values()
    assert counted.forgotten[0] + sum(each.totals[0] for each in sums) == 2 * USED


def test_pairs_without_a_link_are_forgotten_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "PAIRS_MAX", KEPT)
    hosted, counted = Hosted(), Traffic()
    for number in range(USED):
        counted.matrix[f"unicast/{number}", "b"] = [1, 10]
        look(counted, hosted)
        assert len(counted.matrix) <= KEPT


def test_a_record_tells_the_busiest_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PAIRS_TOLD_MAX", 2)
    beat = Heartbeat(Hosted().container, Telemetry())
    beat._traffic.matrix |= {(f"unicast/{each}", "b"): [each, each] for each in (0, 3, 1, 2)}
    assert [row["address"] for row in beat._matrix()] == ["unicast/3", "unicast/2"]
