"""Cogwork: a distributed message broker that speaks AMQP 1.0 and AMQP 0-9-1.

    async with cogwork.connect("amqp://localhost") as client:
        await client.publish("topic/hello", b"world")

The names below are loaded when they are first used: whoever needs the codec alone gets no more.
`__init__.pyi` says where each one comes from.
"""

from __future__ import annotations

import importlib

from cogwork import moved

moved.install()

__version__ = "0.1.0.dev0"

_MODULES = frozenset({"client", "inbox", "rpc", "schema", "sync", "testing"})
_NAMES = {
    **dict.fromkeys(
        ("CogworkError", "Condition", "EncodeError", "LocalProtocolError"), "cogwork.amqp.errors"
    ),
    "EventLoop": "cogwork.io.loop",
    **dict.fromkeys(("FromOffset", "FromTime", "Origin"), "cogwork.plugin.engine.contract"),
    **dict.fromkeys(
        ("BeyondEnd", "Busy", "InvalidAppend", "Truncated"), "cogwork.plugin.engine.errors"
    ),
    **dict.fromkeys(("Cog", "CogFailed", "Orb", "broadcast", "nearcast"), "cogwork.cast"),
    **dict.fromkeys(
        (
            "AuthenticationError",
            "RpcOptions",
            "BacklogFull",
            "CallFailed",
            "CallTimeout",
            "Client",
            "ClientError",
            "ConnectError",
            "Delivery",
            "Disconnected",
            "InDoubt",
            "Interceptor",
            "InvalidUrlError",
            "Item",
            "LinkDetached",
            "LinkRefused",
            "Message",
            "MessageTooLarge",
            "MethodRun",
            "NotFound",
            "NotOpened",
            "Outcome",
            "OutcomeState",
            "OutgoingCall",
            "PermissionDenied",
            "Publication",
            "Record",
            "Records",
            "RecordsLost",
            "Rejected",
            "Released",
            "Retry",
            "Snapshot",
            "StaleAttempt",
            "StreamTruncated",
            "connect",
        ),
        "cogwork.client",
    ),
    **dict.fromkeys(
        (
            "BadArguments",
            "BadReply",
            "CallCancelled",
            "Expired",
            "NoSuchMethod",
            "NotBegun",
            "RemoteError",
            "ReplyTooLarge",
            "ServerLost",
            "ServersBusy",
            "Unreachable",
            "Unserialisable",
            "current_call",
        ),
        "cogwork.rpc",
    ),
}

__all__ = ("__version__", *sorted(_MODULES), *sorted(_NAMES))  # noqa: PLE0604  # all are str


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"cogwork.{name}")
    if name not in _NAMES:
        return moved.renamed(__name__, name)
    found = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
