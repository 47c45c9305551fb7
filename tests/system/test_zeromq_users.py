"""Clients of the ZeroMQ gateway are users: by their keys, or as it is configured."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import zmq
import zmq.auth

from cogwork.cli.exit_codes import ExitCode

from .honest import beside, gateway_url
from .served import ended, within
from .zeromq_mesh import gateway, session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .zeromq_mesh import Client, Gateway

GatewayError = session.GatewayError

USERS = """
[security_log]
to = "file"
path = "security.log"

[anonymous]
permissions = [
    { address = "#", rights = ["send", "receive", "manage"] },
    { address = "$management", rights = ["send", "receive", "manage"] },
]

[[user]]
name = "alice"
permissions = [{ address = "unicast/#", rights = ["send", "receive"] }]

[[user]]
name = "bob"
permissions = [
    { address = "unicast/bob/#", rights = ["receive"] },
    { address = "exclusive/#", rights = ["receive"] },
]

[[user]]
name = "root"
permissions = [{ address = "$management", rights = ["send", "manage"] }]
"""

OPERATIONS = (
    ("CREATE", "org.cogwork.link", "127.0.0.1:1"),
    ("LEAVE", "org.cogwork.mesh", "self"),
    ("CREATE", "queue", "queue/made"),
    ("QUERY", "connection", "self"),
)


class World:
    """A gateway whose clients have keys, and those keys."""

    def __init__(self, running: Gateway, folder: Path) -> None:
        self.running = running
        self.folder = folder
        self.server, _ = zmq.auth.load_certificate(folder / "gateway.key")

    def keys(self, name: str) -> tuple[bytes, bytes, bytes]:
        """Return the keys of a user, or of whom keys were made for."""
        found = zmq.auth.load_certificate(self.folder / "secrets" / f"{name}.key_secret")
        made: tuple[bytes, bytes, bytes] = session.Keys(self.server, *found)
        return made

    def client(self, name: str, kind: str = "roundrobin", **options: object) -> Client:
        """Connect a client with somebody's keys."""
        return self.running.client(kind, keys=self.keys(name), **options)

    def security_log(self) -> str:
        """Return what the security log tells."""
        return (self.folder / "security.log").read_text()

    def log(self) -> str:
        """Return what the container has said."""
        return (self.folder / "cogwork.log").read_text()


def make_keys(folder: Path, *known: str, strangers: tuple[str, ...] = ()) -> None:
    """Make the gateway's keys, and clients' keys, of whom the gateway knows some."""
    (folder / "clients").mkdir(parents=True)
    (folder / "secrets").mkdir()
    zmq.auth.create_certificates(folder, "gateway")
    for name in (*known, *strangers):
        zmq.auth.create_certificates(folder / "secrets", name)
    for name in known:
        public = (folder / "secrets" / f"{name}.key").read_bytes()
        (folder / "clients" / f"{name}.key").write_bytes(public)


CURVE = 'curve_secret_file = "gateway.key_secret"\ncurve_clients_dir = "clients"\n'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("zeromq-users") / "container"
    make_keys(folder, "alice", "bob", "root", "carol", strangers=("stranger",))
    with gateway(folder, CURVE, USERS) as running:
        yield World(running, folder)


def undisturbed(world: World) -> AbstractContextManager[None]:
    """Have an honest client go on beside a block, which must not notice."""
    return beside(gateway_url(world.running.kinds["roundrobin"], world.keys("alice")), "gateway")


def test_who_has_only_the_gateways_public_key_gets_nowhere(world: World) -> None:
    with undisturbed(world):
        before = world.running.status()
        strangers = [world.running.client(session="x")]
        strangers.append(world.client("stranger", session="x"))
        strangers.append(world.client("carol", session="x"))
        for stranger in strangers:
            stranger.socket.sndtimeo = 300  # once it is refused, there is nobody to send to
            for verb, header in (("HELLO", {}), ("CAST", {"address": "unicast/stranger"})):
                with suppress(zmq.Again):
                    stranger.send(verb, header)
            assert not stranger.socket.poll(500)
        within(
            30, lambda: world.running.status()["refused_keys"] >= 2, "strangers' keys are refused"
        )
        assert world.running.status()["sessions"] == before["sessions"]
        assert "unicast/stranger" not in world.running.addresses()
    told = [json.loads(line) for line in world.security_log().splitlines()]
    refused = [each for each in told if each["event"] == "connection_refused"]
    assert {(each["peer"], each["listener"], each["reason"]) for each in refused} == {
        ("127.0.0.1", "gateway zeromq", "its key is no user's")
    }


