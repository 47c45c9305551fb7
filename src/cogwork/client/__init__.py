"""The asyncio client; `cogwork.sync` is the same without asyncio."""

from typing import TYPE_CHECKING

from cogwork.client.client import Client, connect
from cogwork.client.consumer import Consumer
from cogwork.client.errors import (
    AuthenticationError,
    CallFailed,
    CallTimeout,
    ClientError,
    ConnectError,
    Disconnected,
    InDoubt,
    InvalidUrlError,
    LinkDetached,
    LinkRefused,
    NotFound,
    NotOpened,
    PermissionDenied,
    RecordsLost,
    Rejected,
    Released,
    StaleAttempt,
    StreamTruncated,
)
from cogwork.client.options import Retry
from cogwork.client.outcome import Outcome, OutcomeState
from cogwork.client.publisher import Publisher
from cogwork.client.rpc import (
    BadArguments,
    BadReply,
    CallCancelled,
    Expired,
    NoSuchMethod,
    NotBegun,
    RemoteError,
    ReplyTooLarge,
    RpcOptions,
    ServerLost,
    ServersBusy,
    Unreachable,
    Unserialisable,
    current_call,
)
from cogwork.client.service import Service
from cogwork.client.stream import Stream
from cogwork.client.stream_publisher import StreamPublisher
from cogwork.client.stream_reader import StreamReader
from cogwork.client.subscription import Subscription
from cogwork.dataplane.client.items import Item
from cogwork.dataplane.client.posting_errors import BacklogFull, MessageTooLarge
from cogwork.dataplane.client.stream_records import Record, Records
from cogwork.dataplane.message.messages import Message
from cogwork.moved import renamed
from cogwork.plugin.engine.contract import Snapshot

__all__ = (
    "AuthenticationError",
    "BacklogFull",
    "BadArguments",
    "BadReply",
    "CallCancelled",
    "CallFailed",
    "CallTimeout",
    "Client",
    "ClientError",
    "ConnectError",
    "Consumer",
    "Disconnected",
    "Expired",
    "InDoubt",
    "InvalidUrlError",
    "Item",
    "LinkDetached",
    "LinkRefused",
    "Message",
    "MessageTooLarge",
    "NoSuchMethod",
    "NotBegun",
    "NotFound",
    "NotOpened",
    "Outcome",
    "OutcomeState",
    "PermissionDenied",
    "Publisher",
    "Record",
    "Records",
    "RecordsLost",
    "Rejected",
    "Released",
    "RemoteError",
    "ReplyTooLarge",
    "Retry",
    "RpcOptions",
    "ServerLost",
    "ServersBusy",
    "Service",
    "Snapshot",
    "StaleAttempt",
    "Stream",
    "StreamPublisher",
    "StreamReader",
    "StreamTruncated",
    "Subscription",
    "Unreachable",
    "Unserialisable",
    "connect",
    "current_call",
)

if TYPE_CHECKING:
    Mesh = Client
else:

    def __getattr__(name: str) -> object:
        return renamed(__name__, name)
