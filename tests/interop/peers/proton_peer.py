"""The peer on python-qpid-proton; the commands are described in `docs/internals/interop.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import commands
from commands import Emit, Json
from message_notation import from_sections
from proton import Delivery, Message
from proton_connection import TIMEOUT_S, Inbox, Settling, connected, receiver_options
from proton_message import STATES, give_outcome, outcome_notation, strings, to_message
from proton_notation import read_sections

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton.utils import BlockingConnection, BlockingReceiver, BlockingSender

REFUSAL_S = 0.05
"""A broker refuses with an open and a close (AMQP 1.0 §2.4.1), which need not come in one read."""


def connect(command: Json, _: Emit) -> Json:
    """Open a connection and report what the broker says of itself."""
    with connected(command["connection"]) as connection:
        remote = connection.conn
        assert remote is not None
        _linger(connection, REFUSAL_S)
        return {
            "container_id": remote.remote_container,
            "properties": strings(remote.remote_properties),
            "offered_capabilities": sorted(map(str, remote.remote_offered_capabilities or [])),
        }


def send(command: Json, emit: Emit) -> Json:
    """Send messages, each as soon as there is credit, and report their outcomes."""
    messages = [to_message(notation) for notation in command["messages"]]
    timeout_s = command.get("timeout_s", TIMEOUT_S)
    with connected(command["connection"]) as connection:
        option = Settling(command.get("settle", "unsettled"))
        sender = connection.create_sender(command["address"], options=option)
        deliveries = [_send(connection, sender, message, timeout_s) for message in messages]
        if command.get("settle") == "presettled":
            connection.wait(lambda: sender.queued == 0, timeout=timeout_s)
            deliveries = []
        for index, delivery in enumerate(deliveries):
            _await_outcome(connection, delivery, timeout_s)
            emit("outcome", index=index, outcome=outcome_notation(delivery))
            delivery.settle()
        return {"sent": len(messages)}


def _send(
    connection: BlockingConnection, sender: BlockingSender, message: Message, timeout_s: float
) -> Delivery:
    connection.wait(lambda: sender.credit > 0, timeout=timeout_s, msg="Waiting for credit")
    delivery = sender.link.send(message)
    assert isinstance(delivery, Delivery)
    return delivery


def _await_outcome(connection: BlockingConnection, delivery: Delivery, timeout_s: float) -> None:
    def decided() -> bool:
        return bool(delivery.settled or delivery.remote_state in STATES)

    connection.wait(decided, timeout=timeout_s, msg="Waiting for an outcome")


def receive(command: Json, emit: Emit) -> Json:
    """Receive `count` messages, or with `drain` what is there, and give each the next outcome."""
    inbox = Inbox()
    with connected(command["connection"]) as connection:
        options = receiver_options(command)
        receiver = connection.create_receiver(
            command["address"], credit=0, handler=inbox, options=options
        )
        emit("attached", address=receiver.remote_source.address)
        if command.get("drain"):
            return _drain(connection, receiver, inbox, command, emit)
        receiver.flow(command.get("credit", command["count"]))
        _send_own(connection, command, emit)
        return _collect(connection, inbox, command, emit)


def _send_own(connection: BlockingConnection, command: Json, emit: Emit) -> None:
    """Send what the receiver's own connection is to send: the no-local filter tells it apart."""
    if not command.get("own_messages"):
        return
    sender = connection.create_sender(command["address"])
    for notation in command["own_messages"]:
        delivery = _send(connection, sender, to_message(notation), TIMEOUT_S)
        _await_outcome(connection, delivery, TIMEOUT_S)
    emit("sent-own")


def _collect(connection: BlockingConnection, inbox: Inbox, command: Json, emit: Emit) -> Json:
    unsettled: list[Delivery] = []
    timeout_s = command.get("timeout_s", TIMEOUT_S)
    for index in range(command["count"]):
        connection.wait(inbox.any, timeout=timeout_s, msg=f"Waiting for message {index}")
        unsettled += _take(inbox, index, command, emit)
    connection.wait(lambda: all(it.settled for it in unsettled), msg="Settling second")
    for delivery in unsettled:
        delivery.settle()
    _linger(connection)
    return {"received": command["count"], "aborted": inbox.aborted}


