"""Permissions: who may do what where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from cogwork.config.settings import RIGHTS, Anonymous, Configuration, Permission, User
from cogwork.container.security import permissions
from cogwork.container.security.access import Access, Permits
from cogwork.container.security.log import SecurityLog
from cogwork.container.security.permissions import Permissions, permissions_of
from cogwork.router.addresses import MAX_ADDRESS_LENGTH
from cogwork.router.patterns import misplaced_wildcard

if TYPE_CHECKING:
    from cogwork.config.settings import Right


def may(pattern: str, address: str) -> bool:
    granted = Permissions([Permission(address=pattern, rights=["receive"])])
    return granted.allows("receive", address)


@pytest.mark.parametrize(
    ("pattern", "address", "covered"),
    [
        ("#", "anything/at.all", True),
        ("queue/#", "queue/a.b/c", True),
        ("queue/#", "queues/a", False),
        ("queue/*", "queue/a", True),
        ("queue/*", "queue/a.b", False),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.LAX.AA.1", True),
        ("topic/flights.*.LAX.#", "topic/flights.JFK.SFO", False),
        ("/queue/a", "queue/a", True),
        ("queue/a", "/queue/a", True),
        ("orders", "Orders", False),
    ],
)
def test_what_a_pattern_covers(pattern: str, address: str, covered: bool) -> None:
    assert may(pattern, address) is covered


@pytest.mark.parametrize(
    ("permission", "asked", "covered"),
    [
        ("topic/flights.#", "topic/flights.#", True),
        ("topic/flights.#", "topic/flights.*.LAX", True),
        ("topic/flights.*", "topic/flights.*", True),
        ("topic/flights.*", "topic/flights.#", False),
        ("topic/flights.JFK", "topic/flights.*", False),
        ("topic/flights.JFK", "topic/#", False),
    ],
)
def test_a_pattern_asked_for_must_be_covered_whole(
    permission: str, asked: str, covered: bool
) -> None:
    assert may(permission, asked) is covered


def test_what_is_too_long_to_be_an_address_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With patterns of several wildcards, thirty kilobytes of dots took seconds."""
    looked_at: list[int] = []

    def covering(_wide: list[str], narrow: list[str]) -> bool:
        looked_at.append(len(narrow))
        return True

    monkeypatch.setattr(permissions, "covers", covering)
    assert not may("a/#.b.#", "a." * 15_000)
    assert looked_at == []
    assert may("a/#.b.#", "/" + "a" * MAX_ADDRESS_LENGTH)


def test_rights_and_virtual_hosts_are_kept_apart() -> None:
    granted = Permissions(
        [
            Permission(address="queue/#", rights=["send"]),
            Permission(address="#", rights=["receive"], vhost="blue"),
        ]
    )
    assert granted.allows("send", "queue/a")
    assert not granted.allows("send", "queue/a", "blue")
    assert not granted.allows("receive", "queue/a")
    assert granted.allows("receive", "queue/a", "blue")
    assert not granted.allows("manage", "queue/a")


def test_only_who_says_so_may_do_something_in_all_virtual_hosts() -> None:
    rights: list[Right] = ["send", "receive", "manage"]
    here = [Permission(address=each, rights=rights) for each in ("#", "$management")]
    assert Permissions(here).are_all()
    assert not Permissions(here).are_all("blue")
    assert not Permissions(here).allows("manage", "$management", "blue")
    everywhere = Permissions([structs.replace(each, vhost="*") for each in here])
    assert everywhere.are_all()
    assert everywhere.are_all("blue")
    assert everywhere.allows("manage", "$management", "blue")


def test_a_stranger_has_no_permissions_and_anonymous_has_its_own() -> None:
    alice = User(name="alice", permissions=[Permission(address="a", rights=["send"])])
    configuration = Configuration(users=[alice])
    of_alice = permissions_of(configuration, "alice")
    anonymous = permissions_of(configuration, None)
    assert of_alice is not None
    assert of_alice.allows("send", "a")
    assert not of_alice.allows("send", "b")
    assert anonymous is not None
    assert anonymous.are_none
    assert permissions_of(configuration, "mallory") is None


def test_anonymous_may_do_everything_only_while_there_is_no_user() -> None:
    nobody = permissions_of(Configuration(), None)
    assert nobody is not None
    assert nobody.are_all("blue")
    said = Anonymous(permissions=[Permission(address="a", rights=["send"])])
    for users in ([], [User(name="alice")]):
        as_said = permissions_of(Configuration(users=users, anonymous=said), None)
        assert as_said is not None
        assert as_said.allows("send", "a")
        assert not as_said.allows("send", "b")
    access = Access(Configuration(users=[User(name="alice")]), SecurityLog("box", None))
    assert not access.is_container(None)
    access.close()


OWN = ["$management", "/$management", "$mesh/x", "_arrow/x", "stream/$audit", "stream.$schemas"]


