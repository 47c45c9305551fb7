"""A container that sends newcomers elsewhere, frame by frame: who has to go, and who counts."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import Begin, Close, Open
from cogwork.amqp.redirect import CONSOLE, FORCE, MESH, REDIRECTS, Host, Redirect
from cogwork.amqp.types import Symbol, UInt
from cogwork.config.limits import Limits
from cogwork.config.settings import Configuration
from cogwork.container.connections.redirect import Newcomer

ELSEWHERE = Redirect(Host("b.example", 5672), (Host("c.example", 5673),), hostname="b.example")


class Rule:
    """Sends everybody elsewhere, and remembers whom it was asked about."""

    def __init__(self, redirect: Redirect | None = ELSEWHERE) -> None:
        self.redirect = redirect
        self.asked: list[Newcomer] = []

    def __call__(self, newcomer: Newcomer) -> Redirect | None:
        self.asked.append(newcomer)
        return self.redirect


@pytest.fixture
def hosted() -> Hosted:
    limits = Limits(connections=2)
    return Hosted(Configuration(id="hosted", listeners=[LISTEN], limits=limits))


@pytest.fixture
def rule(hosted: Hosted) -> Rule:
    rule = Rule()
    hosted.container.peers.redirect = rule
    return rule


def opened(hosted: Hosted, hostname: str | None = None, **properties: object) -> Peer:
    """Connect a peer whose open has these properties."""
    peer = Peer(hosted)
    peer.feed(AMQP_HEADER)
    named = {Symbol(f"cogwork:{key}"): value for key, value in properties.items()}
    peer.say(Open(container_id="peer", hostname=hostname, properties=named or None))
    return peer


def test_who_is_no_container_is_not_linked_with(hosted: Hosted) -> None:
    """As the readers of Arrow are, who listen beside one."""
    hosted.container.peers.mesh = None
    peer = opened(hosted, **cast("Any", {MESH.removeprefix("cogwork:"): "data"}))
    hosted.settle_down()
    assert condition(peer) == Condition.NOT_ALLOWED


def condition(peer: Peer) -> str | None:
    """Return what a connection was closed with."""
    close = next((said for _, said in peer.heard if isinstance(said, Close)), None)
    return close.error.condition if close is not None and close.error is not None else None


def test_a_newcomer_hears_an_open_then_where_to_go(hosted: Hosted, rule: Rule) -> None:
    peer = opened(hosted)
    peer.begin()  # on its way already; nobody answers
    (_, first), (_, second) = peer.heard
    assert isinstance(first, Open)
    assert isinstance(second, Close)
    assert second.error is not None
    assert second.error.condition == Condition.CONNECTION_REDIRECT
    assert Redirect.from_error(second.error) == ELSEWHERE
    assert hosted.container.peers.redirected == 1
    assert hosted.container.peers.clients == 0
    peer.say(Close())
    assert not hosted.container.peers.connections
    assert rule.asked == [Newcomer("ws", is_near=True)]


def test_one_that_does_not_answer_the_close_is_given_up(hosted: Hosted, rule: Rule) -> None:
    opened(hosted)
    for later_s in (1.0, 10.0):
        hosted.container.peers.sweep(hosted.core.now + later_s)
    assert rule.asked
    assert not hosted.container.peers.connections


@pytest.mark.parametrize("name", [FORCE, CONSOLE])
def test_some_are_never_sent_away(hosted: Hosted, rule: Rule, name: Symbol) -> None:
    peer = opened(hosted, **cast("Any", {name.removeprefix("cogwork:"): True}))
    peer.begin()
    assert isinstance(peer.heard[-1][1], Begin)
    assert rule.asked == []


def test_other_containers_are_not_sent_away(hosted: Hosted, rule: Rule) -> None:
    opened(hosted, **cast("Any", {MESH.removeprefix("cogwork:"): True}))
    assert rule.asked == []
    assert hosted.container.peers.redirected == 0


@pytest.mark.parametrize("force", [False, "true", 1, None])
def test_only_true_is_force(hosted: Hosted, rule: Rule, force: object) -> None:
    assert condition(opened(hosted, force=force)) == Condition.CONNECTION_REDIRECT


@pytest.mark.parametrize(("told", "known"), [(UInt(3), 3), ("3", 0), (None, 0), ([3], 0)])
def test_redirects_that_a_newcomer_tells_of_are_known(
    hosted: Hosted, rule: Rule, told: object, known: int
) -> None:
    opened(hosted, **cast("Any", {REDIRECTS.removeprefix("cogwork:"): told}))
    assert [newcomer.redirects for newcomer in rule.asked] == [known]


def test_clients_are_counted_and_nobody_else(hosted: Hosted) -> None:
    peers = hosted.container.peers
    client = opened(hosted)
    assert peers.clients == 1
    opened(hosted, mesh={}).vanish()
    opened(hosted, console=True).vanish()
    Peer(hosted).vanish()
    assert peers.clients == 1
    client.vanish()
    assert peers.clients == 0


def test_one_too_many_goes_elsewhere_where_there_is_such_a_place(
    hosted: Hosted, rule: Rule
) -> None:
    rule.redirect = None
    for _ in range(2):
        opened(hosted)
    assert condition(opened(hosted)) == Condition.RESOURCE_LIMIT_EXCEEDED
    rule.redirect = ELSEWHERE
    assert condition(opened(hosted)) == Condition.CONNECTION_REDIRECT
    assert hosted.container.peers.clients == 2


def test_a_virtual_host_that_is_not_here_is_nowhere(hosted: Hosted, rule: Rule) -> None:
    assert condition(opened(hosted, "vhost:blue")) == Condition.NOT_FOUND
    assert rule.asked == []


def test_a_rule_that_fails_costs_one_connection(hosted: Hosted) -> None:
    def broken(_newcomer: Newcomer) -> Redirect | None:
        raise RuntimeError("broken")

    faults = hosted.container.faults
    hosted.container.peers.redirect = broken
    peer = Peer(hosted)
    peer.feed(AMQP_HEADER)
    with pytest.raises(AssertionError, match="broken"):
        peer.say(Open(container_id="peer"))
    faults.clear()
    hosted.settle_down()
    assert condition(peer) == Condition.INTERNAL_ERROR
    hosted.container.peers.redirect = None
    assert condition(opened(hosted)) is None
