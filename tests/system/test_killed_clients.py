"""Clients die by kill -9 in every state, and the container forgets all that it held for them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from proton import Event, Handler
from proton.utils import BlockingConnection

from .served import SETTLE_TIMEOUT_S, Holdings, Served, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD_CLIENT = Path(__file__).parent / "clients" / "held_client.py"
CONNECTIONS = 5
UNSETTLED = 20
"""As many as the held client leaves unsettled on each connection."""

SENT_HALF_BYTES = 500_000
"""Of each delivery that the held client leaves in the middle."""

GROWTH_MAX_KIB = 16 * 1024
"""Of the container, over a hundred clients that died: their half deliveries are 50 MB, and what an
allocator keeps of the twenty that live at the same time is 10 MB at most."""

CONFIGURATION = """
[[listen]]
port = 0
transport = "ws"

[[listen]]
port = 0
transport = "amqps"
tls = {{ certificate = "{folder}/server.pem" }}

[[address]]
prefix = "work/"
in_doubt = "park"
in_doubt_timeout_s = 0.1
dead_letter = "queue/parked"

[[address]]
prefix = "queue/"
in_doubt = "redeliver"
in_doubt_timeout_s = 0.1
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One container for all the dying."""
    folder = tmp_path_factory.mktemp("killed")
    issued = trustme.CA().issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    with served(folder, CONFIGURATION.format(folder=folder)) as running:
        yield running


class HeldClient:
    """A process that holds connections in a state.

    Args:
        container: What it connects to.
        state: One of the held client's states.
        address: What its links are for.
        count: How many connections it holds.
        scheme: Of the listener that it connects to.
    """

    def __init__(
        self,
        container: Served,
        state: str,
        address: str,
        count: int = CONNECTIONS,
        scheme: str = "amqp",
    ) -> None:
        host = container.endpoint(scheme)
        command = [sys.executable, str(HELD_CLIENT), state, host, address, str(count)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        is_held = self._process.stdout.readline() == b"held\n"
        if not is_held:
            self.kill()
        assert is_held, f"the client never got to {state}"

    def kill(self) -> None:
        """End it by SIGKILL, so that nothing of it can close anything."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Watcher(Handler):
    """Counts deliveries that came to an end."""

    def __init__(self) -> None:
        self.aborted = 0
        self.completed = 0

    def on_delivery(self, event: Event) -> None:
        """Count one, if it is at its end."""
        delivery, receiver = event.delivery, event.receiver
        if delivery is None or receiver is None or delivery.partial:
            return
        if delivery.aborted:
            self.aborted += 1
        else:
            self.completed += 1
            receiver.advance()
        delivery.settle()


@contextlib.contextmanager
def a_death(
    container: Served, state: str, address: str, count: int = CONNECTIONS, scheme: str = "amqp"
) -> Iterator[Holdings]:
    """Yield what the container holds while clients are in a state; afterwards they are dead.

    Raises:
        AssertionError: The container does not forget them.
    """
    before = container.holdings()
    client = HeldClient(container, state, address, count, scheme)
    try:
        connections = before.connections + count
        within(30, lambda: container.holdings().connections == connections, "they are connected")
        yield container.holdings()
    finally:
        client.kill()
    assert_forgotten(container, before)


def assert_forgotten(container: Served, before: Holdings) -> None:
    """Wait until the container holds what it held before."""
    within(SETTLE_TIMEOUT_S, lambda: container.holdings() == before, f"it holds {before} again")


def patterns(container: Served) -> list[str]:
    """Return the patterns of all subscribers."""
    return [pattern for link in container.status()["links"] for pattern in link["patterns"]]


def fill(container: Served, queue: str, bodies: list[str], folder: Path) -> None:
    """Put an item into a queue for each body."""
    lines = folder / "lines"
    lines.write_text("".join(f"{body}\n" for body in bodies))
    container.run("send", container.url, queue, "--file", str(lines))


@pytest.mark.parametrize(
    ("state", "scheme"),
    [
        ("connected", "amqp"),
        ("half-header", "amqp"),
        ("sasl-begun", "amqp"),
        ("authenticated", "amqp"),
        ("open", "amqp"),
        ("connected", "amqps"),
        ("half-hello", "amqps"),
        ("connected", "ws"),
        ("half-upgrade", "ws"),
        ("upgraded", "ws"),
    ],
)
def test_a_client_that_never_attached_leaves_nothing(
    container: Served, state: str, scheme: str
) -> None:
    with a_death(container, state, "", scheme=scheme) as held:
        assert held.connections > CONNECTIONS


def test_links_go_with_their_client(container: Served) -> None:
    before = container.holdings()
    with a_death(container, "attached", "killed/idle") as held:
        assert held.links == before.links + 2 * CONNECTIONS
        assert held.senders == before.senders + CONNECTIONS
        assert held.receivers == before.receivers + CONNECTIONS


