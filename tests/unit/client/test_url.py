"""A URL says where, as whom, and to which virtual host."""

from __future__ import annotations

import pytest

from cogwork.client.errors import InvalidUrlError
from cogwork.client.url import Endpoint, parse_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("amqp://localhost", Endpoint("amqp", "localhost", 5672)),
        ("amqps://a.example:99", Endpoint("amqps", "a.example", 99)),
        ("ws://[::1]/shop", Endpoint("ws", "::1", 80, vhost="shop")),
        ("wss://h", Endpoint("wss", "h", 443)),
        (
            "amqp://jo%40x:p%2Fw@h:1/a%20b",
            Endpoint("amqp", "h", 1, user="jo@x", password="p/w", vhost="a b"),
        ),
        ("unix:///run/a%20b.sock", Endpoint("unix", "/run/a b.sock", 0)),
        (
            "unix://jo%40x:p%2Fw@/run/a?vhost=a%20b",
            Endpoint("unix", "/run/a", 0, user="jo@x", password="p/w", vhost="a b"),
        ),
    ],
)
def test_what_a_url_says(url: str, expected: Endpoint) -> None:
    assert parse_url(url) == expected


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("localhost:5672", "amqp://"),
        ("http://localhost", "amqp://"),
        ("amqp://", "host"),
        ("amqp://h:many", "a port, a number"),
        ("amqp://h:70000", "up to 65535"),
        ("unix://", "the path of a socket"),
        ("unix:///", "the path of a socket"),
        ("unix://run/a", "from / on"),
        ("unix:///run/a?cost=1", "takes .vhost=NAME"),
        ("unix:///run/a#b", "takes .vhost=NAME"),
    ],
)
def test_what_is_no_url_is_told_what_would_be_one(url: str, hint: str) -> None:
    with pytest.raises(InvalidUrlError, match=hint):
        parse_url(url)


def test_no_text_shows_a_password() -> None:
    endpoint = parse_url("amqp://jo:secret@h/shop")
    assert "secret" not in f"{endpoint} {endpoint!r}"
    assert str(endpoint) == "amqp://h:5672/shop"
    with pytest.raises(InvalidUrlError, match="/ is written %2F") as raised:
        parse_url("amqp://jo:sec/ret@h")
    assert "sec" not in str(raised.value)


def test_what_is_at_a_path_is_shown_without_who_connects_there() -> None:
    endpoint = parse_url("unix://jo:secret@/run/a?vhost=shop")
    assert str(endpoint) == "unix:///run/a?vhost=shop"
    assert "secret" not in repr(endpoint)
    assert endpoint.name == "localhost"
    assert endpoint.is_plain
    assert not endpoint.is_encrypted
