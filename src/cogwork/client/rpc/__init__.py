"""Remote procedure calls: call, cast, fanout and streams, and the services that answer them.

`surface.py` is what an application sees, `caller.py` the calling half, `service.py` the serving
half, `wire.py` what their messages hold.
"""

from cogwork.client.rpc.context import CallContext, current_call
from cogwork.client.rpc.direct.options import Direct
from cogwork.client.rpc.errors import (
    BadArguments,
    BadReply,
    CallCancelled,
    Expired,
    NoSuchMethod,
    NotBegun,
    RemoteError,
    ReplyTooLarge,
    ServerLost,
    ServersBusy,
    Unreachable,
    Unserialisable,
)
from cogwork.client.rpc.options import RpcOptions
from cogwork.client.rpc.service import Service
from cogwork.client.rpc.threaded import ThreadedService

__all__ = (
    "BadArguments",
    "BadReply",
    "CallCancelled",
    "CallContext",
    "Direct",
    "Expired",
    "NoSuchMethod",
    "NotBegun",
    "RemoteError",
    "ReplyTooLarge",
    "RpcOptions",
    "ServerLost",
    "ServersBusy",
    "Service",
    "ThreadedService",
    "Unreachable",
    "Unserialisable",
    "current_call",
)
