"""A URL says where, as whom, and to which virtual host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cogwork import broadcast, connect
from cogwork.client.connection.url import Endpoint, endpoints_of, parse_url
from cogwork.client.errors import InvalidUrlError
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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


A, B = Endpoint("amqp", "a", 5672), Endpoint("amqps", "b", 99)


@pytest.mark.parametrize(
    "urls",
    [
        "amqp://a,amqps://b:99",
        "amqp://a, amqps://b:99",
        ["amqp://a", "amqps://b:99"],
        ("amqp://a", B),
        iter(["amqp://a,amqps://b:99"]),
    ],
)
def test_several_urls_are_a_list_or_stand_between_commas(urls: Iterable[str | Endpoint]) -> None:
    assert endpoints_of(urls) == [A, B]


def test_a_comma_in_a_password_separates_nothing() -> None:
    found = endpoints_of("amqp://jo:a,b@h/x,amqp://i")
    assert [(each.host, each.password, each.vhost) for each in found] == [
        ("h", "a,b", "x"),
        ("i", "", ""),
    ]


@pytest.mark.parametrize(
    ("urls", "hint"),
    [
        ([], "no URL is given"),
        ("amqp://a,b", "each begins with its scheme"),
        ("amqp://a:1,b:2", "each begins with its scheme"),
        (["amqp://a", "b"], "unknown URL scheme 'b'"),
        (["amqp://a", 5], "not 5"),
    ],
)
def test_what_is_no_list_of_urls_says_so(urls: Any, hint: str) -> None:
    with pytest.raises(InvalidUrlError, match=hint):
        endpoints_of(urls)


@pytest.mark.parametrize("take", [lambda urls: broadcast(urls, "stream/s"), ArrowClient, connect])
def test_whatever_takes_a_url_refuses_an_empty_list(take: Callable[[list[str]], object]) -> None:
    with pytest.raises(InvalidUrlError, match="no URL is given"):
        take([])
