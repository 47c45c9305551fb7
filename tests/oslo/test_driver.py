"""The driver in a program with native threads, on a mesh of two containers."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oslo_messaging
import pytest
from helpers import client, configuration, notifying, rpc, when
from oslo_config import cfg
from oslo_messaging.exceptions import ConfigurationError
from system.meshes import Member, linked, meshed
from system.served import within

from cogwork.bench.servers.process import free_ports
from cogwork.oslo.driver import Driver
from cogwork.oslo.errors import CallInterrupted, NotDelivered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oslo_messaging import NotificationTransport, Notifier, RPCTransport

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors

HERE = Path(__file__).parent


class Endpoint:
    """What the servers of these tests can do."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.go_on = threading.Event()
        self.is_blocked = threading.Event()

    def add(self, ctxt: dict[str, Any], a: int, b: int) -> int:
        return a + b

    def note(self, ctxt: dict[str, Any], what: str) -> None:
        self.got.append(what)

    def block(self, ctxt: dict[str, Any]) -> str:
        self.is_blocked.set()
        self.go_on.wait(30)
        return "done"

    def odd(self, ctxt: dict[str, Any]) -> object:
        return {"when": threading}  # no JSON for a module: written as a text


class Events:
    """A notification endpoint; puts back what it is told to."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.put_back = 0

    def info(
        self, ctxt: object, publisher: str, kind: str, payload: object, metadata: object
    ) -> object:
        if self.put_back:
            self.put_back -= 1
            return oslo_messaging.NotificationResult.REQUEUE
        self.got.append(payload)
        return None


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    with meshed(tmp_path_factory.mktemp("mesh"), "ab", ["ab"]) as members:
        linked(members.values())
        yield members


@pytest.fixture
def urls(mesh: dict[str, Member]) -> list[str]:
    """The URL of each container."""
    return [f"{member.url}/" for member in mesh.values()]


@contextmanager
def serving(transport: RPCTransport, topic: str, server: str = "one") -> Iterator[Endpoint]:
    """A server with an `Endpoint`."""
    endpoint = Endpoint()
    target = oslo_messaging.Target(topic=topic, server=server)
    made = oslo_messaging.get_rpc_server(transport, target, [endpoint], executor="threading")
    made.start()
    try:
        yield endpoint
    finally:
        endpoint.go_on.set()
        made.stop()
        made.wait()


# -- calls


def test_many_threads_share_one_connection(urls: list[str], mesh: dict[str, Member]) -> None:
    before = mesh["b"].served.status()["container"]["connections_accepted"]
    with rpc(urls[0]) as there, serving(there, "many"), rpc(urls[1]) as here:
        calls = client(here, "many")
        results: list[int] = []

        def work(first: int) -> None:
            results.extend(calls.call({}, "add", a=first, b=each) for each in range(20))

        threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = mesh["b"].served.status()["container"]["connections_accepted"]
    assert sorted(results) == sorted(100 * n + each for n in range(16) for each in range(20))
    assert after - before <= 3, "the transport's, and the status command's"


def test_a_call_to_nobody_ends_with_its_time_and_says_why(urls: list[str]) -> None:
    with rpc(urls[0]) as here:
        with pytest.raises(oslo_messaging.MessagingTimeout, match="nobody is there") as caught:
            client(here, "nobody", timeout=1).call({}, "add", a=1, b=2)
        assert "anycast/openstack/nobody" in str(caught.value)


def test_a_server_that_comes_late_gets_the_call(urls: list[str]) -> None:
    with rpc(urls[0]) as here, rpc(urls[1]) as there:
        found: list[object] = []
        calls = client(here, "late", timeout=20)
        thread = threading.Thread(target=lambda: found.append(calls.call({}, "add", a=1, b=2)))
        thread.start()
        with serving(there, "late"):
            thread.join()
    assert found == [3]


def test_a_long_call_is_kept_up_by_heartbeats_and_a_dead_server_is_noticed(
    urls: list[str], tmp_path: Path
) -> None:
    with rpc(urls[0]) as here:
        script = [sys.executable, str(HERE / "lasting_server.py"), urls[1]]
        with subprocess.Popen(script, stdout=subprocess.PIPE) as server:
            told = server.stdout
            assert told is not None
            try:
                assert told.readline() == b"serving\n"
                calls = client(here, "lasting", timeout=60, call_monitor_timeout=2)
                assert calls.call({}, "last", seconds=3) == 3
                assert told.readline() == b"working\n"
                began_s = time.monotonic()
                killing = when(told.readline, server.kill)  # it works on the next one
                # It may die before it has settled the request; the caller hears of that sooner.
                noticed = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure)
                with pytest.raises(noticed, match=r"nor a heartbeat|did not settle it"):
                    calls.call({}, "last", seconds=60)
                assert time.monotonic() - began_s < 20
                killing.join()
            finally:
                server.kill()


def test_a_remote_exception_comes_back_as_itself_only_where_that_is_allowed(
    urls: list[str],
) -> None:
    with rpc(urls[0]) as here, serving(here, "failing"):
        with pytest.raises(oslo_messaging.RemoteError, match="NoSuchMethod"):
            client(here, "failing").call({}, "nothing")
        assert client(here, "failing").call({}, "odd")["when"].startswith("<module")


# -- casts


def test_a_cast_to_nobody_raises_within_its_time(urls: list[str]) -> None:
    with rpc(urls[0], default_send_timeout=1) as here:
        began_s = time.monotonic()
        with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="nobody is there"):
            client(here, "no cast").cast({}, "note", what="lost")
        assert time.monotonic() - began_s < 10
        # And it stays unsent: a server that comes now does not get it.
        with serving(here, "no cast") as endpoint:
            client(here, "no cast").call({}, "add", a=1, b=1)
            assert endpoint.got == []


def test_mandatory_messages_to_nobody_fail_at_once(urls: list[str]) -> None:
    options = oslo_messaging.TransportOptions(at_least_once=True)
    with rpc(urls[0]) as here:
        for topic in ("no one", "no one else"):
            calls = client(here, topic, timeout=60, transport_options=options)
            began_s = time.monotonic()
            with pytest.raises(oslo_messaging.MessageUndeliverable) as caught:
                calls.call({}, "add", a=1, b=2)
            assert caught.value.routing_key == f"openstack.org/om/rpc/anycast/openstack/{topic}"
            assert caught.value.message["args"] == {"a": 1, "b": 2}
            with pytest.raises(oslo_messaging.MessageUndeliverable):
                calls.cast({}, "note", what="x")
            assert time.monotonic() - began_s < 15
        with serving(here, "no one"):
            assert client(here, "no one", transport_options=options).call({}, "add", a=1, b=2) == 3


def test_a_fanout_reaches_all_and_a_server_goes_before_a_fanout(urls: list[str]) -> None:
    with (
        rpc(urls[0]) as here,
        rpc(urls[1]) as there,
        serving(here, "all", "one") as one,
        serving(there, "all", "two") as two,
    ):
        fanout = client(here, "all", {"fanout": True})

        def is_known() -> bool:
            fanout.cast({}, "note", what="is anybody there?")
            return bool(two.got)

        within(30, is_known, "it is known over here who is over there")
        fanout.cast({}, "note", what="for all")
        # Each is worked on in a thread of its own, so the last sent need not be noted last.
        within(30, lambda: "for all" in one.got and "for all" in two.got, "both have it")
        client(here, "all", {"fanout": True, "server": "two"}).cast({}, "note", what="for two")
        within(30, lambda: "for two" in two.got, "it has come")
        assert "for two" not in one.got
    with rpc(urls[0]) as here:
        client(here, "all of none", {"fanout": True}).cast({}, "note", what="x")


@pytest.mark.parametrize("retry", [0, 1])
def test_without_a_container_a_bounded_number_of_retries_is_a_bounded_wait(retry: int) -> None:
    (port,) = free_ports(1)
    with rpc(f"amqp://127.0.0.1:{port}/") as here:
        with pytest.raises(NotDelivered, match="not connected") as caught:
            client(here, "x", retry=retry).cast({}, "note", what="x")
        assert f"127.0.0.1:{port}" in str(caught.value)


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_host_that_says_nothing_costs_a_cast_without_retries_its_own_time(hosts: int) -> None:
    """And not what each host of the URL may take to answer."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(hosts)]
        where = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in silent)
        here = stack.enter_context(rpc(f"amqp://{where}/?default_send_timeout=2"))
        began_s = time.monotonic()
        with pytest.raises(NotDelivered, match="not connected"):
            client(here, "x", retry=0).cast({}, "note", what="x")
        assert time.monotonic() - began_s < 9, "connecting may take 10 s for each host"


