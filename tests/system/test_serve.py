"""`cogwork serve` in a process of its own: what it says, what signals do, how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import trustme
from forked import forked
from proton import ConnectionException, Message, Timeout
from proton.utils import BlockingConnection

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password
from cogwork.io.wakefulness import DEVICE

from .manager import Manager
from .served import COGWORK, ended, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START_TIMEOUT_S = 60.0


class Process:
    """`cogwork serve` with its output in two files."""

    def __init__(self, folder: Path, *arguments: str, wrapper: Sequence[str] = ()) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            if wrapper:
                command = [*wrapper, *COGWORK, "serve", *arguments]
                self.process = subprocess.Popen(command, stdout=out, stderr=err)
            else:
                self.process = forked("serve", *arguments, stdout=out, stderr=err)
        within(START_TIMEOUT_S, lambda: "\n" in self.out.read_text(), "it says where it listens")

    @property
    def url(self) -> str:
        found = re.search(r"amqp://127\.0\.0\.1:\d+", self.out.read_text())
        assert found, self.out.read_text()
        return found[0]

    def signal(self, number: signal.Signals, says: str) -> str:
        """Send a signal and wait for a line on stderr; return all of stderr."""
        self.process.send_signal(number)
        within(30, lambda: says in self.err.read_text(), f"{says!r} after {number.name}")
        return self.err.read_text()

    def stop(self, timeout_s: float = 15.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, wrapper: Sequence[str] = ()) -> Iterator[Process]:
    process = Process(folder, *(arguments or ("--listen", "127.0.0.1:0")), wrapper=wrapper)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()


def failing(*arguments: str) -> tuple[int, str]:
    """Run a `cogwork serve` that cannot start; return its exit code and what it said."""
    done = ended("serve", *arguments)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("cogwork: ")
    return done.returncode, done.stderr


def test_it_says_where_it_listens(tmp_path: Path) -> None:
    with serving(tmp_path, "--id", "north", "--listen", "127.0.0.1:0") as running:
        assert re.fullmatch(
            r"container north listens on amqp://127\.0\.0\.1:\d+\n", running.out.read_text()
        )
        assert running.stop() == ExitCode.OK


def test_it_says_so_to_programs(tmp_path: Path) -> None:
    with serving(tmp_path, "--id", "north", "--listen", "127.0.0.1:0", "--json") as running:
        facts = json.loads(running.out.read_text())
        assert facts["id"] == "north"
        assert facts["process_id"] == running.process.pid
        (endpoint,) = facts["endpoints"]
        with Manager(endpoint) as manager:
            assert manager.get("READ", "container")["name"] == "north"


@pytest.mark.parametrize("is_abstract", [False, True])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_tells_a_service_manager_once_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str, *, is_abstract: bool
) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{path}" if is_abstract else str(path))
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{path}" if is_abstract else str(path))
        manager.settimeout(30)
        options = ("--id", "north", "--listen", "127.0.0.1:0", "--workers", workers)
        with serving(tmp_path, *options) as running:
            assert manager.recv(100) == b"READY=1"
            assert "listens on" in running.out.read_text()
            assert running.stop() == ExitCode.OK
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_tells_a_service_manager_again_and_again_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        options = ("--id", "north", "--listen", "127.0.0.1:0", "--workers", workers)
        with serving(tmp_path, *options) as running:
            heard = [manager.recv(100) for _ in range(6)]
            assert heard.count(b"WATCHDOG=1") >= 5
            running.process.send_signal(signal.SIGSTOP)
            manager.setblocking(False)
            _take_all(manager)
            time.sleep(1)
            assert _take_all(manager) <= int(workers)  # what was on its way
            running.process.send_signal(signal.SIGCONT)
            assert running.stop() == ExitCode.OK


def _take_all(manager: socket.socket) -> int:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while manager.recv(100):
            count += 1
    return count


def test_it_serves_where_no_service_manager_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    with serving(tmp_path, "--id", "north", "--listen", "127.0.0.1:0") as running:
        assert running.stop() == ExitCode.OK
        assert (
            "cannot notify the service manager of the start (NOTIFY_SOCKET)"
            in running.err.read_text()
        )


def test_it_takes_more_connections_than_the_soft_limit_of_descriptors(tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh")
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(serving(tmp_path, wrapper=limited))
        place = urlsplit(running.url)
        for _ in range(100):
            stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=10))
        with Manager(running.url) as manager:
            assert manager.get("READ", "container")["connections_accepted"] > 100
        assert running.stop() == ExitCode.OK


# -- how it does not start


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, line = failing("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert code == ExitCode.CONNECTION
    assert "cannot listen on 127.0.0.1:" in line
    assert "in use" in line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[limits]\nconections = 5", "2: unknown key 'limits.conections'"),
        ("[limits]\nconnections = 0", "2: limits.connections: found 0"),
        ("id = ", "found Invalid value"),
        (
            '[[listen]]\nport = 0\ntransport = "amqps"\ntls = { certificate = "gone.pem" }',
            "gone.pem': No such file",
        ),
        (
            '[[node]]\naddress = "a"\nkind = "no.such:Thing"',
            '3: node[0].kind: found "no.such:Thing", which cannot be loaded: No module',
        ),
    ],
)
def test_a_broken_configuration_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(text if "listen" in text else f'listen = ["127.0.0.1:0"]\n{text}')
    code, line = failing("--config", str(file))
    assert code == ExitCode.CONFIGURATION
    assert re.sub(r"^(\d+)", lambda m: str(int(m[1]) + ("listen" not in text)), says) in line


def test_a_configuration_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    code, line = failing("--config", str(tmp_path / "gone.toml"))
    assert code == ExitCode.CONFIGURATION
    assert f"cannot read '{tmp_path}/gone.toml': No such file or directory" in line


def test_a_data_directory_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, line = failing("--listen", "127.0.0.1:0", "--data", str(tmp_path / "file" / "below"))
    assert code == ExitCode.ERROR
    assert "Not a directory" in line


# -- how it ends


def test_it_waits_for_what_is_unsettled(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        consumer = BlockingConnection(running.url, timeout=10)
        receiver = consumer.create_receiver("drained", credit=1)
        producer = BlockingConnection(running.url, timeout=10)
        delivery: Any = producer.create_sender("drained").link.send(Message(body="x"))
        with contextlib.suppress(Timeout):
            producer.wait(lambda: False, timeout=0.5)
        assert receiver.receive().body == "x"
        running.signal(signal.SIGTERM, "stopping: 1 deliveries are unsettled")
        time.sleep(0.3)
        assert running.process.poll() is None
        receiver.accept()
        with pytest.raises(ConnectionException, match=r"amqp:connection:forced.*is shutting down"):
            consumer.wait(lambda: False, timeout=5)
        with pytest.raises(ConnectionException):
            producer.wait(lambda: False, timeout=5)
        assert delivery.remote_state == delivery.ACCEPTED
        assert running.process.wait(20) == ExitCode.OK


def test_it_accepts_nobody_while_it_drains(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        with Manager(running.url) as manager:
            receiver = manager.connection.create_receiver("drained", credit=1)
            manager.connection.create_sender("drained").link.send(Message(body="x"))
            receiver.receive()
            running.signal(signal.SIGTERM, "stopping")
            address = ("127.0.0.1", int(running.url.rpartition(":")[2]))
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, timeout=5)
            receiver.accept()
            with pytest.raises(ConnectionException):
                manager.connection.wait(lambda: False, timeout=5)
        assert running.process.wait(20) == ExitCode.OK


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as running:
        consumer = BlockingConnection(running.url, timeout=10)
        receiver = consumer.create_receiver("held", credit=1)
        consumer.create_sender("held").link.send(Message(body="x"))
        receiver.receive()
        running.signal(number, "stopping")
        time.sleep(0.3)
        assert running.process.poll() is None
        running.process.send_signal(number)
        assert running.process.wait(8) == ExitCode.OK


# -- what other signals do


def test_the_state_goes_to_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(tmp_path, "--listen", "127.0.0.1:0", "--data", str(data)) as running:
        with Manager(running.url) as manager:
            manager.connection.create_receiver("topic/a.#", credit=5, name="shown")
            running.signal(signal.SIGUSR1, "state written to")
        state = json.loads((data / "state.json").read_text())
    assert [row["address"] for row in state["links"] if row["link"] == "shown"] == ["topic/a.#"]
    assert {"container", "totals", "connections", "sessions", "addresses", "queues"} < set(state)
    assert state["totals"]["connections"] == 1


def test_without_one_the_state_goes_to_stderr(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        said = running.signal(signal.SIGUSR1, "}\n")
        line = next(line for line in said.splitlines() if line.startswith("{"))
        assert json.loads(line)["connections"] == []


def test_one_line_says_how_it_is(tmp_path: Path) -> None:
    with serving(tmp_path, "--id", "north", "--listen", "127.0.0.1:0") as running:
        said = running.signal(signal.SIGUSR2, "north: ")
        assert re.search(r"north: 0 connections, 0 links, 0 unsettled, .* s CPU, up ", said)


SECRET = "five spare teeth"


def configured(port: int, *parts: str) -> str:
    return "\n".join((f"[[listen]]\nport = {port}", *parts))


def user(name: str, address: str) -> str:
    return (
        f'[[user]]\nname = "{name}"\npassword_hash = "{hash_password(SECRET)}"\n'
        f'permissions = [{{ address = "{address}", rights = ["send", "receive", "manage"] }}]'
    )


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


def login(url: str, name: str, secret: str = SECRET) -> BlockingConnection:
    secret = secret.replace(" ", "%20")
    return BlockingConnection(url.replace("://", f"://{name}:{secret}@"), timeout=10)


def test_users_come_and_go_without_a_restart(tmp_path: Path, port: int) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(configured(port, user("ann", "#")))
    with serving(tmp_path, "--config", str(file)) as running:
        login(running.url, "ann").close()
        stays = login(running.url, "ann")
        standing = stays.create_sender("queue/anns")
        file.write_text(configured(port, user("bob", "queue/#")))
        said = running.signal(signal.SIGHUP, "configuration reloaded")
        assert "user[ann]: removed" in said
        assert "user[bob]: added" in said
        assert SECRET not in said
        assert "scrypt" not in said
        with pytest.raises(ConnectionException, match=r"(?i)auth"):
            login(running.url, "ann")
        bob = login(running.url, "bob")
        bob.create_sender("queue/bobs").send(Message(body="x"))
        with pytest.raises(Exception, match="no permission to send at 'other'"):
            bob.create_sender("other")
        with pytest.raises(ConnectionException, match="user 'ann' is not configured any more"):
            standing.send(Message(body="x"))


def test_addresses_queues_vhosts_and_limits_are_taken_over(tmp_path: Path, port: int) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(configured(port))
    with serving(tmp_path, "--config", str(file)) as running:
        file.write_text(
            configured(
                port,
                '[[address]]\nprefix = "news"\ndistribution = "multicast"',
                '[[queue]]\naddress = "queue/declared"\nmaximum_length = 5',
                '[[vhost]]\nname = "blue"',
                "[limits]\nconnections = 3",
            )
        )
        said = running.signal(signal.SIGHUP, "configuration reloaded")
        assert "limits.connections: 10000 → 3" in said
        with Manager(running.url) as manager:
            assert manager.row("queue", address="queue/declared")["options"]["maximum_length"] == 5
            sender = manager.connection.create_sender("news/today")
            sender.send(Message(body="accepted, as nobody needs to listen"))
            Manager(running.url, virtual_host="vhost:blue").connection.close()
            one, two = (BlockingConnection(running.url, timeout=10) for _ in range(2))
            with pytest.raises(ConnectionException):
                BlockingConnection(running.url, timeout=10)
            one.close()
            two.close()


def test_what_needs_a_restart_says_so(tmp_path: Path, port: int) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(configured(port))
    with serving(tmp_path, "--config", str(file)) as running:
        file.write_text(f'id = "south"\n{configured(0)}')
        said = running.signal(signal.SIGHUP, "configuration reloaded")
        assert 'id: unset → "south" (needs a restart)' in said
        assert f"listen[127.0.0.1:{port}]: removed (needs a restart)" in said
        with Manager(running.url) as manager:
            assert manager.get("READ", "container")["name"] != "south"


def holds(process_id: int, path: str) -> bool:
    """Return whether a process has a file open."""
    for link in Path(f"/proc/{process_id}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(link) == path:
                return True
    return False


@pytest.mark.skipif(not os.access(DEVICE, os.W_OK), reason=f"{DEVICE} is not ours to write")
def test_processors_are_kept_awake_while_there_is_work(tmp_path: Path, port: int) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(f"keep_awake = true\n{configured(port)}")
    with serving(tmp_path, "--config", str(file)) as running:
        process_id = running.process.pid
        within(30, lambda: not holds(process_id, DEVICE), "let go of when it has started")
        manager = Manager(running.url)

        def is_kept_awake() -> bool:
            for _ in range(100):
                manager.get("READ", "container")
            return holds(process_id, DEVICE)

        within(30, is_kept_awake, "held while there is much to answer")
        file.write_text(configured(port))
        running.signal(signal.SIGHUP, "configuration reloaded")
        assert not is_kept_awake()
        manager.connection.close()
        assert running.stop() == 0


def test_a_broken_file_changes_nothing(tmp_path: Path, port: int) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(configured(port, user("ann", "#")))
    with serving(tmp_path, "--config", str(file)) as running:
        file.write_text(configured(port, "tomato = 1"))
        said = running.signal(signal.SIGHUP, "cannot reload the configuration")
        assert "unknown key 'listen[0].tomato'" in said
        login(running.url, "ann").close()


def presented(port: int, authority: trustme.CA) -> bytes:
    """Return the certificate that a listener shows."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        shown = encrypted.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def test_certificates_are_read_again(tmp_path: Path, port: int) -> None:
    authority = trustme.CA()
    file, certificate = tmp_path / "cogwork.toml", tmp_path / "server.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(certificate)
    tls = f'[[listen]]\nport = {port}\ntransport = "amqps"\ntls = {{ certificate = "server.pem" }}'
    file.write_text(f"{configured(0)}\n{tls}")
    with serving(tmp_path, "--config", str(file)) as running:
        before = presented(port, authority)
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(certificate)
        running.signal(signal.SIGHUP, "configuration reloaded")
        after = presented(port, authority)
        assert after != before
        certificate.write_text("no certificate")
        said = running.signal(signal.SIGHUP, "cannot reload a certificate")
        assert "server.pem" in said
        assert presented(port, authority) == after