def test_a_key_file_that_is_no_users_is_told(world: World) -> None:
    text = "curve_clients_dir: carol.key: no [[user]] is named 'carol': this key is refused"
    assert text in world.log()
    stranger = world.client("carol", session="x")
    stranger.socket.sndtimeo = 300
    with suppress(zmq.Again):
        stranger.send("PING", {})
    within(30, lambda: "refused the key of carol.key" in world.log(), "the refusal is told")


def manage(client: Client, operation: str, kind: str, name: str) -> Any:
    """Ask `$management` for something, as a client of the gateway can."""
    client.send(
        "CALL",
        {
            "id": 9,
            "address": "$management",
            "timeout_s": 2,
            "properties": {"operation": operation, "type": kind, "name": name},
        },
        {},
    )
    return client.receive()


def test_without_a_grant_nobody_manages_anything(world: World) -> None:
    with undisturbed(world):
        for name in ("alice", "bob"):
            client = world.client(name)
            for asked in OPERATIONS:
                answer = manage(client, *asked)
                assert answer.verb == "ERROR", answer
                assert "no permission" in answer.header["text"], answer
        assert "queue/made" not in world.running.addresses()


def test_who_has_the_grant_manages(world: World) -> None:
    answer = manage(world.client("root"), "QUERY", "connection", "self")
    assert answer.header["properties"]["statusCode"] == 200, answer


def test_two_users_of_one_gateway_have_their_own_rights(world: World) -> None:
    alice, bob = world.client("alice"), world.client("bob")
    bob.register("bob/a")
    alice.send("CALL", {"id": 1, "to": "bob/a", "timeout_s": 20}, "x")
    bob.serve_one(lambda request: request.body * 2)
    assert alice.receive().body == "xx"
    with pytest.raises(GatewayError, match="no permission to receive at 'unicast/other'"):
        bob.register("other")
    with pytest.raises(GatewayError, match="no permission to send at 'unicast/bob/a'"):
        bob.call("bob/a", "x", timeout_s=2)
    with pytest.raises(GatewayError, match="no permission to send at"):
        bob.cast("other", "x")
    peer = world.client("alice", "peer2peer")
    with pytest.raises(GatewayError, match="no permission to receive at 'exclusive/alice'"):
        peer.register("alice")
    world.client("bob", "peer2peer").register("bob")


def test_a_session_is_its_users_alone(world: World) -> None:
    alice = world.client("alice")
    thief = world.client("bob", session=alice.id)
    with pytest.raises(GatewayError, match="no such session"):
        thief.ask("PING", {})
    assert alice.ask("PING", {}).verb == "PONG"


def test_a_cast_without_a_grant_reaches_nobody(world: World) -> None:
    alice, bob = world.client("alice"), world.client("bob")
    alice.register("quiet")
    bob.send("CAST", {"to": "quiet"}, "forged")
    alice.send("CAST", {"to": "quiet"}, "own")
    assert alice.receive().body == "own"


def test_no_session_and_no_user_is_left_where_users_go(tmp_path: Path) -> None:
    folder = tmp_path / "container"
    make_keys(folder, "alice")
    with gateway(folder, CURVE, USERS) as running:
        world = World(running, folder)
        alice = world.client("alice")
        alice.register("a")
        file = folder / "cogwork.toml"
        file.write_text(file.read_text().replace('name = "alice"', 'name = "other"'))
        running.container.process.send_signal(signal.SIGHUP)
        within(30, lambda: "other" in world.log(), "the file was read again")
        with pytest.raises(GatewayError):
            alice.register("b")


