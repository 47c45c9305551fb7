"""What other containers say of addresses, until they say nothing any more."""

from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.router.mesh.messages import Interest, InterestKind


def said(address: str, consumers: int = 0) -> Interest:
    return Interest(InterestKind.DISK, "", address, consumers=consumers)


def test_the_newest_of_each_container_counts() -> None:
    elsewhere = Elsewhere()
    elsewhere.take("a", said("queue/x", 1))
    elsewhere.take("a", said("queue/x", 2))
    elsewhere.take("b", said("queue/x", 3))
    found = elsewhere.at("queue/x")
    assert {name: interest.consumers for name, interest in found.items()} == {"a": 2, "b": 3}


def test_an_address_is_known_until_the_last_one_takes_it_back() -> None:
    elsewhere = Elsewhere()
    for container in ("a", "b"):
        elsewhere.take(container, said("queue/x"))
    elsewhere.lose("a", said("queue/x"))
    assert list(elsewhere.at("queue/x")) == ["b"]
    assert ("queue/x" in elsewhere, list(elsewhere)) == (True, ["queue/x"])
    elsewhere.lose("b", said("queue/x"))
    elsewhere.lose("b", said("queue/y"))
    assert ("queue/x" in elsewhere, list(elsewhere)) == (False, [])
    assert elsewhere.at("queue/x") == {}


def test_who_goes_over_the_addresses_may_change_them() -> None:
    elsewhere = Elsewhere()
    for address in ("queue/x", "queue/y"):
        elsewhere.take("a", said(address))
    for address in elsewhere:
        elsewhere.lose("a", said(address))
    assert list(elsewhere) == []
