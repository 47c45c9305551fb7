"""Every limit of `[limits]`, reached; and bad logins, permissions, addresses.

What goes over a limit ends with an error that names it, and nothing else ends: each test asks the
container afterwards over another connection.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest
from proton import ConnectionException, Delivery, Message, Session, Timeout
from proton.utils import BlockingConnection, LinkDetached, SendException

from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Flow,
    Open,
    Role,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.config.password_hash import hash_password
from cogwork.dataplane.encoding.codec import decode, encode

from .manager import Manager
from .served import Served, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "six spare teeth"

BY_DEFAULT_S = 9.0
"""Less than what holds where no limit is given; a loaded machine is not as late as that."""


@contextlib.contextmanager
def limited(folder: Path, limits: str, more: str = "") -> Iterator[Served]:
    """Run a container with some limits, and ask it at the end whether it is well."""
    with served(folder, f"{more}\n[limits]\n{limits}\n") as running:
        yield running
        with Manager(running.url) as manager:
            assert manager.get("READ", "container")["process_id"] == running.process.pid


class RawPeer:
    """A peer that writes frames itself, and minds no limit."""

    def __init__(self, container: Served) -> None:
        port = int(container.url.rpartition(":")[2])
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._input = b""

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, body: bytes, channel: int = 0) -> None:
        self._socket.sendall(struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body)

    def open(self, window: int = 1000) -> None:
        """Open, and begin a session with an endless window."""
        self._socket.sendall(AMQP_HEADER)
        self.send(encode_performative(Open(container_id="raw"), encode))
        begin = Begin(next_outgoing_id=0, incoming_window=window, outgoing_window=window)
        self.send(encode_performative(begin, encode))

    def said(self) -> str:
        """Read until the container closes; return the error of its close."""
        while True:
            data = self._socket.recv(65536)
            if not data:
                break
            self._input += data
        at, errors = 8, []
        while at + 8 <= len(self._input):
            size, offset, kind, _ = struct.unpack_from(">IBBH", self._input, at)
            if kind == 0 and size > 8:
                performative, _ = decode_performative(
                    self._input[at + offset * 4 : at + size], 0, decode
                )
                error = getattr(performative, "error", None)
                if error is not None:
                    errors.append(f"{error.condition}: {error.description}")
            at += size
        return errors[0] if errors else ""


def encode_attach(address: str, handle: int = 0) -> bytes:
    attach = Attach(
        name=address,
        handle=handle,
        role=Role.SENDER,
        source=Source(),
        target=Target(address=address),
        initial_delivery_count=0,
    )
    return encode_performative(attach, encode)


def transfer(number: int, size_bytes: int = 10) -> bytes:
    head = Transfer(
        handle=0, delivery_id=number, delivery_tag=b"%d" % number, message_format=0, settled=True
    )
    return encode_performative(head, encode) + encode_body(size_bytes)


def encode_body(size_bytes: int) -> bytes:
    return b"\x00\x53\x75\xb0" + struct.pack(">I", size_bytes) + b"x" * size_bytes


def attach_receiver(address: str) -> bytes:
    attach = Attach(
        name="raw", handle=0, role=Role.RECEIVER, source=Source(address=address), target=Target()
    )
    return encode_performative(attach, encode)


def flow(credit: int) -> bytes:
    state = Flow(
        next_incoming_id=0,
        incoming_window=1_000_000,
        next_outgoing_id=0,
        outgoing_window=1_000_000,
        handle=0,
        delivery_count=0,
        link_credit=credit,
    )
    return encode_performative(state, encode)


def test_connections(tmp_path: Path) -> None:
    with limited(tmp_path, "connections = 3") as container:
        held = [BlockingConnection(container.url, timeout=5) for _ in range(3)]
        with pytest.raises(ConnectionException, match=r"limits.connections = 3"):
            BlockingConnection(container.url, timeout=5)
        held.pop().close()
        with Manager(container.url) as manager:
            row = manager.get("READ", "container")
            assert row["connections_refused"] >= 1
            assert row["totals"]["connections"] == 3
        for connection in held:
            connection.close()


def test_sessions(tmp_path: Path) -> None:
    with limited(tmp_path, "sessions_per_connection = 4") as container, RawPeer(container) as peer:
        peer.open()
        begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        for channel in range(1, 5):
            peer.send(encode_performative(begin, encode), channel)
        assert "channel 4 is above the channel-max of 3" in peer.said()


def test_a_connection_may_have_a_session_for_each_of_its_links(tmp_path: Path) -> None:
    with limited(tmp_path, "") as container, RawPeer(container) as peer:
        peer.open()
        begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        for channel in range(1, 1000):
            peer.send(encode_performative(begin, encode), channel)
        with Manager(container.url) as manager:
            within(
                10, lambda: len(manager.rows("session")) >= 1000, "a thousand sessions have begun"
            )


def test_links(tmp_path: Path) -> None:
    with limited(tmp_path, "links_per_session = 3") as container, RawPeer(container) as peer:
        peer.open()
        for handle in range(4):
            peer.send(encode_attach(f"limited/{handle}", handle))
        assert "handle 3 is above the handle-max of 2" in peer.said()


def test_frame_size(tmp_path: Path) -> None:
    with (
        limited(tmp_path, "max_frame_size_bytes = 1024") as container,
        RawPeer(container) as peer,
    ):
        peer.open()
        peer.send(b"\x00" * 1024)
        assert "a frame of 1032 bytes; between 8 and 1024 are allowed" in peer.said()


@pytest.mark.parametrize("size_bytes", [2_000, 200_000])
def test_message_size(tmp_path: Path, size_bytes: int) -> None:
    limits = "max_message_size_bytes = 1500\nmax_frame_size_bytes = 4096"
    with limited(tmp_path, limits) as container, Manager(container.url) as manager:
        sender = manager.connection.create_sender("sink/limited")
        assert sender.link.remote_max_message_size == 1500
        sender.send(Message(body="x" * 1000))
        with pytest.raises(LinkDetached, match="message of more than 1500 bytes"):
            sender.send(Message(body="x" * size_bytes))
        manager.connection.create_sender("sink/limited").send(Message(body="x"))


def test_link_credit(tmp_path: Path) -> None:
    with limited(tmp_path, "link_credit = 12") as container, Manager(container.url) as manager:
        sender = manager.connection.create_sender("topic/limited")
        manager.connection.wait(lambda: sender.link.credit == 12, timeout=5)


def test_session_window(tmp_path: Path) -> None:
    """A window is a promise: who sends beyond it is ended, and only that session."""
    with (
        limited(tmp_path, "session_window_frames = 5\nlink_credit = 1000") as container,
        RawPeer(container) as peer,
    ):
        peer.open()
        attach = encode_attach("limited/window")
        peer.send(attach)
        with Manager(container.url) as manager:
            manager.connection.create_receiver("limited/window", credit=1000)
            within(30, lambda: manager.row("link", link="limited/window")["credit"] > 0, "credit")
            for number in range(200):
                peer.send(transfer(number))
            rows = manager.rows("session")
            assert all(row["incoming_window"] <= 5 for row in rows)


def test_a_transfer_beyond_the_credit(tmp_path: Path) -> None:
    """Nobody receives, so there is no credit to send by."""
    with limited(tmp_path, "") as container, RawPeer(container) as peer:
        peer.open()
        peer.send(encode_attach("limited/nobody"))
        peer.send(transfer(0))
        peer.send(encode_performative(Open(container_id="again"), encode))
        assert "a transfer beyond the link credit" in peer.said()


def test_unsent_bytes(tmp_path: Path) -> None:
    """A subscriber that does not read gets no more than the limit, and a little, put by for it."""
    limits = "unsent_bytes = 50000"
    slow = '[[address]]\nprefix = "topic"\nslow_subscriber = "block"\nblock_timeout_s = 60.0'
    with limited(tmp_path, limits, slow) as container, RawPeer(container) as peer:
        peer.open()
        peer._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.send(attach_receiver("topic/limited.#"))
        peer.send(flow(credit=1_000_000))
        with Manager(container.url) as manager:
            sender = manager.connection.create_sender("topic/limited.big")
            for _ in range(1000):
                sender.link.send(Message(body=b"x" * 20_000))
            with contextlib.suppress(Timeout):
                manager.connection.wait(lambda: sender.link.queued == 0, timeout=5)
            waiting = manager.get("READ", "container")["totals"]["unsent_bytes"]
            assert 50_000 < waiting < 50_000 + 2 * 65_536


def test_held_bytes(tmp_path: Path) -> None:
    """Too much is held of one publisher's: its window closes, and opens again; others go on."""
    frames = "session_window_frames = 20\nmax_frame_size_bytes = 4096"
    limits = f"held_bytes = 100000\n{frames}\ndrain_timeout_s = 0"
    slow = '[[address]]\nprefix = "topic"\nslow_subscriber = "block"\nblock_timeout_s = 60.0'
    with limited(tmp_path, limits, slow) as container:
        slow_one = BlockingConnection(container.url, timeout=10)
        receiver = slow_one.create_receiver("topic/limited.slow", credit=0)
        culprit = BlockingConnection(container.url, timeout=10)
        sender = culprit.create_sender("topic/limited.slow")
        for _ in range(60):
            sender.link.send(Message(body=b"x" * 3000))
        with pytest.raises(Timeout):
            culprit.wait(lambda: sender.link.queued == 0, timeout=1)
        with Manager(container.url) as manager:
            held = manager.get("READ", "container")["totals"]["held_bytes"]
            assert 100_000 < held < 100_000 + 20 * 4096
            other = manager.connection.create_sender("sink/limited")
            for _ in range(30):
                other.link.send(Message(body=b"x" * 3000))
            manager.connection.wait(lambda: other.link.queued == 0, timeout=5)
            receiver.flow(1000)
            for _ in range(60 - sender.link.queued):  # the culprit sends only while it is waited on
                receiver.receive()
                receiver.accept()
            culprit.wait(lambda: sender.link.queued == 0, timeout=5)


