"""Where links lead, by their URLs alone."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cogwork.config.link_urls import LinkUrl
from cogwork.container.mesh.view import View
from cogwork.plugin.node import Refused


@pytest.mark.parametrize(
    ("url", "host", "port", "is_same"),
    [
        ("127.0.0.1:1", "127.0.0.1", 1, True),
        ("127.0.0.1:2", "127.0.0.1", 1, False),
        ("localhost:1", "127.0.0.1", 1, True),
        ("localhost:1", "::1", 1, True),
        ("[::1]:1", "localhost", 1, True),
        ("127.0.0.2:1", "127.0.0.1", 1, False),
        ("127.0.0.2:1", "0.0.0.0", 1, True),
        ("amqps://ann:secret@localhost:1", "0.0.0.0", 1, True),
        ("[::1]:1", "0.0.0.0", 1, False),
        ("[::1]:1", "::", 1, True),
        ("localhost:1", "::", 1, True),
        ("127.0.0.1:1", "::", 1, False),
        ("other:1", "0.0.0.0", 1, False),
        ("other:1", "other", 1, True),
        ("127.1:1", "127.0.0.1", 1, True),
        ("127.1:1", "0.0.0.0", 1, True),
        ("127.1:1", "::1", 1, False),
        ("2130706433:1", "127.0.0.1", 1, True),
        ("127.0.0.1:1", "127.1", 1, True),
        ("unix:///run/a", "/run/a", 0, True),
        ("unix:///run/a", "/run/b", 0, False),
    ],
)
def test_a_url_tells_whether_it_leads_to_a_listener(
    url: str, host: str, port: int, is_same: bool
) -> None:
    assert LinkUrl.parse(url).leads_to(host, port) is is_same


@pytest.mark.parametrize(
    ("url", "host", "is_same"),
    [
        ("north:1", "0.0.0.0", True),
        ("NORTH:1", "::", True),
        ("north:2", "0.0.0.0", False),
        ("north:1", "127.0.0.1", False),
        ("south:1", "0.0.0.0", False),
    ],
)
def test_the_name_of_the_machine_leads_to_who_listens_everywhere(
    url: str, host: str, is_same: bool
) -> None:
    target = LinkUrl.parse(url)
    assert target.leads_to(host, 1, "North") is is_same
    assert not target.leads_to(host, 1), "machines may share a configuration that names them all"


def own_address(family: socket.AddressFamily, somewhere: str) -> str:
    """Return the address by which this machine would send somewhere; nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((somewhere, 9))
        except OSError as error:
            pytest.skip(f"no way to {somewhere}: {error}")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize(
    ("family", "everywhere", "somewhere"),
    [(socket.AF_INET, "0.0.0.0", "192.0.2.77"), (socket.AF_INET6, "::", "2001:db8::77")],
)
def test_an_address_of_the_machine_leads_to_who_listens_everywhere(
    family: socket.AddressFamily, everywhere: str, somewhere: str
) -> None:
    own = own_address(family, somewhere)
    target = LinkUrl.parse(f"[{own}]:1" if ":" in own else f"{own}:1")
    assert target.leads_to(everywhere, 1, "north")
    assert not target.leads_to(everywhere, 2, "north")
    assert not target.leads_to("127.0.0.1", 1, "north")
    assert not target.leads_to(everywhere, 1), "machines may share a configuration"
    strange = LinkUrl.parse(f"[{somewhere}]:1" if ":" in somewhere else f"{somewhere}:1")
    assert not strange.leads_to(everywhere, 1, "north")


@pytest.mark.parametrize("host", ["localhost", "127.1", socket.gethostname()])
def test_a_container_adds_no_link_to_itself(host: str) -> None:
    container = SimpleNamespace(endpoints=["ws://0.0.0.0:2", "amqp://0.0.0.0:1"])
    with pytest.raises(Refused, match="is where this container listens itself"):
        View(cast("Any", container)).add_link(f"{host}:1", 1)
