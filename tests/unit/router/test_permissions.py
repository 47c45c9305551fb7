"""Permissions: denied unless granted."""

import pytest

from cogwork.router.permissions import Grant, GrantError, Permissions, Right

SEND, RECEIVE, MANAGE = Right.SEND, Right.RECEIVE, Right.MANAGE


def granted(address: str, *rights: Right) -> Permissions:
    return Permissions([Grant(address, frozenset(rights))])


def test_nothing_is_allowed_without_a_grant() -> None:
    nobody = Permissions()
    assert not any(nobody.allows(right, "queue/x") for right in Right)
    assert nobody.describe() == "may do nothing"


def test_rights_are_granted_one_by_one() -> None:
    sender = granted("queue/orders", SEND)
    assert sender.allows(SEND, "queue/orders")
    assert sender.allows(SEND, "/queue/orders")
    assert not sender.allows(RECEIVE, "queue/orders")
    assert not sender.allows(SEND, "queue/orders/x")
    assert not sender.allows(SEND, "queue/order")


@pytest.mark.parametrize(
    ("grant", "address", "allowed"),
    [
        ("#", "anything/at.all", True),
        ("queue/#", "queue/orders", True),
        ("queue/#", "queue/orders/eu", True),
        ("queue/#", "queue.orders", True),
        ("queue/#", "queue", True),
        ("queue/#", "queues/orders", False),
        ("/queue/#", "queue/orders", True),
        ("queue/*", "queue/orders", True),
        ("queue/*", "queue/orders/eu", False),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.LAX.AA", True),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.SFO.AA", False),
        ("openstack.org/om/rpc/#", "openstack.org/om/rpc/unicast/e/t", True),
        ("openstack.org/om/rpc/#", "openstack.org/om/notify/unicast/e/t", False),
        ("$management", "$management", True),
    ],
)
def test_grants_by_pattern(grant: str, address: str, allowed: bool) -> None:
    assert granted(grant, SEND).allows(SEND, address) == allowed


@pytest.mark.parametrize(
    ("grant", "address", "allowed"),
    [
        ("topic/flights.#", "topic/flights.#", True),
        ("topic/flights.#", "topic/flights.JFK.*", True),
        ("topic/flights.*", "topic/flights.*", True),
        ("topic/flights.*", "topic/flights.#", False),
        ("topic/flights.*", "topic/#", False),
        ("topic/flights.JFK", "topic/flights.*", False),
        ("topic/flights.#", "topic/#", False),
        ("topic/#.AA", "topic/flights.#.AA", True),
        ("topic/#.AA", "topic/flights.#", False),
        ("topic/*.#", "topic/#.*", True),
    ],
)
def test_nobody_sees_more_by_asking_for_a_pattern(grant: str, address: str, allowed: bool) -> None:
    assert granted(grant, RECEIVE).allows(RECEIVE, address) == allowed


def test_an_address_covered_only_by_several_grants_together_is_denied() -> None:
    user = Permissions([Grant("t/a", frozenset({RECEIVE})), Grant("t/b", frozenset({RECEIVE}))])
    assert user.allows(RECEIVE, "t/a")
    assert not user.allows(RECEIVE, "t/*")


def test_description() -> None:
    user = Permissions(
        [Grant("queue/#", frozenset({RECEIVE, SEND})), Grant("$management", frozenset({MANAGE}))]
    )
    assert user.describe() == "may send and receive on queue/#; manage on $management"
    assert Permissions.everything().describe() == "may send and receive and manage on #"
    assert all(Permissions.everything().allows(right, "x") for right in Right)


def test_rights_may_come_as_strings() -> None:
    grant = Grant("a", frozenset({"send"}))  # type: ignore[arg-type]  # as configuration has them
    assert grant.rights == {SEND}
    assert Permissions([grant]).allows(SEND, "a")


@pytest.mark.parametrize(
    ("address", "rights", "message"),
    [
        ("", ["send"], "address: ''; expected an address"),
        ("/", ["send"], "address: '/'; expected an address"),
        (None, ["send"], "address: None; expected an address"),
        ("a", [], r"rights: \[\]; expected a list of send, receive, manage"),
        ("a", "send", "rights: 'send'; expected a list of send, receive, manage"),
        ("a", ["send", "browse"], "rights: 'browse'; expected one of send, receive, manage"),
    ],
)
def test_a_broken_grant_is_told_what_is_right(address: str, rights: object, message: str) -> None:
    with pytest.raises(GrantError, match=message):
        Grant(address, rights)  # type: ignore[arg-type]  # the point of the test