def test_patterns_go_with_their_subscriber(container: Served) -> None:
    with a_death(container, "subscribed", "topic/killed.*.#"):
        assert patterns(container) == ["killed.*.#"] * CONNECTIONS
    assert patterns(container) == []
    container.run("send", container.url, "topic/killed.a.b", "to nobody")


def test_dynamic_addresses_go_with_their_receiver(container: Served) -> None:
    before = container.holdings()
    with a_death(container, "asking", "killed/answerer") as held:
        assert held.replies == before.replies + CONNECTIONS


def test_half_a_delivery_is_forgotten(container: Served) -> None:
    """The consumer lives on: what its link cannot take yet has to go as well."""
    consumer = HeldClient(container, "attached", "killed/half", count=1)
    before = container.holdings()
    with a_death(container, "mid-transfer", "killed/half") as held:
        assert held.held_bytes + held.unsent_bytes > before.held_bytes + SENT_HALF_BYTES
    consumer.kill()


def test_a_consumer_hears_of_the_abort_and_goes_on(container: Served) -> None:
    """Frames that went straight through can only be taken back by `aborted` (AMQP 1.0 §2.7.5).

    One producer's delivery is in the middle of the consumer's link, the others' wait behind it.
    """
    watcher = Watcher()
    connection = BlockingConnection(container.url, timeout=SETTLE_TIMEOUT_S)
    receiver = connection.create_receiver("killed/cut", credit=CONNECTIONS + 1, handler=watcher)
    connection.wait(lambda: receiver.link.transport.pending() == 0)
    producer = HeldClient(container, "mid-transfer", "killed/cut")
    producer.kill()
    connection.wait(lambda: watcher.aborted == 1, msg="an aborted delivery")
    container.run("send", container.url, "killed/cut", "still here", "--presettled")
    connection.wait(lambda: watcher.completed == 1, msg="what is sent afterwards")
    connection.close()


def test_a_queue_never_shows_half_an_item(container: Served) -> None:
    with a_death(container, "mid-transfer", "queue/killed.half") as held:
        assert held.partial_bytes >= CONNECTIONS * SENT_HALF_BYTES
        assert container.address("queue/killed.half")["depth"] == 0
    assert container.address("queue/killed.half")["depth"] == 0


def test_what_nobody_settled_goes_with_its_sender(container: Served) -> None:
    """A consumer holds the deliveries; when their sender is gone they still are the consumer's."""
    before = container.holdings()
    consumer = HeldClient(container, "attached", "killed/out", count=CONNECTIONS)
    producer = HeldClient(container, "unsettled-out", "killed/out", count=1)
    assert container.holdings().unsettled == before.unsettled + UNSETTLED
    producer.kill()
    consumer.kill()
    assert_forgotten(container, before)


def test_what_a_dead_consumer_held_is_offered_again(container: Served, tmp_path: Path) -> None:
    fill(container, "queue/killed.in", [str(number) for number in range(UNSETTLED)], tmp_path)
    with a_death(container, "unsettled-in", "queue/killed.in", count=1) as held:
        assert held.unsettled == UNSETTLED
    assert container.address("queue/killed.in")["depth"] == UNSETTLED
    received = container.run(
        "receive", container.url, "queue/killed.in", "--count", str(UNSETTLED), "--timeout", "10"
    )
    assert len(received.splitlines()) == UNSETTLED


def test_what_a_dead_worker_held_is_parked(container: Served, tmp_path: Path) -> None:
    fill(container, "work/killed.in", [str(number) for number in range(UNSETTLED)], tmp_path)
    parked = container.address("queue/parked")["depth"]
    client = HeldClient(container, "unsettled-in", "work/killed.in", count=1)
    client.kill()
    within(
        SETTLE_TIMEOUT_S,
        lambda: container.address("queue/parked")["depth"] == parked + UNSETTLED,
        f"{UNSETTLED} items are parked",
    )
    assert container.address("work/killed.in")["depth"] == 0


def test_a_consumer_that_died_while_reading_leaves_no_bytes(
    container: Served, tmp_path: Path
) -> None:
    fill(container, "queue/killed.large", ["x" * 4_000_000], tmp_path)
    with a_death(container, "mid-receive", "queue/killed.large", count=1) as held:
        assert held.unsettled == 1
    assert container.address("queue/killed.large")["depth"] == 1


def test_a_hundred_deaths_cost_no_memory(container: Served) -> None:
    HeldClient(container, "mid-transfer", "queue/killed.many", count=20).kill()
    before, resident_kib = container.holdings(), container.resident_kib()
    for _ in range(5):
        HeldClient(container, "mid-transfer", "queue/killed.many", count=20).kill()
    assert_forgotten(container, before)
    within(
        SETTLE_TIMEOUT_S,
        lambda: container.resident_kib() - resident_kib < GROWTH_MAX_KIB,
        "the memory is given back",
    )
