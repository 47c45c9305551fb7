"""Redirects: what a close says of where to go, written, read, and read when it is wrong."""

from __future__ import annotations

import pytest

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.performatives import Close, decode_performative, encode_performative
from cogwork.amqp.redirect import KNOWN_HOSTS_MAX, Host, Redirect, host_of
from cogwork.amqp.types import Array, Symbol, UInt, UShort


def error_of(**info: object) -> AmqpError:
    """Make an error whose info map has these entries; `_` stands for `-`."""
    return AmqpError(
        condition=Condition.CONNECTION_REDIRECT,
        info={Symbol(key.replace("_", "-")): value for key, value in info.items()},
    )


def info_with(**info: object) -> AmqpError:
    return error_of(**{"network_host": "b.example", "port": 5672} | info)


@pytest.mark.parametrize(
    "redirect",
    [
        Redirect(Host("b.example", 5672), hostname="b.example"),
        Redirect(Host("::1", 1), (Host("c", 2), Host("fe80::1", 65_535)), hostname="b"),
        Redirect(Host("b", 2), hostname="b", scheme="amqps", address="queue/there"),
    ],
)
def test_what_is_written_is_read_again(redirect: Redirect) -> None:
    close = Close(error=redirect.to_error())
    read, _ = decode_performative(encode_performative(close), 0)
    assert isinstance(read, Close)
    assert read.error is not None
    assert Redirect.from_error(read.error) == redirect


def test_the_info_map_is_that_of_the_specification() -> None:
    error = Redirect(Host("b", 5673), (Host("c", 5674),)).to_error(Condition.LINK_REDIRECT)
    assert error.condition == "amqp:link:redirect"
    assert error.info == {
        "hostname": "b",
        "network-host": "b",
        "port": 5673,
        "known-hosts": ["c:5674"],
    }


def test_known_hosts_leave_room_in_the_frame() -> None:
    many = tuple(Host(f"host-{number}.example", 5672) for number in range(100))
    size_bytes = 512
    error = Redirect(Host("b", 5672), many).to_error(frame_size_bytes=size_bytes)
    assert len(encode_performative(Close(error=error))) < size_bytes
    assert Redirect.from_error(error).known_hosts == many[:10]


@pytest.mark.parametrize("port", [5672, UShort(5672), UInt(5672)])
def test_a_port_is_of_any_integer_type(port: int) -> None:
    assert Redirect.from_error(info_with(port=port)).target == ("b.example", 5672)


@pytest.mark.parametrize(
    "hosts",
    [["c:1", "[::1]:2"], Array(["c:1", "[::1]:2"], str), [Symbol("c:1"), Symbol("[::1]:2")]],
)
def test_known_hosts_are_a_list_or_an_array(hosts: object) -> None:
    found = Redirect.from_error(info_with(known_hosts=hosts))
    assert found.known_hosts == (("c", 1), ("::1", 2))


def test_of_too_many_known_hosts_the_first_are_kept() -> None:
    found = Redirect.from_error(info_with(known_hosts=[f"c:{port}" for port in range(1, 1000)]))
    assert len(found.known_hosts) == KNOWN_HOSTS_MAX
    assert found.known_hosts[0] == ("c", 1)


def test_an_empty_hostname_says_nothing() -> None:
    assert Redirect.from_error(info_with(hostname="")).hostname is None


@pytest.mark.parametrize(
    ("info", "wrong"),
    [
        ({}, "network-host: nothing, expected a host"),
        ({"network_host": "", "port": 1}, "network-host: nothing"),
        ({"network_host": None, "port": 1}, "network-host: nothing"),
        ({"network_host": 7, "port": 1}, "network-host: 7, expected a string"),
        ({"network_host": b"b", "port": 1}, "network-host: b'b', expected a string"),
        ({"network_host": "b c", "port": 1}, "network-host: 'b c', expected a host"),
        ({"network_host": "b\r\nX: y", "port": 1}, "expected a host"),
        ({"network_host": "user@b", "port": 1}, "expected a host"),
        ({"network_host": "b/blue", "port": 1}, "expected a host"),
        ({"network_host": "b:1", "port": 1}, "expected a host"),
        ({"network_host": "b" * 256, "port": 1}, "expected a host"),
        ({"network_host": "b", "hostname": "vhost:blue", "port": 1}, "hostname: 'vhost:blue'"),
        ({"network_host": "b"}, "port: nothing, expected 1 to 65535"),
        ({"network_host": "b", "port": "5672"}, "port: '5672'"),
        ({"network_host": "b", "port": True}, "port: True"),
        ({"network_host": "b", "port": 0}, "port: 0"),
        ({"network_host": "b", "port": -1}, "port: -1"),
        ({"network_host": "b", "port": 65_536}, "port: 65536"),
        ({"network_host": "b", "port": 1, "scheme": 3}, "scheme: 3, expected a string"),
        ({"network_host": "b", "port": 1, "address": [1]}, "address: [1], expected a string"),
        ({"network_host": "b", "port": 1, "known_hosts": "c:1"}, "known-hosts: 'c:1', expected"),
        ({"network_host": "b", "port": 1, "known_hosts": {"c": 1}}, "expected a list of HOST:PORT"),
        ({"network_host": "b", "port": 1, "known_hosts": [5]}, "HOST:PORT is expected, not '5'"),
        ({"network_host": "b", "port": 1, "known_hosts": ["c"]}, "HOST:PORT is expected, not 'c'"),
    ],
)
def test_what_is_wrong_is_named(info: dict[str, object], wrong: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        Redirect.from_error(error_of(**info))
    assert raised.value.condition == Condition.INVALID_FIELD
    assert wrong in raised.value.description
    assert len(raised.value.description) < 200


def test_no_info_at_all_names_no_host() -> None:
    with pytest.raises(ProtocolError, match="network-host: nothing"):
        Redirect.from_error(AmqpError(condition=Condition.CONNECTION_REDIRECT))


@pytest.mark.parametrize(
    "text",
    [
        *("", "b", ":1", "b:", "b:0", "b:65536", "b:1x", "b:-1", "::1:5672", "[b]:1", "[]:1"),
        *("[::1]", "b c:1", "b:1 ", "amqp://b:1", "a@b:1", "b:1/blue", "b:٣"),
    ],
)
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT is expected"):
        host_of(text)


@pytest.mark.parametrize("text", ["b:1", "127.0.0.1:5672", "[::1]:5672", "[fe80::1%eth0]:65535"])
def test_a_host_is_written_as_it_is_read(text: str) -> None:
    assert str(host_of(text)) == text


def test_loopback_is_this_machine() -> None:
    assert all(Host(name, 1).is_loopback for name in ("LocalHost", "127.8.0.1", "127.1", "::1"))
    assert not any(
        Host(name, 1).is_loopback
        for name in ("localhost.example", "127.evil.example", "127.0.0.1.example", "fe80::1")
    )
