"""The driver against brokers that others wrote, with no option set: it knows what they want.

Upstream's tests again, a few of them, or all with COGWORK_OSLO_ALL; and a broker's own ways.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import oslo_messaging
import pytest
from activemq import ActiveMq
from oslo_config import cfg
from rabbitmq import RabbitMq
from system.served import within
from test_last_upstream_driver import ALONE, LONG, PREFIXED, REST
from test_upstream import SKIPPED
from upstream_shares import Share, run

import cogwork
from cogwork.bench.servers.process import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.bench.servers.process import Server

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors

PACKAGES = Path(cogwork.__file__).parents[1]

SHORT = (
    "CallTestCase.test_exception",
    "CastTestCase.test_fanout",
    "CastTestCase.test_server_in_group",
    "NotifyTestCase.test_multiple_servers",
    "NotifyTestCase.test_simple_batch",
)
CHOSEN = (*REST, *LONG, *ALONE) if os.environ.get("COGWORK_OSLO_ALL") else SHORT
SHARES = 3


@pytest.fixture(scope="module", params=[RabbitMq, ActiveMq], ids=["rabbitmq", "activemq"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A broker; skipped where it cannot be had."""
    server: Server = request.param(tmp_path_factory.mktemp("broker"))
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


@pytest.mark.timeout(300)
def test_upstreams_tests_pass(broker: Server, tmp_path: Path) -> None:
    url = f"{broker.options['url']}/"
    prefixed = url.replace("amqp://", "amqp+mesh://")
    names = sorted(set(CHOSEN) - PREFIXED)
    shares = [Share(url, "test_functional", tuple(names[first::SHARES])) for first in range(SHARES)]
    shares.append(Share(prefixed, "test_functional", tuple(sorted(PREFIXED & set(CHOSEN)))))
    verdicts = run(shares, PACKAGES, tmp_path)
    assert verdicts.failed == {}
    assert verdicts.passed == set(CHOSEN) - set(SKIPPED)


def test_a_call_that_nobody_takes_is_told_apart(broker: Server) -> None:
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=f"{broker.options['url']}/")
    try:
        target = oslo_messaging.Target(topic="nobody here")
        calls = oslo_messaging.get_rpc_client(transport, target, timeout=1)
        began_s = time.monotonic()
        with pytest.raises(oslo_messaging.MessagingTimeout, match="it was sent, and no reply"):
            calls.call({}, "add", a=1, b=2)
        assert time.monotonic() - began_s < 20
    finally:
        transport.cleanup()


def test_queues_of_replies_expire_by_the_policy_that_rabbitmq_needs(broker: Server) -> None:
    """Its plug-in leaves them behind; the policy is the one of docs/oslo.md, with less time."""
    if not isinstance(broker, RabbitMq):
        pytest.skip("its temporary queues are its own affair")
    policy = ["^amq\\.gen-", '{"expires":1000}', "--apply-to", "queues"]
    broker.run("set_policy", "oslo-temporary", *policy)
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=f"{broker.options['url']}/")
    try:
        target = oslo_messaging.Target(topic="nobody here")
        calls = oslo_messaging.get_rpc_client(transport, target, timeout=3)
        with pytest.raises(oslo_messaging.MessagingTimeout):
            calls.call({}, "add", a=1, b=2)
        assert len(_temporary(broker)) == 1, "it is in use, and does not expire"
    finally:
        transport.cleanup()
    within(30.0, lambda: not _temporary(broker), "it has expired")


def _temporary(broker: RabbitMq) -> list[str]:
    listed = broker.run("list_queues", "name", "--no-table-headers")
    return [name for name in listed if name.startswith("amq.gen-")]
