"""The driver, by oslo.messaging's own functional tests, on a mesh of three containers.

Each host of the URL is another container, and each transport begins at a random one. The tests
patch their process for green threads (`eventlet.monkey_patch`), so this is the driver in such a
process too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from system.meshes import Member, linked, meshed
from test_last_upstream_driver import ALONE, LOGGERS, LONG, PREFIXED, REST
from upstream_shares import Share, run

import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(cogwork.__file__).parents[1]

SKIPPED = {"CallTestCase.test_mandatory_call": "backend does not support call monitoring"}
"""Upstream looks for the scheme `rabbit`; test_driver.py has this test's substance."""

CLIENTS_MIN = 15
"""Of each container; there are some hundred, which begin at any of the three."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Three containers, each linked with each."""
    with meshed(tmp_path_factory.mktemp("mesh"), "abc", ["ab", "bc", "ca"]) as members:
        linked(members.values())
        yield members


@pytest.mark.timeout(300)
def test_upstreams_functional_tests_pass(mesh: dict[str, Member], tmp_path: Path) -> None:
    hosts = [f"127.0.0.1:{member.port}" for member in mesh.values()]
    anywhere = f"amqp://{','.join(hosts)}/"
    functional, logger = "test_functional", "notify.test_logger"
    shares = [Share(anywhere, functional, REST[first::4]) for first in range(4)]
    shares += [Share(anywhere, functional, (name,)) for name in sorted(LONG)]
    shares += [Share(anywhere, logger, LOGGERS[first::10]) for first in range(10)]
    for number, name in enumerate(sorted(ALONE)):
        scheme = "amqp+mesh" if name in PREFIXED else "amqp"
        shares.append(Share(f"{scheme}://{hosts[number % 3]}/", functional, (name,)))
    verdicts = run(shares, PACKAGES, tmp_path)
    assert verdicts.failed == {}
    assert verdicts.skipped == SKIPPED
    assert verdicts.passed == {*REST, *LONG, *LOGGERS, *ALONE} - set(SKIPPED)
    for member in mesh.values():
        accepted = member.served.status()["container"]["connections_accepted"]
        assert accepted > CLIENTS_MIN, f"{member.id} had few clients"
