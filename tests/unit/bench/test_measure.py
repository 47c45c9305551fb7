"""Measurements without a server: the workers' own sink, and a relay that tampers."""

import dataclasses
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_WR, create_connection, create_server, socket

import pytest

from cogwork.bench.jobs import ConsumerJob, ProducerJob
from cogwork.bench.measure import Broker, Transit, measure
from cogwork.bench.scenarios import Load, run_scenario
from cogwork.bench.url import PeerError
from cogwork.bench.usage import ProcessUsage


@dataclasses.dataclass
class Direct:
    """No server: receivers listen, senders connect to them."""

    receiver_url: str = ""
    usage: None = None

    def sender_url(self, port: int) -> str:
        return f"amqp://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("scenario", "load"),
    [
        ("presettled", Load(count=200_000)),
        ("unsettled", Load(count=200_000)),
        ("unsettled", Load(count=300, size_bytes=200_000, credit=20)),
        ("request-reply", Load(count=2000, width=16)),
    ],
)
def test_what_goes_in_comes_out(scenario: str, load: Load) -> None:
    result = run_scenario(scenario, Direct(), load)
    assert result.problems == []
    assert (result.sent, result.delivered) == (load.count, load.count)
    assert result.rate > 0


def test_without_a_count_the_time_decides() -> None:
    result = run_scenario("presettled", Direct(), Load(seconds=0.2))
    assert result.problems == []
    assert result.delivered == result.sent > 0
    assert result.seconds < 2


class Doubling(Direct):
    """Repeats one transfer on its way."""

    def sender_url(self, port: int) -> str:
        server = create_server(("127.0.0.1", 0))
        threading.Thread(target=self._relay, args=(server, port), daemon=True).start()
        return f"amqp://127.0.0.1:{server.getsockname()[1]}"

    def _relay(self, server: socket, port: int) -> None:
        with server, server.accept()[0] as sender, create_connection(("127.0.0.1", port)) as sink:
            back = threading.Thread(target=_copy, args=(sink, sender), daemon=True)
            back.start()
            with _frames(sender) as frames:
                for index, octets in enumerate(frames):
                    sink.sendall(octets * 2 if index == 100 else octets)
            with suppress(OSError):  # the sink may have gone first
                sink.shutdown(SHUT_WR)
            back.join(5)


def _copy(source: socket, target: socket) -> None:
    with suppress(OSError):
        while octets := source.recv(65536):
            target.sendall(octets)


@contextmanager
def _frames(source: socket) -> Iterator[Iterator[bytes]]:
    """Cut a client's bytes into its two headers and its frames."""
    with source.makefile("rb") as file:

        def cut() -> Iterator[bytes]:
            while head := file.read(8):
                size = 8 if head.startswith(b"AMQP") else int.from_bytes(head[:4], "big")
                yield head + file.read(size - 8)

        yield cut()


def test_a_repeated_delivery_does_not_pass() -> None:
    result = run_scenario("presettled", Doubling(), Load(count=1000))
    assert any("twice or out of order: 1" in problem for problem in result.problems)


class Swapping(Doubling):
    """Lets one transfer overtake the one before it."""

    def _relay(self, server: socket, port: int) -> None:
        with server, server.accept()[0] as sender, create_connection(("127.0.0.1", port)) as sink:
            back = threading.Thread(target=_copy, args=(sink, sender), daemon=True)
            back.start()
            with _frames(sender) as frames:
                for index, octets in enumerate(frames):
                    sink.sendall(next(frames) + octets if index == 100 else octets)
            with suppress(OSError):  # the sink may have gone first
                sink.shutdown(SHUT_WR)
            back.join(5)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_order_counts_where_it_is_promised(is_ordered: bool) -> None:
    result = measure(Swapping(), _transit(1000, is_ordered=is_ordered))
    assert result.delivered == 1000
    assert bool(result.problems) == is_ordered


def test_what_comes_twice_does_not_pass_for_out_of_order() -> None:
    result = measure(Doubling(), _transit(1000, is_ordered=False))
    assert any("too many: 1" in problem for problem in result.problems)


def _transit(count: int, *, is_ordered: bool) -> Transit:
    consumer = ConsumerJob(addresses=["here"])
    return Transit(
        [consumer], [ProducerJob(addresses=["here"], count=count)], is_ordered=is_ordered
    )


def test_a_job_keeps_the_url_that_it_has() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    consumer = ConsumerJob(addresses=["here"], url=f"amqp://127.0.0.1:{port}")
    with pytest.raises(PeerError, match=f"cannot connect to 127.0.0.1:{port}:"):
        measure(Direct(), Transit([consumer], [ProducerJob(addresses=["here"])]))


def test_senders_may_connect_elsewhere_than_receivers() -> None:
    assert Broker("amqp://egress").sender_url(0) == "amqp://egress"
    assert Broker("amqp://egress", None, "amqp://ingress").sender_url(0) == "amqp://ingress"


def test_figures_of_several_processes_are_added_up() -> None:
    one, two = ProcessUsage(os.getpid()), ProcessUsage(os.getpid(), os.getpid())
    assert two.rss_bytes() > 1.5 * one.rss_bytes() > 0


def test_a_worker_that_cannot_connect_says_why() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    direct = Direct(receiver_url=f"amqp://127.0.0.1:{port}")
    with pytest.raises(PeerError, match=r"cannot connect to 127\.0\.0\.1:.*Connection refused"):
        run_scenario("presettled", direct, Load(count=1))