@pytest.mark.parametrize("sent", [b"", b"AMQP", AMQP_HEADER, b"AMQP\x03\x01\x00\x00"])
def test_time_to_authenticate(tmp_path: Path, sent: bytes) -> None:
    with limited(tmp_path, "authentication_timeout_s = 1.0") as container:
        started_s = time.monotonic()
        with RawPeer(container) as peer:
            peer._socket.sendall(sent)
            peer.said()
            assert 0.9 < time.monotonic() - started_s < BY_DEFAULT_S
        with Manager(container.url) as manager:
            assert manager.get("READ", "container")["totals"]["connections"] == 1


def test_idle_timeout(tmp_path: Path) -> None:
    with limited(tmp_path, "idle_timeout_s = 1.0") as container, RawPeer(container) as peer:
        peer.open()
        assert "nothing was received for 1 s" in peer.said()


def test_drain_timeout(tmp_path: Path) -> None:
    with served(tmp_path, "[limits]\ndrain_timeout_s = 1.0") as container:
        connection = BlockingConnection(container.url, timeout=10)
        receiver = connection.create_receiver("held", credit=1)
        connection.create_sender("held").link.send(Message(body="x"))
        receiver.receive()
        started_s = time.monotonic()
        container.process.terminate()
        container.process.wait(10)
        assert 0.9 < time.monotonic() - started_s < BY_DEFAULT_S
        container.process.poll = lambda: None  # type: ignore[method-assign]  # it ended on purpose


