"""Remote procedure calls: call, cast, fanout and streams, and the services that answer them.

`cogwork.client` has the methods by which applications call and serve, and loads this package when
the first is used. Begin with `calls.py`, which joins the calling half, `calling/caller.py`, and the
serving half, `serving/service.py`; `wire.py` is what their messages hold.
"""

from cogwork.client.call_options import Direct, RpcOptions
from cogwork.rpc.errors import (
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
from cogwork.rpc.serving.context import CallContext, current_call
from cogwork.rpc.serving.service import Service
from cogwork.rpc.serving.threaded import ThreadedService

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
