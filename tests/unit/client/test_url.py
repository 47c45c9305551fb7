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
