"""The peer on Cogwork's own client; the commands are described in `docs/internals/interop.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import commands
from cogwork_message import from_sections, to_sections
from commands import Emit, Json

from cogwork.amqp.message import decode_sections, encode_sections

if TYPE_CHECKING:
    from collections.abc import Callable


def encode(command: Json, _: Emit) -> Json:
    """Encodes messages, without a connection."""
    return {"encoded": [encode_sections(to_sections(it)).hex() for it in command["messages"]]}


def decode(command: Json, _: Emit) -> Json:
    """Decodes messages, without a connection."""
    encoded = map(bytes.fromhex, command["encoded"])
    return {"messages": [from_sections(decode_sections(it)) for it in encoded]}


COMMANDS: dict[str, Callable[[Json, Emit], Json]] = {
    "encode": encode,
    "decode": decode,
}

if __name__ == "__main__":
    commands.run(lambda command, emit: COMMANDS[command["command"]](command, emit))