def test_a_silent_peer_is_noticed_without_being_asked_for() -> None:
    with rpc("amqp://h/") as here:
        assert 0 < here._driver._settings.client.idle_timeout_s <= 60


def test_a_container_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with rpc(f"amqp://127.0.0.1:{port}/") as here:
        failures: list[Exception] = []

        def cast() -> None:
            try:
                client(here, "late container").cast({}, "note", what="kept")
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=cast)
        thread.start()
        member = Member("late", port, [], tmp_path)
        member.start()
        try:
            with serving(here, "late container") as endpoint:
                thread.join()
                within(30, lambda: endpoint.got == ["kept"], "the cast has come")
        finally:
            member.kill()
    assert failures == []


def test_a_call_fails_at_once_where_its_container_dies_and_the_next_one_takes_the_other(
    tmp_path: Path,
) -> None:
    with meshed(tmp_path, "ab", ["ab"]) as members:
        linked(members.values())
        both = ",".join(f"127.0.0.1:{member.port}" for member in members.values())
        with (
            rpc(f"{members['a'].url}/") as there,
            serving(there, "dying") as endpoint,
            rpc(f"amqp://{both}/") as here,
        ):
            calls = client(here, "dying", timeout=50)
            assert calls.call({}, "add", a=1, b=1) == 2
            port = here._driver._connection._client.endpoint.port
            mine = next(member for member in members.values() if member.port == port)
            other = next(member for member in members.values() if member is not mine)
            killing = when(lambda: endpoint.is_blocked.wait(30), mine.kill)
            with pytest.raises(CallInterrupted, match="may have been worked on"):
                calls.call({}, "block")
            killing.join()
            endpoint.go_on.set()
            with rpc(f"{other.url}/") as elsewhere, serving(elsewhere, "dying", "two"):
                assert calls.call({}, "add", a=2, b=2) == 4