@pytest.mark.parametrize("pattern", ["#", "*", "*/#", "*/*", "stream/#", "stream/*", "#/$audit"])
@pytest.mark.parametrize("address", OWN)
@pytest.mark.parametrize("right", RIGHTS)
def test_no_wildcard_reaches_the_broker_s_own(pattern: str, address: str, right: Right) -> None:
    granted = Permissions([Permission(address=pattern, rights=list(RIGHTS))])
    assert not granted.allows(right, address)
    assert granted.allows(right, "queue") is (pattern in {"#", "*", "*/#"})


def test_the_broker_s_own_are_reached_by_their_names() -> None:
    rights = [Permission(address=each, rights=["send", "receive"]) for each in OWN]
    reader = Permissions(rights)
    assert all(reader.allows("receive", each) for each in OWN)
    assert reader.allows("send", "$management")
    assert not reader.allows("send", "stream/$audit"), "its records are evidence"
    writer = Permissions([Permission(address="stream/$audit", rights=["manage"])])
    assert writer.allows("send", "stream/$audit")
    assert not writer.allows("receive", "stream/$audit")
    assert not writer.allows("send", "stream/$telemetry")
    below = Permissions([Permission(address="$management/#", rights=["send"])])
    assert below.allows("send", "$management")
    assert below.allows("send", "$management/x")


def test_who_may_manage_the_management_may_do_everything_at_the_broker_s_own() -> None:
    operator = Permissions([Permission(address="$management", rights=["manage"])])
    assert all(operator.allows(right, each) for right in RIGHTS for each in OWN)
    assert not operator.allows("send", "queue/a")
    assert not operator.are_all()


def test_reply_addresses_are_for_whoever_was_given_them() -> None:
    """And a word that looks like one of the broker's further on is the application's."""
    everybody = Permissions([Permission(address="#", rights=["send"])])
    assert everybody.allows("send", "_reply/a.1/1")
    assert everybody.allows("send", "broadcast/rpc/$direct")
    assert everybody.allows("send", "queue/_mine")


def test_containers_reach_everything_with_their_wildcards() -> None:
    mesh = User(name="b", permissions=[Permission(address="#", rights=list(RIGHTS))], mesh=True)
    found = permissions_of(Configuration(users=[mesh]), "b")
    assert found is not None
    assert found.are_all()
    assert found.are_all("blue")
    assert found.allows("manage", "$management")


@pytest.mark.parametrize(
    ("pattern", "word"), [("a.*.#", None), ("a.b*", "b*"), ("##", "##"), ("a/#b", "#b")]
)
def test_wildcards_are_whole_words(pattern: str, word: str | None) -> None:
    assert misplaced_wildcard(pattern) == word


@pytest.mark.parametrize(
    ("anonymous", "links"),
    [
        (Anonymous(), True),
        (Anonymous(mesh=False), False),
        (Anonymous(permissions=[]), False),
        (Anonymous(permissions=[Permission(address="#", rights=["send", "receive"])]), False),
        (Anonymous(permissions=[Permission(address="#", rights=list(RIGHTS))]), False),
        (Anonymous(permissions=[], mesh=True), True),
    ],
)
def test_who_may_do_little_without_a_name_does_not_do_all_by_a_link(
    anonymous: Anonymous, links: bool
) -> None:
    access = Access(Configuration(anonymous=anonymous), SecurityLog("box", None))
    assert access.is_container(None) is links
    access.close()


def test_what_is_remembered_of_addresses_is_bounded() -> None:
    permits = Permits(Permissions([Permission(address="a/#", rights=["send"])]), None, print)
    addresses = [b"a/%05d" % number + b"x" * 1_000 for number in range(5_000)]
    assert all(permits[address] for address in addresses)
    assert sum(map(len, permits)) <= 1 << 20
    assert not permits[b"a/" + b"x" * 30_000]
    assert not permits[b"b"]
    assert addresses[0] in permits


def test_what_may_not_be_sent_where_messages_name_it_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    permits = Permits(Permissions([Permission(address="rpc/#", rights=["send"])]), None, print)
    assert permits[b"rpc/compute"]
    assert not caplog.records
    assert permits[b"_reply/a.1/1"]
    assert permits[b"/_reply/a.1/1"]
    assert not caplog.records
    assert not permits[b"_replies/a.1/1"]
    assert not permits[b"_replies/a.1/2"]
    (record,) = caplog.records
    assert "no permission to send to '_replies/a.1/1'" in record.getMessage()


@pytest.mark.parametrize("address", ["", "/", ".", "//"])
def test_an_address_that_names_nothing_is_none_of_the_brokers_own(address: str) -> None:
    assert Permissions([Permission(address="#", rights=["send"])]).allows("send", address)
    assert not Permissions([]).allows("send", address)
