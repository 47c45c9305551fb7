"""The last driver of oslo.messaging that spoke AMQP 1.0, as a client of a mesh.

Release 14.9.3 with its own `amqp` driver was written for brokers and for qdrouterd; the tests are
upstream's, and it is not told that this is neither. It lies in a directory that comes before the
installed packages, which are the ones that it uses.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from system.meshes import Member, linked, meshed
from system.served import within
from upstream_shares import Share, run

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASES = ("oslo.messaging==14.9.3", "pyngus==2.3.1")
ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "build" / "oslo-messaging-14.9.3"

SETTLE_TIMEOUT_S = 60.0

ALONE = {
    "CallTestCase.test_server_in_group",
    "CallTestCase.test_different_exchanges",
    "CastTestCase.test_server_in_group",
    "NotifyTestCase.test_multiple_servers",
}
"""These want each consumer of an address to get something, of a few messages one by one.

Those of one container take turns; those elsewhere in the mesh come after it has none that is free.
So here all that one test starts is at one container.
"""

PREFIXED = {"CastTestCase.test_server_in_group", "NotifyTestCase.test_multiple_servers"}
"""Upstream skips these for `amqp:`, for a defect of qpidd; `amqp+mesh:` is the same driver."""

ELSEWHERE = {"CallTestCase.test_mandatory_call": "backend does not support call monitoring"}
"""What is left out, and upstream's reason: it looks for the scheme `rabbit`. This driver takes no
transport options, such as the `at_least_once` that the test is about."""

CLIENTS_MIN = 15
"""Of each container. There are a hundred and more, which begin with any of the three."""

LONG = {"CallTestCase.test_timeout_with_concurrently_queues", "CallTestCase.test_monitor_long_call"}

REST = (
    "CallTestCase.test_bad_endpoint",
    "CallTestCase.test_endpoint_version_namespace",
    "CallTestCase.test_exception",
    "CallTestCase.test_mandatory_call",
    "CallTestCase.test_specific_server",
    "CallTestCase.test_timeout",
    "CastTestCase.test_fanout",
    "CastTestCase.test_specific_server",
    "MetricsTestCase.test_functional",
    "NotifyTestCase.test_all_categories",
    "NotifyTestCase.test_compression",
    "NotifyTestCase.test_independent_topics",
    "NotifyTestCase.test_multiple_topics",
    "NotifyTestCase.test_simple",
    "NotifyTestCase.test_simple_batch",
)
LOGGERS = tuple(
    f"LoggingNotificationHandlerTestCase.test_logging({priority},{driver})"
    for priority in ("debug", "info", "warn", "error", "critical")
    for driver in ("messaging", "messagingv2")
)
"""Each of these waits fifteen seconds for a second record that must not come."""


@pytest.fixture(scope="module")
def packages() -> Path:
    """The directory with the releases, filled where it is not yet."""
    stamp = PACKAGES / "releases"
    if not stamp.exists() or stamp.read_text().split() != list(RELEASES):
        fresh = PACKAGES.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--target", str(fresh), *RELEASES]
        subprocess.run(command, check=True, timeout=90)
        _hide_our_driver(fresh)
        (fresh / "releases").write_text("\n".join(RELEASES))
        shutil.rmtree(PACKAGES, ignore_errors=True)
        fresh.rename(PACKAGES)
    return PACKAGES


def _hide_our_driver(folder: Path) -> None:
    """Make the entry points of this project unknown: two drivers for `amqp` are an error."""
    facts = folder / "cogwork-0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: cogwork\nVersion: 0\n")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Three containers, each linked with each, that were told nothing of OpenStack."""
    folder = tmp_path_factory.mktemp("mesh")
    with meshed(folder, "abc", ["ab", "bc", "ca"]) as members:
        linked(members.values())
        yield members


@pytest.mark.soak
@pytest.mark.timeout(300)  # half a minute of waiting, and longer where a machine has much to do
def test_upstreams_functional_tests_pass_with_the_last_driver_that_spoke_amqp(
    mesh: dict[str, Member], packages: Path, tmp_path: Path
) -> None:
    hosts = [f"127.0.0.1:{member.port}" for member in mesh.values()]
    anywhere = f"amqp://{','.join(hosts)}"  # begins with any one of them
    functional, logger = "test_functional", "notify.test_logger"
    shares = [Share(anywhere, functional, REST[first::6]) for first in range(6)]
    shares += [Share(anywhere, functional, (name,)) for name in sorted(LONG)]
    shares += [Share(anywhere, logger, (name,)) for name in LOGGERS]
    for number, name in enumerate(sorted(ALONE)):
        scheme = "amqp+mesh" if name in PREFIXED else "amqp"
        shares.append(Share(f"{scheme}://{hosts[number % 3]}", functional, (name,)))
    verdicts = run(shares, packages, tmp_path)
    assert verdicts.failed == {}
    assert verdicts.skipped == ELSEWHERE
    assert verdicts.passed == {*REST, *LONG, *LOGGERS, *ALONE} - set(ELSEWHERE)
    for member in mesh.values():
        accepted = member.served.status()["container"]["connections_accepted"]
        assert accepted > CLIENTS_MIN, f"{member.id} had few clients"
    _assert_nothing_is_left(mesh)


def _assert_nothing_is_left(mesh: dict[str, Member]) -> None:
    """Wait until no container has anything of its clients."""
    for member in mesh.values():
        within(SETTLE_TIMEOUT_S, partial(_is_empty, member), f"{member.id} is empty")


def _is_empty(member: Member) -> bool:
    return not _left(member)


def _left(member: Member) -> list[str]:
    """List the addresses that are in use, or hold something, besides those of this test."""
    return [
        row["address"]
        for row in member.served.status()["addresses"]
        if (row["senders"] or row["receivers"] or row["depth"])
        and not row["address"].startswith(("_reply/", "$management"))
    ]