# -- links


def test_a_link_that_nothing_is_sent_on_is_detached(
    urls: list[str], mesh: dict[str, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.oslo.connection.PURGE_INTERVAL_S", 0.2)
    address = "openstack.org/om/rpc/anycast/openstack/idle"

    def senders() -> int:
        rows = mesh["a"].served.status()["addresses"]
        return sum(row["senders"] for row in rows if row["address"] == address)

    with (
        rpc(urls[0], default_sender_link_timeout=5) as here,
        rpc(urls[1]) as there,
        serving(there, "idle"),
    ):
        calls = client(here, "idle")
        assert calls.call({}, "add", a=1, b=1) == 2
        assert senders() == 1
        within(30, lambda: senders() == 0, "the link is detached")
        assert calls.call({}, "add", a=2, b=1) == 3


# -- notifications


@contextmanager
def listening(
    transport: NotificationTransport, *topics: str, pool: str | None = None
) -> Iterator[Events]:
    """A listener that may put back."""
    events = Events()
    listener = oslo_messaging.get_notification_listener(
        transport,
        [oslo_messaging.Target(topic=topic) for topic in topics],
        [events],
        executor="threading",
        allow_requeue=True,
        pool=pool,
    )
    listener.start()
    try:
        yield events
    finally:
        listener.stop()
        listener.wait()


def notifier(transport: NotificationTransport, *topics: str) -> Notifier:
    return oslo_messaging.Notifier(transport, "tests", driver="messagingv2", topics=list(topics))


def test_a_notification_waits_for_its_listener_and_comes_again_where_it_was_put_back(
    urls: list[str],
) -> None:
    with notifying(urls[0]) as here, notifying(urls[1]) as there:
        notifier(here, "waiting").info({}, "test", "kept")
        with listening(there, "waiting") as events:
            within(30, lambda: events.got == ["kept"], "it has come")
            events.put_back = 2
            notifier(here, "waiting").info({}, "test", "again")
            within(30, lambda: events.got == ["kept", "again"], "it has come again")
        assert events.put_back == 0


def test_notifications_outlive_a_container_that_is_told_to_keep_them(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "oslo.md").read_text()
    found = re.search(r"```toml\n.*\n\n(\[\[address\]\]\n.+?)```", page, re.DOTALL)
    assert found is not None
    (port,) = free_ports(1)
    member = Member("kept", port, [], tmp_path, found[1], f"data_dir = '{tmp_path}/data'\n")
    member.start()
    try:
        with notifying(f"{member.url}/") as here:
            notifier(here, "kept").info({}, "test", "kept")
            member.kill()
            member.start()
            with listening(here, "kept") as events:
                within(30, lambda: events.got == ["kept"], "it has come")
    finally:
        member.kill()


def test_each_pool_gets_a_copy(urls: list[str]) -> None:
    pools = {"notification_pools": ["audit", "bill"]}
    with notifying(urls[0], **pools) as here:
        with (
            listening(here, "pooled") as main,
            listening(here, "pooled", pool="audit") as audit,
            listening(here, "pooled", pool="bill") as one,
            listening(here, "pooled", pool="bill") as other,
        ):
            for number in range(6):
                notifier(here, "pooled").info({}, "test", number)
            expected = list(range(6))
            within(30, lambda: sorted(main.got) == sorted(audit.got) == expected, "copies")
            within(30, lambda: sorted(one.got + other.got) == expected, "shared in the pool")
        with pytest.raises(NotImplementedError, match="notification_pools"):
            oslo_messaging.get_notification_listener(
                here, [oslo_messaging.Target(topic="pooled")], [main], pool="unknown"
            ).start()


# -- processes


def test_the_child_of_a_fork_has_a_connection_of_its_own(urls: list[str]) -> None:
    """In a process of its own: this one's threads would not be in the child either."""
    done = subprocess.run(
        [sys.executable, str(HERE / "forking_program.py"), *urls],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"parent": [3, 7, 11], "child": [5, 9]}


def test_green_threads_wait_side_by_side_and_can_be_interrupted(urls: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "green_program.py"), urls[0]],
        capture_output=True,
        timeout=60,
        check=False,
    )
    errors = done.stderr.decode()[-3000:]
    assert done.returncode == 0, errors
    assert "fault" not in errors
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"sum": 5050, "interrupted": True, "others ran": True}


