"""`Message`: what applications send and receive.

Its attributes open the sections that they stand in (`cogwork.dataplane.message.contents`): a
message that was received is decoded as far as somebody looks. One that nobody opened is sent on as
its bytes.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.writer import (
    Writer,
    close_writer,
    open_writer,
    written,
)
from cython.cimports.cogwork.dataplane.message.contents import fill, load_section, write_sections
from cython.cimports.cogwork.dataplane.message.header import DEFAULT_PRIORITY
from cython.cimports.cogwork.dataplane.message.messages import hide, show
from cython.cimports.cogwork.dataplane.message.sections import (
    ABSOLUTE_EXPIRY_TIME_FIELD,
    APPLICATION_PROPERTIES_RANK,
    BODY_RANK,
    CONTENT_ENCODING_FIELD,
    CONTENT_TYPE_FIELD,
    CORRELATION_ID_FIELD,
    CREATION_TIME_FIELD,
    DATA,
    DELIVERY_ANNOTATIONS_RANK,
    FOOTER_RANK,
    GROUP_ID_FIELD,
    GROUP_SEQUENCE_FIELD,
    HEADER_RANK,
    MESSAGE_ANNOTATIONS_RANK,
    MESSAGE_ID_FIELD,
    PROPERTIES_RANK,
    PROPERTY_FIELDS,
    REPLY_TO_FIELD,
    REPLY_TO_GROUP_ID_FIELD,
    SEQUENCE,
    SUBJECT_FIELD,
    TO_FIELD,
    USER_ID_FIELD,
    VALUE,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.libc.stdint import int64_t, uint32_t

from cogwork.amqp.errors import EncodeError
from cogwork.amqp.message import Properties

__all__ = ("SOURCE_HASH", "Message")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

UINT_MAX = cython.declare(cython.longlong, 0xFFFFFFFF)
UBYTE_MAX = cython.declare(cython.longlong, 0xFF)
MS_PER_S = cython.declare(cython.double, 1000.0)

FIELD_NAMES = tuple(row.attribute for row in Properties.TABLE)

BODY_TYPES = {DATA: "data", SEQUENCE: "sequence", VALUE: "value"}


class PropertyField:
    """An attribute of `Message` that is a field of its properties section."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __get__(self, message: object, _owner: object) -> object:
        if message is None:
            return self
        return cython.cast(Message, message, typecheck=True).field(self.index)

    def __set__(self, message: object, value: object) -> None:
        cython.cast(Message, message, typecheck=True).set_field(self.index, value)


