"""The asyncio client; `cogwork.sync` is the same without asyncio.

Begin with `client.py`. What an application opens is in folders by what it does, and takes a
protocol of `context.py` in place of the client.
"""

from typing import TYPE_CHECKING

from cogwork.client.call_options import Direct, RpcOptions
from cogwork.client.calls import MethodService, ReplyStream
from cogwork.client.client import Client, connect
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
from cogwork.client.interception.interceptor import (
    Delivery,
    Ending,
    Interceptor,
    MethodRun,
    OutgoingCall,
    Publication,
)
from cogwork.client.options import Retry
from cogwork.client.publishing.outcome import Outcome, OutcomeState
from cogwork.client.publishing.publisher import Publisher
from cogwork.client.receiving.consumer import Consumer
from cogwork.client.receiving.subscription import Subscription
from cogwork.client.requests.service import Service
from cogwork.client.streams.publisher import StreamPublisher
from cogwork.client.streams.reader import StreamReader
from cogwork.client.streams.stream import Stream
from cogwork.dataplane.client.items import Item
from cogwork.dataplane.client.posting_errors import BacklogFull, MessageTooLarge
from cogwork.dataplane.client.stream_records import Record, Records
from cogwork.dataplane.message.messages import Message
from cogwork.moved import renamed
from cogwork.plugin.engine.contract import Snapshot

__all__ = (
    "AuthenticationError",
    "BacklogFull",
    "CallFailed",
    "CallTimeout",
    "Client",
    "ClientError",
    "ConnectError",
    "Consumer",
    "Delivery",
    "Direct",
    "Disconnected",
    "Ending",
    "InDoubt",
    "Interceptor",
    "InvalidUrlError",
    "Item",
    "LinkDetached",
    "LinkRefused",
    "Message",
    "MessageTooLarge",
    "MethodRun",
    "MethodService",
    "NotFound",
    "NotOpened",
    "Outcome",
    "OutcomeState",
    "OutgoingCall",
    "PermissionDenied",
    "Publication",
    "Publisher",
    "Record",
    "Records",
    "RecordsLost",
    "Rejected",
    "Released",
    "ReplyStream",
    "Retry",
    "RpcOptions",
    "Service",
    "Snapshot",
    "StaleAttempt",
    "Stream",
    "StreamPublisher",
    "StreamReader",
    "StreamTruncated",
    "Subscription",
    "connect",
)

if TYPE_CHECKING:
    Mesh = Client
else:

    def __getattr__(name: str) -> object:
        return renamed(__name__, name)
