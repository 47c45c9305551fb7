"""The command loop of the Python peers: JSON documents in, JSON lines out.

A peer is a small program around one client library. It takes commands as JSON documents, one a
line on standard input, or all of them as arguments, and runs them one after the other. Whatever
happens is printed as one JSON line that carries the command's `id`. The last line of a command is
`done` or `failed`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Json: TypeAlias = Any
Emit: TypeAlias = Callable[..., None]

BODY_PATTERN = bytes(range(251))
"""Generated bodies repeat it; its length is prime: a frame lost or doubled shifts what follows."""

INLINE_LIMIT_BYTES = 4096
"""Longer binaries are reported by size and checksum."""


class PeerError(Exception):
    """A command that ended other than it was asked to, for a reason the tests may expect.

    Args:
        kind: `authentication`, `connection`, `link`, `timeout` or `usage`.
        text: What happened, in words.
        condition: The AMQP error condition that the broker gave, if it gave one.
    """

    def __init__(self, kind: str, text: str, condition: str | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.condition = condition


def generated_body(size_bytes: int) -> bytes:
    """Return the body that every peer generates for this size."""
    repeats = size_bytes // len(BODY_PATTERN) + 1
    return (BODY_PATTERN * repeats)[:size_bytes]


def binary_notation(content: bytes) -> Json:
    """Return hexadecimal digits, or the size and checksum of what is too long to print."""
    if len(content) <= INLINE_LIMIT_BYTES:
        return content.hex()
    return {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def binary_content(notation: Json) -> bytes:
    """Return the bytes for hexadecimal digits or for `{"size_bytes": N}`."""
    if isinstance(notation, dict):
        return generated_body(notation["size_bytes"])
    return bytes.fromhex(notation)


def documents() -> Iterable[Json]:
    """Yield the commands given as arguments, or else as lines on standard input."""
    for text in sys.argv[1:] or sys.stdin:
        document = json.loads(text)
        yield from document if isinstance(document, list) else [document]


def run(execute: Callable[[Json, Emit], Json]) -> None:
    """Execute all commands.

    Args:
        execute: Runs a command, emits events meanwhile, and returns the fields of its `done` line.
    """
    for command in documents():
        _run_one(execute, command)


def _run_one(execute: Callable[[Json, Emit], Json], command: Json) -> None:
    def emit(event: str, **fields: Json) -> None:
        line = {"id": command.get("id"), "event": event, **fields}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    try:
        emit("done", **(execute(command, emit) or {}))
    except PeerError as error:
        emit("failed", kind=error.kind, condition=error.condition, text=str(error))
    except Exception as error:  # any fault of the library belongs into the report
        emit("failed", kind=type(error).__name__, condition=None, text=traceback.format_exc())
