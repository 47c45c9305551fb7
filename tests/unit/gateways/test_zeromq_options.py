"""The options of the ZeroMQ gateway: what is refused, and how that is said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import zmq.auth

from cogwork.gateways.zeromq.curve import keys_of
from cogwork.gateways.zeromq.errors import GatewayOptionError
from cogwork.gateways.zeromq.options import demand_identities, options_of

if TYPE_CHECKING:
    from pathlib import Path


def test_loopback_is_the_default_and_needs_no_keys() -> None:
    options = options_of({})
    assert set(options.endpoints) == {"peer2peer", "roundrobin", "pubsub"}
    assert all(each.startswith("tcp://127.0.0.1:") for each in options.endpoints.values())
    assert keys_of(options) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"roundrobin": "tcp://0.0.0.0:1"}, "roundrobin: tcp://0.0.0.0:1 is not on loopback"),
        ({"pubsub": "tcp://*:1"}, "pubsub: tcp://*:1 is not on loopback"),
        ({"pubsub": "tcp://127.0.0.1.example.org:1"}, "is not on loopback"),
        ({"pubsub": "udp://127.0.0.1:0"}, "tcp://HOST:PORT or ipc://PATH is expected"),
        ({"curve_clients_dir": "x"}, "curve_clients_dir: needs curve_secret_file, too"),
        ({"lease": 5}, "unknown field `lease`: there are peer2peer, "),
        ({"lease_s": 0}, "gateway.zeromq.lease_s: "),
        ({"sessions": "many"}, "gateway.zeromq.sessions: "),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, object], says: str) -> None:
    with pytest.raises(GatewayOptionError) as found:
        options_of(given)
    assert says in str(found.value)


@pytest.mark.parametrize("endpoint", ["tcp://0.0.0.0:1", "tcp://lo:1", "tcp://127.evil.example:1"])
def test_off_loopback_every_client_has_a_key(endpoint: str) -> None:
    given: dict[str, object] = {"roundrobin": endpoint, "curve_secret_file": "x", "user": "u"}
    with pytest.raises(GatewayOptionError, match="each client has a key of its own"):
        options_of(given)
    assert options_of({**given, "curve_clients_dir": "y"}).endpoints["roundrobin"] == endpoint


def test_localhost_is_an_address_whatever_a_file_says_of_it() -> None:
    options = options_of({"roundrobin": "tcp://localhost:7"})
    assert options.endpoints["roundrobin"] == "tcp://127.0.0.1:7"


@pytest.mark.parametrize(
    ("given", "users", "says"),
    [
        ({}, ["a"], "user: is missing: where there are users"),
        ({"user": "b"}, ["a"], "user: no [[user]] is named 'b'"),
        ({"user": "b"}, [], "user: no [[user]] is named 'b'"),
        ({}, [], None),
        ({"user": "a"}, ["a"], None),
        ({"curve_secret_file": "x", "curve_clients_dir": "y"}, ["a"], None),
    ],
)
def test_it_is_said_who_clients_are(
    given: dict[str, object], users: list[str], says: str | None
) -> None:
    options = options_of(given)
    if says is None:
        demand_identities(options, users.__contains__, has_users=bool(users))
        return
    with pytest.raises(GatewayOptionError, match=re.escape(says)):
        demand_identities(options, users.__contains__, has_users=bool(users))


def test_two_files_with_one_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "clients").mkdir()
    zmq.auth.create_certificates(tmp_path, "gateway")
    zmq.auth.create_certificates(tmp_path / "clients", "a")
    text = (tmp_path / "clients" / "a.key").read_text()
    (tmp_path / "clients" / "b.key").write_text(text)
    secret = str(tmp_path / "gateway.key_secret")
    given: dict[str, object] = {
        "curve_secret_file": secret,
        "curve_clients_dir": str(tmp_path / "clients"),
    }
    with pytest.raises(GatewayOptionError, match=r"b\.key: has the same key as a\.key"):
        keys_of(options_of(given))
    (tmp_path / "clients" / "b.key").unlink()
    keys = keys_of(options_of(given))
    assert keys is not None
    assert keys.clients is not None
    assert list(keys.clients.values()) == ["a"]


def test_keys_that_are_none_are_named(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.write_text("")
    options = options_of({"curve_secret_file": str(file)})
    with pytest.raises(GatewayOptionError, match="empty: no"):
        keys_of(options)
    missing = options_of({"curve_secret_file": str(tmp_path / "missing")})
    with pytest.raises(GatewayOptionError, match="missing: no CURVE certificate"):
        keys_of(missing)