def test_nothing_is_left_of_clients_and_servers(mesh: dict[str, Member]) -> None:
    """Runs after the others: no reply address, no link."""

    def left() -> list[str]:
        return [
            row["address"]
            for member in mesh.values()
            for row in member.served.status()["addresses"]
            if (row["senders"] or row["receivers"])
            and not row["address"].startswith(("$management", "_reply"))
        ]

    within(30.0, lambda: not left(), "nothing is left")


# -- configuration


def test_a_query_of_the_url_overrides_options_and_wrong_options_are_told() -> None:
    with rpc("amqp://h/v?default_send_timeout=7&addressing_mode=legacy") as here:
        assert here._driver._settings.send_timeout_s == 7
        assert here._driver._settings.addresses.addressing_mode == "legacy"
    with pytest.raises(cfg.NoSuchOptError):
        oslo_messaging.get_rpc_transport(configuration(), url="amqp://h/?nonsense=1")
    with pytest.raises(ConfigurationError, match="pre_settled = rpc-nonsense"):
        oslo_messaging.get_rpc_transport(
            configuration(pre_settled=["rpc-nonsense"]), url="amqp://h/"
        )
    with rpc("amqp://h/?pre_settled=rpc-call,notify&notification_pools=a,b") as here:
        assert here._driver._settings.pre_settled == {"rpc-call", "notify"}
        assert here._driver._settings.notification_pools == ("a", "b")
    for url, said in (
        ("amqp://h/?default_send_timeout=soon", "default_send_timeout=soon in the transport_url: "),
        ("amqp://h/?idle_timeout=-1", "idle_timeout=-1 in the transport_url: "),
        ("amqp://h/?pre_settled=rpc-call,x", "pre_settled = x: it takes notify, rpc-call"),
        ("amqp://h:99999/", "port 99999: it goes up to 65535"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(said)):
            oslo_messaging.get_rpc_transport(configuration(), url=url)
    with pytest.raises(ConfigurationError, match=r"needs SCRAM-SHA-512-PLUS .* or PLAIN"):
        oslo_messaging.get_rpc_transport(
            configuration(sasl_mechanisms="EXTERNAL"), url="amqp://me:secret@h/"
        )
    with pytest.raises(ConfigurationError, match="/no/such"):
        oslo_messaging.get_rpc_transport(
            configuration(ssl=True, ssl_ca_file="/no/such"), url="amqp://h/"
        )


def test_a_second_driver_for_amqp_is_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "impl_amqp1.py").write_text("")
    import oslo_messaging._drivers  # noqa: PLC0415  # it is changed

    monkeypatch.setattr(
        oslo_messaging._drivers, "__path__", [*oslo_messaging._drivers.__path__, str(tmp_path)]
    )
    with pytest.raises(oslo_messaging.DriverLoadFailure, match=r"needs oslo\.messaging 15\.0\.0"):
        oslo_messaging.get_rpc_transport(configuration(), url="amqp://h/")


def test_nothing_is_connected_before_it_is_needed_nor_in_the_end() -> None:
    driver = Driver(
        configuration(), oslo_messaging.TransportURL.parse(configuration(), "amqp://h/")
    )
    assert driver._connection is None
    driver.cleanup()
    assert driver._connection is None