def _drain(
    connection: BlockingConnection,
    receiver: BlockingReceiver,
    inbox: Inbox,
    command: Json,
    emit: Emit,
) -> Json:
    receiver.drain(command.get("credit", 100))
    timeout_s = command.get("timeout_s", TIMEOUT_S)
    connection.wait(lambda: not receiver.draining(), timeout=timeout_s, msg="Draining")
    received = len(inbox.deliveries)
    for index in range(received):
        _take(inbox, index, command, emit)
    _linger(connection)
    return {"received": received, "drained": True}


def _take(inbox: Inbox, index: int, command: Json, emit: Emit) -> list[Delivery]:
    """Report the next message and give it its outcome; return it if the sender settles first."""
    delivery, encoded = inbox.deliveries.popleft()
    Message().decode(encoded)  # what an application would do has to work as well
    message = from_sections(read_sections(encoded))
    emit("message", index=index, message=message, presettled=bool(delivery.settled))
    outcomes = command.get("outcomes") or [{"state": "accepted"}]
    give_outcome(delivery, outcomes[index % len(outcomes)])
    if command.get("settle") == "second":
        return [delivery]
    delivery.settle()
    return []


def _linger(connection: BlockingConnection, timeout_s: float = 0) -> None:
    """Let the last dispositions out before the connection closes."""
    connection.container.timeout = timeout_s
    connection.container.process()
    connection.container.timeout = TIMEOUT_S


def request(command: Json, emit: Emit) -> Json:
    """Send requests that ask for replies at a dynamic address, and report the replies."""
    inbox = Inbox()
    count = len(command["messages"])
    with connected(command["connection"]) as connection:
        replies = connection.create_receiver(None, credit=0, dynamic=True, handler=inbox)
        address = replies.remote_source.address
        emit("attached", address=address)
        replies.flow(count)
        sender = connection.create_sender(command["address"])
        for number, notation in enumerate(command["messages"]):
            message = to_message(notation)
            message.reply_to, message.correlation_id = address, f"request-{number}"
            _send(connection, sender, message, TIMEOUT_S)
        return _collect(connection, inbox, {**command, "count": count}, emit)


def respond(command: Json, emit: Emit) -> Json:
    """Answer `count` requests over the anonymous relay, with their body and correlation-id."""
    inbox = Inbox()
    with connected(command["connection"]) as connection:
        sender = connection.create_sender(None)
        receiver = connection.create_receiver(command["address"], credit=0, handler=inbox)
        emit("attached", address=receiver.remote_source.address)
        receiver.flow(command["count"])
        for _ in range(command["count"]):
            connection.wait(inbox.any, msg="Waiting for a request")
            delivery, encoded = inbox.deliveries.popleft()
            answer = _send(connection, sender, _reply(encoded), TIMEOUT_S)
            _await_outcome(connection, answer, TIMEOUT_S)
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        _linger(connection)
        return {"answered": command["count"]}


def _reply(encoded: bytes) -> Message:
    asked = Message()
    asked.decode(encoded)
    return Message(asked.body, address=asked.reply_to, correlation_id=asked.correlation_id)


def encode(command: Json, _: Emit) -> Json:
    """Encode messages, without a connection."""
    return {"encoded": [to_message(it).encode().hex() for it in command["messages"]]}


def decode(command: Json, _: Emit) -> Json:
    """Decode messages, without a connection."""
    encoded = map(bytes.fromhex, command["encoded"])
    return {"messages": [from_sections(read_sections(it)) for it in encoded]}


COMMANDS: dict[str, Callable[[Json, Emit], Json]] = {
    "connect": connect,
    "send": send,
    "receive": receive,
    "request": request,
    "respond": respond,
    "encode": encode,
    "decode": decode,
}

if __name__ == "__main__":
    commands.run(lambda command, emit: COMMANDS[command["command"]](command, emit))
