"""The peer on Cogwork's own client; the commands are described in `docs/internals/interop.md`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import commands
from cogwork_connection import TIMEOUT_S, connected
from cogwork_message import from_message, from_sections, to_message, to_sections
from commands import Emit, Json

import cogwork
from cogwork.amqp.message import decode_sections, encode_sections

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.client.links.receiver import Receiver

    Incoming: TypeAlias = Receiver[cogwork.Item] | Receiver[cogwork.Message]

SETTLED_POLL_S = 0.005


async def connect(client: cogwork.Client, _command: Json, _emit: Emit) -> Json:
    """Report what the broker says of itself."""
    opened = client.container
    return {
        "container_id": opened.container_id,
        "properties": {str(key): str(value) for key, value in (opened.properties or {}).items()},
        "offered_capabilities": sorted(map(str, opened.offered_capabilities)),
    }


async def send(client: cogwork.Client, command: Json, emit: Emit) -> Json:
    """Send messages as fast as credit allows, and report their outcomes."""
    messages = [to_message(notation) for notation in command["messages"]]
    settled = command.get("settle") == "presettled"
    if command["address"] is None:
        for message in messages:
            await client.publish(str(message.to), message, settled=settled)
        outcomes = [cogwork.Outcome(str(it.to), cogwork.OutcomeState.ACCEPTED) for it in messages]
    else:
        async with client.publisher(command["address"]) as publisher:
            outcomes = await publisher.send_batch(messages, settled=settled)
    for index, outcome in enumerate([] if settled else outcomes):
        emit("outcome", index=index, outcome=_outcome_notation(outcome))
    return {"sent": len(messages)}


def _outcome_notation(outcome: cogwork.Outcome) -> Json:
    notation: dict[str, Json] = {"state": str(outcome.state)}
    if outcome.state == "rejected" and outcome.condition is not None:
        notation["condition"] = str(outcome.condition)
        notation["description"] = outcome.description
    if outcome.state == "modified":
        notation["delivery_failed"] = outcome.delivery_failed
        notation["undeliverable_here"] = outcome.undeliverable_here
        notation["annotations"] = {str(key): value for key, value in outcome.annotations.items()}
    return notation


async def receive(client: cogwork.Client, command: Json, emit: Emit) -> Json:
    """Receive `count` messages, or with `drain` what is there, and give each the next outcome."""
    async with _receiver(client, command) as incoming:
        emit("attached", address=incoming.address)
        if command.get("own_messages"):
            for notation in command["own_messages"]:
                await client.publish(command["address"], to_message(notation))
            emit("sent-own")
        if command.get("drain"):
            received = _take(await incoming.drain(), 0, command, emit)
            return {"received": received, "drained": True}
        received = 0
        while received < command["count"]:
            batch = await incoming.take(command["count"] - received)
            received += _take(batch, received, command, emit)
        return {"received": received}


def _receiver(client: cogwork.Client, command: Json) -> Incoming:
    """Return the kind of receiver that does what the command asks for."""
    address, selector = command["address"], command.get("selector")
    credit = command.get("credit") or command["count"] or 100
    if command.get("no_local"):
        return client.subscribe(address, credit=credit, selector=selector, no_local=True)
    if command.get("mode") == "copy":
        return client.browse(address, credit=credit, selector=selector)
    confirms = command.get("settle") == "second"
    return client.consume(address, credit=credit, selector=selector, confirms=confirms)


def _take(batch: list[Json], first: int, command: Json, emit: Emit) -> int:
    """Report messages and give each its outcome; leaving the consumer awaits confirmations."""
    outcomes = command.get("outcomes") or [{"state": "accepted"}]
    for index, message in enumerate(batch, first):
        is_item = isinstance(message, cogwork.Item)
        presettled = is_item and message.is_settled
        emit("message", index=index, message=from_message(message), presettled=presettled)
        if is_item:
            _give_outcome(message, outcomes[index % len(outcomes)])
    return len(batch)


def _give_outcome(item: cogwork.Item, outcome: Json) -> None:
    if outcome["state"] == "accepted":
        item.accept_nowait()
    elif outcome["state"] == "released":
        item.release()
    elif outcome["state"] == "rejected":
        item.reject(outcome["description"], outcome["condition"])
    else:
        item.modify(
            outcome.get("delivery_failed", False),
            outcome.get("undeliverable_here", False),
            outcome.get("annotations"),
        )


async def request(client: cogwork.Client, command: Json, emit: Emit) -> Json:
    """Send requests side by side, and report the replies.

    The client numbers its requests itself; a reply is reported under the name of its request.
    """
    asked = [to_message(notation) for notation in command["messages"]]
    replies = await asyncio.gather(*(client.request(command["address"], it) for it in asked))
    for index, reply in enumerate(replies):
        reply.correlation_id = f"request-{index}"
        emit("message", index=index, message=from_message(reply), presettled=False)
    return {"received": len(replies)}


async def respond(client: cogwork.Client, command: Json, emit: Emit) -> Json:
    """Answer `count` requests with their body."""
    requests: list[Json] = []

    def answer(asked: cogwork.Message) -> object:
        requests.append(asked)
        return asked.body

    async with client.serve(command["address"], answer):
        emit("attached", address=command["address"])
        while len(requests) < command["count"] or not all(it.is_settled for it in requests):
            await asyncio.sleep(SETTLED_POLL_S)
    return {"answered": len(requests)}


def encode(command: Json) -> Json:
    """Encode messages, without a connection."""
    return {"encoded": [encode_sections(to_sections(it)).hex() for it in command["messages"]]}


def decode(command: Json) -> Json:
    """Decode messages, without a connection."""
    encoded = map(bytes.fromhex, command["encoded"])
    return {"messages": [from_sections(decode_sections(it)) for it in encoded]}


COMMANDS: dict[str, Callable[[cogwork.Client, Json, Emit], Awaitable[Json]]] = {
    "connect": connect,
    "send": send,
    "receive": receive,
    "request": request,
    "respond": respond,
}
OFFLINE: dict[str, Callable[[Json], Json]] = {"encode": encode, "decode": decode}


async def run(command: Json, emit: Emit) -> Json:
    """Run a command on a connection of its own."""
    async with connected(command["connection"]) as client:
        async with asyncio.timeout(command.get("timeout_s", TIMEOUT_S)):
            return await COMMANDS[command["command"]](client, command, emit)


def execute(command: Json, emit: Emit) -> Json:
    """Run a command."""
    if command["command"] in OFFLINE:
        return OFFLINE[command["command"]](command)
    return asyncio.run(run(command, emit))


if __name__ == "__main__":
    commands.run(execute)
