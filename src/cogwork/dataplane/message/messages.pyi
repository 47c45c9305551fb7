import uuid
from datetime import datetime
from typing import Literal, Self

from cogwork.amqp.types import Timestamp

SOURCE_HASH: str

_MessageId = int | uuid.UUID | bytes | str
_Time = datetime | Timestamp

class Message:
    body: object
    subject: str | None
    to: str | None
    reply_to: str | None
    message_id: _MessageId | None
    correlation_id: _MessageId | None
    content_type: str | None
    content_encoding: str | None
    user_id: bytes | None
    group_id: str | None
    group_sequence: int | None
    reply_to_group_id: str | None
    absolute_expiry_time: _Time | None
    creation_time: _Time | None
    properties: dict[str, object]
    @property
    def properties_size(self) -> int: ...
    annotations: dict[str, object]
    delivery_annotations: dict[str, object]
    footer: dict[str, object]
    durable: bool
    priority: int
    ttl_s: float | None
    first_acquirer: bool
    delivery_count: int
    def __init__(
        self,
        body: object = None,
        *,
        subject: str | None = None,
        to: str | None = None,
        reply_to: str | None = None,
        message_id: _MessageId | None = None,
        correlation_id: _MessageId | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        user_id: bytes | None = None,
        group_id: str | None = None,
        group_sequence: int | None = None,
        reply_to_group_id: str | None = None,
        absolute_expiry_time: _Time | None = None,
        creation_time: _Time | None = None,
        properties: dict[str, object] | None = None,
        annotations: dict[str, object] | None = None,
        delivery_annotations: dict[str, object] | None = None,
        footer: dict[str, object] | None = None,
        durable: bool = False,
        priority: int = 4,
        ttl_s: float | None = None,
        first_acquirer: bool = False,
        delivery_count: int = 0,
    ) -> None: ...
    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Self: ...
    @classmethod
    def data(cls, *parts: bytes, **fields: object) -> Self: ...
    @classmethod
    def value(cls, body: object, **fields: object) -> Self: ...
    @classmethod
    def sequence(cls, *parts: list[object], **fields: object) -> Self: ...
    def encode(self) -> bytes: ...
    @property
    def body_type(self) -> Literal["data", "sequence", "value"] | None: ...
    @property
    def body_sections(self) -> list[object]: ...
