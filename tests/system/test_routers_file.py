"""A container that is configured as routers and brokers are, with stock clients at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode

from .served import READY_TIMEOUT_S, ended, serving, within

if TYPE_CHECKING:
    from pathlib import Path

ROUTER = """
router { id: A mode: interior }
listener { addr: 127.0.0.1 port: PORT sasl-mechanisms: ANONYMOUS }
fixed-address { prefix: /unicast fanout: single bias: closest }
fixed-address { prefix: /exclusive fanout: single bias: closest }
fixed-address { prefix: /broadcast fanout: multiple }
"""


def receiver(bus: BlockingConnection, address: str, name: str) -> BlockingReceiver:
    """Attach under a name of its own; else it would be named for the address."""
    return bus.create_receiver(address, name=name, credit=5)


def send(bus: BlockingConnection, address: str, body: str) -> None:
    """Send settled: a consumer that reads on the same connection cannot accept meanwhile."""
    bus.create_sender(address, options=AtMostOnce()).send(Message(body=body))


def test_a_routers_file_is_a_configuration(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "qdrouterd.conf"
    file.write_text(ROUTER.replace("PORT", str(port)))
    with serving(tmp_path / "log", f"amqp://127.0.0.1:{port}", "--config", str(file)) as container:
        assert container.status()["container"]["name"] == "A"
        bus = BlockingConnection(container.url, timeout=10)
        group = [receiver(bus, "unicast.nova.compute", name) for name in "ab"]
        every = [receiver(bus, "broadcast.nova.compute.all", name) for name in "cd"]
        send(bus, "/unicast.nova.compute", "one")
        send(bus, "/broadcast.nova.compute.all", "all")
        assert [each.receive().body for each in every] == ["all", "all"]
        within(30, lambda: _sum(group) == 1, "one of the group has it")
        bus.close()


def _sum(group: list[BlockingReceiver]) -> int:
    return sum(len(each.fetcher.incoming) for each in group if each.fetcher is not None)


def test_the_options_of_a_broker_make_queues_and_topics(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    options = ["--listen", f"127.0.0.1:{port}", "--queue-patterns", "exclusive"]
    options += ["--queue-patterns", "unicast", "--topic-patterns", "broadcast"]
    with serving(tmp_path / "log", f"amqp://127.0.0.1:{port}", *options) as container:
        bus = BlockingConnection(container.url, timeout=10)
        bus.create_sender("unicast.nova.compute").send(Message(body="before anybody asks"))
        assert container.address("unicast.nova.compute")["depth"] == 1
        taken = bus.create_receiver("unicast.nova.compute").receive()
        assert taken.body == "before anybody asks"
        every = [receiver(bus, "broadcast.nova.#", name) for name in "ab"]
        send(bus, "broadcast.nova.compute.all", "all")
        assert [each.receive().body for each in every] == ["all", "all"]
        bus.close()


WHOLE_ROUTER = """
router { id: B mode: interior defaultDistribution: multicast workerThreads: 4 }
listener {
    host: 0.0.0.0
    port: PORT
    saslMechanisms: ANONYMOUS
    authenticatePeer: no
    stripAnnotations: both
}
linkRoute { prefix: org.example direction: in connection: broker }
connector { name: broker host: 127.0.0.1 port: 1 role: route-container }
address { prefix: closed distribution: unavailable }
"""


def test_the_rest_of_a_routers_file_is_warned_of(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "router.conf"
    file.write_text(WHOLE_ROUTER.replace("PORT", str(port)))

    def warned() -> list[str]:
        lines = (tmp_path / "log").read_text().splitlines()
        return [
            line.partition(f"{file}:")[2].partition(": ")[0] for line in lines if "WARNING" in line
        ]

    with serving(tmp_path / "log", f"amqp://127.0.0.1:{port}", "--config", str(file)) as container:
        # A thread of its own writes the log, beside the line that says where it listens.
        within(READY_TIMEOUT_S, lambda: len(warned()) == 4, "it warns of four lines")
        assert warned() == ["4", "8", "10", "11"]
        bus = BlockingConnection(container.url, timeout=10)
        every = [receiver(bus, "plain", name) for name in "ab"]
        send(bus, "plain", "all")
        assert [each.receive().body for each in every] == ["all", "all"], "the default distribution"
        for refused in (bus.create_sender, bus.create_receiver):
            with pytest.raises(LinkDetached) as caught:
                refused("closed/x")
            assert caught.value.condition == "amqp:not-found"
        bus.close()


def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "qdrouterd.conf"
    file.write_text("fixed-address {\n    prefix: /unicast\n    fanout: one\n}\n")
    done = ended("serve", "--config", str(file))
    assert done.returncode == ExitCode.CONFIGURATION
    assert done.stderr == (
        f'cogwork: {file}:3: fixed-address.fanout: found "one", '
        'expected one of "multiple", "single"\n'
    )
