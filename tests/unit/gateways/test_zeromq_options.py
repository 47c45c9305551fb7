"""The options of the ZeroMQ gateway: what is refused, and how that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.gateways.zeromq.curve import keys_of
from cogwork.gateways.zeromq.errors import GatewayOptionError
from cogwork.gateways.zeromq.options import options_of

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


def test_keys_that_are_none_are_named(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.write_text("")
    options = options_of({"curve_secret_file": str(file), "roundrobin": "tcp://0.0.0.0:1"})
    with pytest.raises(GatewayOptionError, match="empty: no"):
        keys_of(options)
    missing = options_of({"curve_secret_file": str(tmp_path / "missing")})
    with pytest.raises(GatewayOptionError, match="missing: no CURVE certificate"):
        keys_of(missing)
