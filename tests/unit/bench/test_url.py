"""URLs of servers to be measured."""

import pytest

from cogwork.bench.url import PeerError, Url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("amqp://localhost", Url("localhost", 5672)),
        ("127.0.0.1:7000", Url("127.0.0.1", 7000)),
        ("amqps://h/", Url("h", 5671, is_tls=True)),
        (
            "amqp://u:p%40@h:1/blue",
            Url("h", 1, user="u", password="p@", virtual_host="blue"),  # no secret
        ),
        (
            "unix://u:p%40@/run/a?vhost=blue",
            Url("localhost", 0, user="u", password="p@", virtual_host="blue", path="/run/a"),
        ),
    ],
)
def test_urls_are_read(text: str, url: Url) -> None:
    assert Url.parse(text) == url


def test_the_virtual_host_is_what_open_says() -> None:
    assert Url.parse("amqp://h/blue").hostname == "vhost:blue"
    assert Url.parse("amqp://h").hostname == "h"


@pytest.mark.parametrize("text", ["http://h", "amqp://", "amqp://h:port", "", "unix://a"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(PeerError, match=r"invalid URL|[Pp]ort|the path of a socket"):
        Url.parse(text)
