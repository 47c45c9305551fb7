"""What a redirect means to a client: which endpoints, and which it does not go to."""

from __future__ import annotations

import pytest

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.redirect import Host, Redirect
from cogwork.client.connection.redirection import redirection_of
from cogwork.client.connection.url import Endpoint, parse_url
from cogwork.client.errors import ConnectError

ORIGIN = "amqps://jo:secret@a.example:5671/blue"


def endpoints(redirect: Redirect, origin: str = ORIGIN) -> list[Endpoint]:
    return redirection_of(parse_url(origin), redirect.to_error()).endpoints


def test_all_but_the_host_stays_as_it_was() -> None:
    found = endpoints(Redirect(Host("b", 5672), (Host("c", 5673), Host("::1", 5674))))
    expected = [f"amqps://jo:secret@{host}/blue" for host in ("b:5672", "c:5673", "[::1]:5674")]
    assert found == [parse_url(url) for url in expected]
    assert [each.password for each in found] == ["secret"] * 3


def test_the_container_there_may_have_another_name_than_its_host() -> None:
    first, second = endpoints(Redirect(Host("10.0.0.2", 1), (Host("c", 2),), hostname="b.example"))
    assert (first.name, second.name) == ("b.example", "c")


def test_a_name_does_not_make_another_endpoint_of_one() -> None:
    (found,) = endpoints(Redirect(Host("b", 1), hostname="b.example"), "amqp://a:1")
    assert found == parse_url("amqp://b:1")
    assert hash(found) == hash(parse_url("amqp://b:1"))


@pytest.mark.parametrize("scheme", ["amqp", "ws"])
@pytest.mark.parametrize("origin", ["amqps://a", "wss://a"])
def test_tls_never_ends_on_the_way(scheme: str, origin: str) -> None:
    with pytest.raises(ConnectError, match="where nothing is encrypted") as raised:
        endpoints(Redirect(Host("b", 1), scheme=scheme), origin)
    assert raised.value.condition == Condition.CONNECTION_REDIRECT


@pytest.mark.parametrize("scheme", ["amqps", "wss"])
def test_tls_may_begin_on_the_way(scheme: str) -> None:
    found = endpoints(Redirect(Host("b", 1), (Host("c", 2),), scheme=scheme), "amqp://a")
    assert [each.scheme for each in found] == [scheme, scheme]


def test_errors_show_no_password() -> None:
    error = AmqpError(condition=Condition.CONNECTION_REDIRECT)
    with pytest.raises(ConnectError) as raised:
        redirection_of(parse_url(ORIGIN), error)
    assert str(raised.value) == (
        "amqps://a.example:5671/blue: a redirect's network-host: nothing, expected a host"
    )


def test_whoever_came_by_a_path_goes_to_a_port() -> None:
    found = endpoints(Redirect(Host("b", 5672)), "unix://jo:secret@/run/a?vhost=blue")
    assert found == [parse_url("amqp://jo:secret@b:5672/blue")]