def test_a_key_that_is_taken_away_lets_nobody_in(tmp_path: Path) -> None:
    folder = tmp_path / "container"
    make_keys(folder, "alice", "bob")
    with gateway(folder, CURVE, USERS) as running:
        world = World(running, folder)
        alice, bob = world.client("alice"), world.client("bob", "peer2peer")
        alice.register("a")
        bob.register("bob")
        for each in ("secrets/alice.key", "secrets/alice.key_secret", "clients/alice.key"):
            (folder / each).rename(folder / f"{each}.old")
        zmq.auth.create_certificates(folder / "secrets", "alice")
        file = folder / "clients" / "alice.key"
        file.write_text("no key")
        running.container.process.send_signal(signal.SIGHUP)
        within(30, lambda: "alice.key: no CURVE certificate" in world.log(), "the mistake is told")
        assert alice.ask("PING", {}).verb == "PONG", "the old keys hold on"
        file.write_bytes((folder / "secrets" / "alice.key").read_bytes())
        running.container.process.send_signal(signal.SIGHUP)
        within(30, lambda: running.status()["sessions"] == 1, "sessions by the old key have ended")
        for verb in ("PING", "HELLO"):
            with pytest.raises(GatewayError, match="this key may not connect any more"):
                alice.ask(verb, {})
        world.client("alice").register("a")
        assert bob.ask("PING", {}).verb == "PONG"


# -- loopback, without keys


def test_without_users_a_client_uses_addresses_and_manages_nothing(tmp_path: Path) -> None:
    with gateway(tmp_path / "container") as running:
        client = running.client()
        client.register("a")
        for asked in OPERATIONS:
            answer = manage(client, *asked)
            assert answer.verb == "ERROR", answer
            assert "no permission" in answer.header["text"], answer
        service = running.client()
        service.register("b")
        client.send("CALL", {"id": 1, "to": "b", "timeout_s": 20}, "x")
        service.serve_one(lambda request: request.body)
        assert client.receive().body == "x"


def test_the_user_that_is_named_is_what_clients_are(tmp_path: Path) -> None:
    with gateway(tmp_path / "container", 'user = "bob"\n', USERS) as running:
        client = running.client()
        client.register("bob/a")
        with pytest.raises(GatewayError, match="no permission to receive"):
            client.register("a")


# -- configurations


@pytest.mark.parametrize(
    ("options", "configuration", "says"),
    [
        ("", USERS, "zeromq.user: is missing: where there are users, it names the [[user]]"),
        ('user = "dave"', USERS, "gateway.zeromq.user: no [[user]] is named 'dave'"),
        ('roundrobin = "tcp://0.0.0.0:0"', "", "is not on loopback"),
        ('roundrobin = "tcp://*:0"\nuser = "bob"', USERS, "is not on loopback"),
        (
            'roundrobin = "tcp://0.0.0.0:0"\ncurve_secret_file = "gateway.key_secret"\n'
            'user = "bob"',
            USERS,
            "each client has a key of its own: set curve_secret_file and curve_clients_dir",
        ),
    ],
)
def test_a_gateway_that_would_let_anybody_in_does_not_start(
    tmp_path: Path, options: str, configuration: str, says: str
) -> None:
    make_keys(tmp_path / "keys")
    file = tmp_path / "keys" / "cogwork.toml"
    file.write_text(f"{configuration}\n[gateway.zeromq]\n{options}\n")
    refused = ended("serve", "--listen", "127.0.0.1:0", "--config", str(file), timeout_s=60)
    assert refused.returncode == ExitCode.CONFIGURATION
    assert says in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_reload_that_would_let_anybody_in_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "container"
    with gateway(folder) as running:
        file = folder / "cogwork.toml"
        before = file.read_text()
        file.write_text(before.replace('roundrobin = "tcp://127.', 'roundrobin = "tcp://0.'))
        running.container.process.send_signal(signal.SIGHUP)
        log = folder / "cogwork.log"
        within(30, lambda: "is not on loopback" in log.read_text(), "the mistake is told")
        file.write_text(f"{USERS}\n{before}")
        running.container.process.send_signal(signal.SIGHUP)
        within(30, lambda: "zeromq.user: is missing" in log.read_text(), "the mistake is told")
        client = running.client()
        client.register("a")
        assert json.loads(json.dumps(running.status()))["registrations"] == 1
