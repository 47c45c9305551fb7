"""Lists of places that may be dialled."""

from __future__ import annotations

import pytest

from cogwork.io.places import Places

PLACES = Places(
    (
        *("10.0.0.0/8", "192.0.2.1:5671", "fd00::/8", "[2001:db8::]/32:5671"),
        *("*.example.org:5671", "Broker.Example", "unix:///run/cogwork/*"),
    )
)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("10.1.2.3", 1),
        ("::ffff:10.1.2.3", 1),
        ("192.0.2.1", 5671),
        ("fd00::1", 1),
        ("2001:db8::1", 5671),
        ("a.example.org", 5671),
        ("A.Example.Org.", 5671),
        ("broker.example", 9),
        ("/run/cogwork/north.sock", 0),
    ],
)
def test_what_is_listed_is_held(host: str, port: int) -> None:
    assert PLACES.hold(host, port)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("11.1.2.3", 1),
        ("0x0a.1.2.3", 1),
        ("10.1", 1),
        ("10.1.2.3.evil.example", 1),
        ("192.0.2.1", 5672),
        ("2001:db8::1", 1),
        ("example.org", 5671),
        ("a.b.example.org", 5671),
        ("a.example.org", 5672),
        ("evil-broker.example", 9),
        ("localhost", 5672),
        ("/run/cogwork/../docker.sock", 0),
        ("/run/docker.sock", 0),
        ("", 0),
    ],
)
def test_what_is_not_is_not(host: str, port: int) -> None:
    assert not PLACES.hold(host, port)


@pytest.mark.parametrize(
    "text", ["", "a b", "10.0.0.1/8", "h:0", "h:99999", "http://h", "[::1", "h:"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no network, no name and no path"):
        Places([text])


def test_an_empty_list_holds_nothing() -> None:
    assert not Places(()).hold("127.0.0.1", 5672)