# -- who is not let in, and what is not there

USERS = f"""
[[user]]
name = "ann"
password_hash = "{hash_password(SECRET)}"
permissions = [{{ address = "queue/anns.#", rights = ["send", "receive"] }}]

[anonymous]
permissions = [{{ address = "$management", rights = ["send", "manage"] }}]
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("users"), USERS) as running:
        yield running


def login(container: Served, name: str, secret: str) -> BlockingConnection:
    url = container.url.replace("://", f"://{name}:{secret.replace(' ', '%20')}@")
    return BlockingConnection(url, timeout=10)


@pytest.mark.parametrize(
    ("name", "secret"), [("ann", "wrong"), ("nobody", SECRET), ("ann", "x" * 999)]
)
def test_a_wrong_password_is_refused(container: Served, name: str, secret: str) -> None:
    with pytest.raises(ConnectionException, match=r"(?i)auth"):
        login(container, name, secret)
    login(container, "ann", SECRET).close()


def test_a_missing_permission_is_refused(container: Served) -> None:
    ann = login(container, "ann", SECRET)
    ann.create_sender("queue/anns.own").send(Message(body="x"))
    with pytest.raises(LinkDetached, match="no permission to send at 'queue/bobs'"):
        ann.create_sender("queue/bobs")
    with pytest.raises(LinkDetached, match="no permission to receive at 'queue/#'"):
        ann.create_receiver("queue/#")
    ann.create_receiver("queue/anns.own").receive(timeout=5)
    ann.close()


def test_a_relayed_message_needs_the_permission_too(container: Served) -> None:
    ann = login(container, "ann", SECRET)
    relay = ann.create_sender(None)
    relay.send(Message(address="queue/anns.own", body="x"))
    with pytest.raises(SendException) as refused:
        relay.send(Message(address="queue/bobs", body="x"))
    assert refused.value.state == Delivery.REJECTED
    ann.close()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("exchange/a", "there is no exchange 'a'"),
        ("topic", "names no topic: topic/SUBJECT is expected"),
        ("topic/a.*", "holds wildcards, which only subscribers may use"),
        ("a" * 3000, "an address of 3000 characters; at most 2048 are allowed"),
        ("/", "is empty; expected a name"),
    ],
)
@pytest.mark.parametrize("durability", ["", "data_dir"])
def test_an_address_that_is_none_is_refused(
    tmp_path: Path, durability: str, address: str, says: str
) -> None:
    head = f'{durability} = "data"\n' if durability else ""
    with (
        served(tmp_path, head=head) as container,
        Manager(container.url) as manager,
        pytest.raises(LinkDetached, match=re.escape(says)),
    ):
        manager.connection.create_sender(address)


def test_an_unknown_virtual_host_is_refused(container: Served) -> None:
    with pytest.raises(ConnectionException, match="virtual host 'blue' is not served here"):
        BlockingConnection(container.url, timeout=10, virtual_host="vhost:blue")


def test_a_session_of_a_stranger_is_not_ours(container: Served) -> None:
    """What one connection does wrong ends that connection."""
    with Manager(container.url) as manager:
        before = len(manager.rows("connection"))
    with RawPeer(container) as peer:
        peer.open()
        peer.send(encode_attach("queue/a"), channel=7)
        assert "on channel 7, where no session has begun" in peer.said()
    with Manager(container.url) as manager:
        within(30, lambda: len(manager.rows("connection")) == before, "the stranger has gone")
        assert manager.connection.conn is not None
        assert isinstance(manager.connection.conn.session(), Session)