class Message:
    """A message: a body, and what is said of it.

    Attributes:
        body: Bytes (a data section), or any other value (an amqp-value section). Of several data
            sections the bytes joined, of sequences the items of all.
        body_type: `data`, `value` or `sequence`; None for a received message without a body.
        body_sections: The body section by section.
        properties: The application's own, by str.
        annotations: For brokers on the way, by symbol; a str will do.
        delivery_annotations: For the next hop, in the same way.
        footer: What can only be known when the body was sent, in the same way.
        ttl_s: Time to live in seconds; None for ever.
    """

    message_id = PropertyField(MESSAGE_ID_FIELD)
    user_id = PropertyField(USER_ID_FIELD)
    to = PropertyField(TO_FIELD)
    subject = PropertyField(SUBJECT_FIELD)
    reply_to = PropertyField(REPLY_TO_FIELD)
    correlation_id = PropertyField(CORRELATION_ID_FIELD)
    content_type = PropertyField(CONTENT_TYPE_FIELD)
    content_encoding = PropertyField(CONTENT_ENCODING_FIELD)
    absolute_expiry_time = PropertyField(ABSOLUTE_EXPIRY_TIME_FIELD)
    creation_time = PropertyField(CREATION_TIME_FIELD)
    group_id = PropertyField(GROUP_ID_FIELD)
    group_sequence = PropertyField(GROUP_SEQUENCE_FIELD)
    reply_to_group_id = PropertyField(REPLY_TO_GROUP_ID_FIELD)

    def __cinit__(self) -> None:
        self._header.priority = DEFAULT_PRIORITY

    def __init__(
        self,
        body: object = None,
        *,
        subject: object = None,
        to: object = None,
        properties: object = None,
        message_id: object = None,
        correlation_id: object = None,
        reply_to: object = None,
        content_type: object = None,
        content_encoding: object = None,
        user_id: object = None,
        group_id: object = None,
        group_sequence: object = None,
        reply_to_group_id: object = None,
        absolute_expiry_time: object = None,
        creation_time: object = None,
        annotations: object = None,
        delivery_annotations: object = None,
        footer: object = None,
        durable: object = None,
        priority: object = 4,
        ttl_s: object = None,
        first_acquirer: object = False,
        delivery_count: object = 0,
    ) -> None:
        if not (
            message_id is None
            and user_id is None
            and to is None
            and subject is None
            and reply_to is None
            and correlation_id is None
            and content_type is None
            and content_encoding is None
            and absolute_expiry_time is None
            and creation_time is None
            and group_id is None
            and group_sequence is None
            and reply_to_group_id is None
        ):
            self._fields = [
                message_id,
                user_id,
                to,
                subject,
                reply_to,
                correlation_id,
                content_type,
                content_encoding,
                absolute_expiry_time,
                creation_time,
                group_id,
                group_sequence,
                reply_to_group_id,
            ]
        self._properties = plain_dict(properties)
        self._annotations = plain_dict(annotations)
        self._delivery_annotations = plain_dict(delivery_annotations)
        self._footer = plain_dict(footer)
        if durable is not None:
            self._says_durable = True
            self._header.durable = durable
        self._header.priority = checked("priority", priority, UBYTE_MAX)
        self._header.first_acquirer = first_acquirer
        self._header.delivery_count = checked("delivery_count", delivery_count, UINT_MAX)
        self.set_ttl(ttl_s)
        self.set_body(body)

    @classmethod
    def decode(cls, data: object) -> Message:
        """Take an encoded message; its sections are decoded when they are asked for.

        Args:
            data: The bytes; kept, or copied where they are not of type bytes.

        Raises:
            DecodeError: The bytes are no message. What is wrong inside of a section is raised when
                that section is asked for, as a `ProtocolError`.
        """
        raw: bytes = data if type(data) is bytes else bytes(data)
        if cls is Message:
            return message_from(raw)
        message: Message = cls.__new__(cls)
        fill(message, raw)
        return message

    @classmethod
    def data(cls, *parts: object, **fields: object) -> Message:
        """Make a message with a data section for each of `parts`, which are bytes.

        Args:
            *parts: The body, section by section.
            **fields: As in the constructor.
        """
        return with_parts(cls(None, **fields), DATA, [bytes(part) for part in parts])

    @classmethod
    def value(cls, body: object, **fields: object) -> Message:
        """Make a message whose body is a value section, bytes too.

        Args:
            body: The body.
            **fields: As in the constructor.
        """
        message: Message = cls(None, **fields)
        message._body = body
        return message

    @classmethod
    def sequence(cls, *parts: object, **fields: object) -> Message:
        """Make a message with a sequence section for each of `parts`, which are lists.

        Args:
            *parts: The body, section by section.
            **fields: As in the constructor.
        """
        return with_parts(cls(None, **fields), SEQUENCE, [list(part) for part in parts])

    def encode(self) -> bytes:
        """Return the message's bytes.

        Raises:
            EncodeError: A value has no encoding; it is named.
        """
        out = cython.declare(Writer)
        if self._is_intact:
            return self._raw
        open_writer(cython.address(out))
        try:
            write_sections(self, cython.address(out))
            return written(cython.address(out))
        finally:
            close_writer(cython.address(out))

    def __repr__(self) -> str:
        """Show what differs from an empty message."""
        shown = [f"{self.body!r:.200}"]
        for name in (
            *FIELD_NAMES,
            "properties",
            "annotations",
            "delivery_annotations",
            "footer",
            "durable",
            "ttl_s",
            "first_acquirer",
            "delivery_count",
        ):
            value = getattr(self, name)
            if value:
                shown.append(f"{name}={value!r:.80}")
        if self.priority != DEFAULT_PRIORITY:
            shown.append(f"priority={self.priority}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # --- attributes ---

    @property
    def body(self) -> object:
        """What the message is for."""
        self.open_section(BODY_RANK)
        if type(self._body) is list and self._body_code == DATA:
            return b"".join(self._body)
        if self._body_code == SEQUENCE:
            return [item for part in cython.cast(list, self._body) for item in part]
        return self._body

    @body.setter
    def body(self, body: object) -> None:
        self.open_section(BODY_RANK)
        show(self)
        self.set_body(body)

    @property
    def body_type(self) -> object:
        """`data`, `value` or `sequence`; None where there is no body."""
        code = self._body_code
        return BODY_TYPES.get(code)

    @property
    def body_sections(self) -> list:
        """The body section by section."""
        self.open_section(BODY_RANK)
        if self._body_code == 0:
            return []
        if self._body_code == SEQUENCE or (self._body_code == DATA and type(self._body) is list):
            return list(self._body)
        return [self._body]

    @property
    def properties(self) -> dict:
        """The application's own, by str."""
        self.open_section(APPLICATION_PROPERTIES_RANK)
        if self._properties is None:
            self._properties = {}
        return self._properties

    @property
    def properties_size(self) -> int:
        """How many octets the application's own take, encoded; 0 where they never were."""
        start: int64_t = self._layout.sections[APPLICATION_PROPERTIES_RANK].start
        return 0 if start < 0 else self._layout.sections[APPLICATION_PROPERTIES_RANK].end - start

    @properties.setter
    def properties(self, entries: object) -> None:
        self.open_section(APPLICATION_PROPERTIES_RANK)
        self._properties = plain_dict(entries)

    @property
    def annotations(self) -> dict:
        """For brokers on the way, by symbol."""
        self.open_section(MESSAGE_ANNOTATIONS_RANK)
        if self._annotations is None:
            self._annotations = {}
        return self._annotations

    @annotations.setter
    def annotations(self, entries: object) -> None:
        self.open_section(MESSAGE_ANNOTATIONS_RANK)
        self._annotations = plain_dict(entries)

    @property
    def delivery_annotations(self) -> dict:
        """For the next hop, by symbol."""
        self.open_section(DELIVERY_ANNOTATIONS_RANK)
        if self._delivery_annotations is None:
            self._delivery_annotations = {}
        return self._delivery_annotations

    @delivery_annotations.setter
    def delivery_annotations(self, entries: object) -> None:
        self.open_section(DELIVERY_ANNOTATIONS_RANK)
        self._delivery_annotations = plain_dict(entries)

    @property
    def footer(self) -> dict:
        """What is known only when the body was sent, by symbol."""
        self.open_section(FOOTER_RANK)
        if self._footer is None:
            self._footer = {}
        return self._footer

    @footer.setter
    def footer(self, entries: object) -> None:
        self.open_section(FOOTER_RANK)
        self._footer = plain_dict(entries)

    @property
    def durable(self) -> bool:
        """Whether it must survive a restart."""
        self.open_section(HEADER_RANK)
        return self._header.durable

    @durable.setter
    def durable(self, durable: object) -> None:
        self.open_section(HEADER_RANK)
        self._says_durable = True
        self._header.durable = durable

    @property
    def priority(self) -> int:
        """0 to 255; 4 is normal."""
        self.open_section(HEADER_RANK)
        return self._header.priority

    @priority.setter
    def priority(self, priority: object) -> None:
        self.open_section(HEADER_RANK)
        self._header.priority = checked("priority", priority, UBYTE_MAX)

    @property
    def ttl_s(self) -> object:
        """Time to live in seconds; None for ever."""
        self.open_section(HEADER_RANK)
        return self._header.ttl_ms / MS_PER_S if self._header.has_ttl else None

    @ttl_s.setter
    def ttl_s(self, ttl_s: object) -> None:
        self.open_section(HEADER_RANK)
        self.set_ttl(ttl_s)

    @property
    def first_acquirer(self) -> bool:
        """Whether no other link acquired it before."""
        self.open_section(HEADER_RANK)
        return self._header.first_acquirer

    @first_acquirer.setter
    def first_acquirer(self, first_acquirer: object) -> None:
        self.open_section(HEADER_RANK)
        self._header.first_acquirer = first_acquirer

    @property
    def delivery_count(self) -> int:
        """How many deliveries of it failed before."""
        self.open_section(HEADER_RANK)
        return self._header.delivery_count

    @delivery_count.setter
    def delivery_count(self, delivery_count: object) -> None:
        self.open_section(HEADER_RANK)
        self._header.delivery_count = checked("delivery_count", delivery_count, UINT_MAX)

    def open_section(self, rank: cython.int) -> cython.int:
        """Decode a section, if that is still to be done; it may be changed from now on."""
        self._is_intact = False
        if rank != BODY_RANK or self._body_code != DATA or self._layout.body_sections > 1:
            show(self)
        if self._pending & (1 << rank):
            load_section(self, rank)
            self._pending &= ~(1 << rank)
        return 0

    def field(self, index: cython.int) -> object:
        """Return a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        return None if self._fields is None else self._fields[index]

    def set_field(self, index: cython.int, value: object) -> cython.int:
        """Set a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        if self._fields is None:
            self._fields = [None] * PROPERTY_FIELDS
        self._fields[index] = value
        return 0

    def set_body(self, body: object) -> cython.int:
        """Hold bytes as data, anything else as value."""
        if type(body) is bytes:
            self._body_code = DATA
            self._body = body
        elif isinstance(body, (bytes, bytearray, memoryview)):
            self._body_code = DATA
            self._body = bytes(body)
        else:
            self._body_code = VALUE
            self._body = body
        return 0

    def set_ttl(self, ttl_s: object) -> cython.int:
        """Hold a time to live in the header's unit."""
        ttl_ms: cython.double
        self._header.has_ttl = ttl_s is not None
        self._header.ttl_ms = 0
        if ttl_s is not None:
            ttl_ms = float(ttl_s) * MS_PER_S
            if not 0 <= ttl_ms <= UINT_MAX:
                limit = UINT_MAX / MS_PER_S
                raise EncodeError(f"ttl_s: 0 to {limit} is expected, not {ttl_s!r:.80}")
            self._header.ttl_ms = cython.cast(uint32_t, ttl_ms + 0.5)
        return 0


def message_from(raw: bytes) -> Message:
    """Return the message that `raw` is."""
    message: Message = Message.__new__(Message)
    fill(message, raw)
    hide(message)
    return message


@cython.cfunc
def with_parts(message: Message, code: cython.uchar, parts: list) -> Message:
    message._body_code = code
    message._body = parts
    return message


@cython.cfunc
@cython.inline
def plain_dict(entries: object) -> dict | None:
    return entries if entries is None or type(entries) is dict else dict(entries)


@cython.cfunc
@cython.exceptval(-1)
def checked(name: str, number: object, maximum: cython.longlong) -> cython.longlong:
    """Return an integer from 0 to `maximum`."""
    if not isinstance(number, int) or not 0 <= number <= maximum:
        raise EncodeError(f"{name}: 0 to {maximum} is expected, not {number!r:.80}")
    return number
