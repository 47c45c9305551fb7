"""`Message`: what applications send and receive.

Theory of operation. A decoded message keeps its bytes and knows where its sections lie; a section
is decoded when one of its attributes is first asked for, so whoever looks at the body pays for the
body only. Encoding copies the sections that were never opened, and a message that was not opened at
all is its bytes. The reference, `cogwork.amqp.message`, words the errors: bytes that cannot be
decoded are given to it, and it raises.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.codec import (
    Octets,
    Reader,
    Writer,
    begin_compound,
    close_writer,
    end_compound,
    open_writer,
    put_byte,
    put_bytes,
    put_symbol,
    put_text,
    put_u32,
    put_value,
    read_value,
    written,
)
from cython.cimports.cogwork.dataplane.messages import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.sections import (
    ABSOLUTE_EXPIRY_TIME_FIELD,
    APPLICATION_PROPERTIES,
    APPLICATION_PROPERTIES_RANK,
    BODY_RANK,
    CONTENT_ENCODING_FIELD,
    CONTENT_TYPE_FIELD,
    CORRELATION_ID_FIELD,
    CREATION_TIME_FIELD,
    DATA,
    DELIVERY_ANNOTATIONS,
    DELIVERY_ANNOTATIONS_RANK,
    FOOTER,
    FOOTER_RANK,
    GROUP_ID_FIELD,
    GROUP_SEQUENCE_FIELD,
    HEADER,
    HEADER_RANK,
    MALFORMED,
    MESSAGE_ANNOTATIONS,
    MESSAGE_ANNOTATIONS_RANK,
    MESSAGE_ID_FIELD,
    PROPERTIES,
    PROPERTIES_RANK,
    PROPERTY_FIELDS,
    RANKS,
    REPLY_TO_FIELD,
    REPLY_TO_GROUP_ID_FIELD,
    SEQUENCE,
    SUBJECT_FIELD,
    TO_FIELD,
    USER_ID_FIELD,
    VALUE,
    HeaderFields,
    Section,
    locate,
    next_section,
    read_header,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE

from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.message import Properties, decode_sections
from cogwork.amqp.types import Symbol, ULong
from cogwork.dataplane.codec import Malformed

__all__ = ("SOURCE_HASH", "Message")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

DEFAULT_PRIORITY = cython.declare(cython.uchar, 4)
UINT_MAX = cython.declare(cython.longlong, 0xFFFFFFFF)
UBYTE_MAX = cython.declare(cython.longlong, 0xFF)
MS_PER_S = cython.declare(cython.double, 1000.0)

FIELD_NAMES = tuple(row.attribute for row in Properties.TABLE)
FIELD_TYPES = [row.kind.wire_types for row in Properties.TABLE]
PLAIN_TYPES = [types | {str} if types == {Symbol} else types for types in FIELD_TYPES]
"""What is encoded without further ado; the reference converts all other types, or refuses them."""

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
        self._priority = DEFAULT_PRIORITY

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
        durable: object = False,
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
        self._durable = durable
        self._priority = checked("priority", priority, UBYTE_MAX)
        self._first_acquirer = first_acquirer
        self._delivery_count = checked("delivery_count", delivery_count, UINT_MAX)
        self.set_ttl(ttl_s)
        self.set_body(body)

    @classmethod
    def decode(cls, data: object) -> Message:
        """Takes an encoded message; its sections are decoded when they are asked for.

        Args:
            data: The bytes; kept, or copied where they are not of type bytes.

        Raises:
            DecodeError: The bytes are no message. What is wrong inside of a section is raised when
                that section is asked for, as a `ProtocolError`.
        """
        raw: bytes = data if type(data) is bytes else bytes(data)
        if cls is Message:
            return message_from(raw)
        return filled(cls.__new__(cls), raw)

    @classmethod
    def data(cls, *parts: object, **fields: object) -> Message:
        """Makes a message with a data section for each of `parts`, which are bytes.

        Args:
            *parts: The body, section by section.
            **fields: As in the constructor.
        """
        return with_parts(cls(None, **fields), DATA, [bytes(part) for part in parts])

    @classmethod
    def value(cls, body: object, **fields: object) -> Message:
        """Makes a message whose body is a value section, bytes too.

        Args:
            body: The body.
            **fields: As in the constructor.
        """
        message: Message = cls(None, **fields)
        message._body = body
        return message

    @classmethod
    def sequence(cls, *parts: object, **fields: object) -> Message:
        """Makes a message with a sequence section for each of `parts`, which are lists.

        Args:
            *parts: The body, section by section.
            **fields: As in the constructor.
        """
        return with_parts(cls(None, **fields), SEQUENCE, [list(part) for part in parts])

    def encode(self) -> bytes:
        """Returns the message's bytes.

        Raises:
            EncodeError: A value has no encoding; it is named.
        """
        out = cython.declare(Writer)
        if self._is_intact:
            return self._raw
        open_writer(cython.address(out))
        try:
            self.write(cython.address(out))
            return written(cython.address(out))
        finally:
            close_writer(cython.address(out))

    def __repr__(self) -> str:
        """Shows what differs from an empty message."""
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
        return self._durable

    @durable.setter
    def durable(self, durable: object) -> None:
        self.open_section(HEADER_RANK)
        self._durable = durable

    @property
    def priority(self) -> int:
        """0 to 255; 4 is normal."""
        self.open_section(HEADER_RANK)
        return self._priority

    @priority.setter
    def priority(self, priority: object) -> None:
        self.open_section(HEADER_RANK)
        self._priority = checked("priority", priority, UBYTE_MAX)

    @property
    def ttl_s(self) -> object:
        """Time to live in seconds; None for ever."""
        self.open_section(HEADER_RANK)
        return self._ttl_ms / MS_PER_S if self._has_ttl else None

    @ttl_s.setter
    def ttl_s(self, ttl_s: object) -> None:
        self.open_section(HEADER_RANK)
        self.set_ttl(ttl_s)

    @property
    def first_acquirer(self) -> bool:
        """Whether no other link acquired it before."""
        self.open_section(HEADER_RANK)
        return self._first_acquirer

    @first_acquirer.setter
    def first_acquirer(self, first_acquirer: object) -> None:
        self.open_section(HEADER_RANK)
        self._first_acquirer = first_acquirer

    @property
    def delivery_count(self) -> int:
        """How many deliveries of it failed before."""
        self.open_section(HEADER_RANK)
        return self._delivery_count

    @delivery_count.setter
    def delivery_count(self, delivery_count: object) -> None:
        self.open_section(HEADER_RANK)
        self._delivery_count = checked("delivery_count", delivery_count, UINT_MAX)

    def field(self, index: cython.int) -> object:
        """Returns a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        return None if self._fields is None else self._fields[index]

    def set_field(self, index: cython.int, value: object) -> cython.int:
        """Sets a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        if self._fields is None:
            self._fields = [None] * PROPERTY_FIELDS
        self._fields[index] = value
        return 0

    def set_body(self, body: object) -> cython.int:
        """Holds bytes as data, anything else as value."""
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
        """Holds a time to live in the header's unit."""
        ttl_ms: cython.double
        self._has_ttl = ttl_s is not None
        self._ttl_ms = 0
        if ttl_s is not None:
            ttl_ms = float(ttl_s) * MS_PER_S
            if not 0 <= ttl_ms <= UINT_MAX:
                limit = UINT_MAX / MS_PER_S
                raise EncodeError(f"ttl_s: 0 to {limit} is expected, not {ttl_s!r:.80}")
            self._ttl_ms = cython.cast(cython.uint, ttl_ms + 0.5)
        return 0

    # --- decoding ---

    def open_section(self, rank: cython.int) -> cython.int:
        """Decodes a section, if that is still to be done; it may be changed from now on."""
        self._is_intact = False
        if self._pending & (1 << rank):
            self.load(rank)
            self._pending &= ~(1 << rank)
        return 0

    def load(self, rank: cython.int) -> cython.int:
        """Decodes a section."""
        try:
            if rank == BODY_RANK:
                self.load_body()
            elif rank == HEADER_RANK:
                self.load_header()
            elif rank == PROPERTIES_RANK:
                self.load_fields(self.section_value(rank))
            elif rank == APPLICATION_PROPERTIES_RANK:
                self._properties = checked_keys(self.section_value(rank), False)
            elif rank == MESSAGE_ANNOTATIONS_RANK:
                self._annotations = checked_keys(self.section_value(rank), True)
            elif rank == DELIVERY_ANNOTATIONS_RANK:
                self._delivery_annotations = checked_keys(self.section_value(rank), True)
            else:
                self._footer = checked_keys(self.section_value(rank), True)
        except (Malformed, UnicodeDecodeError, TypeError):
            self.refuse()
        return 0

    def load_header(self) -> cython.int:
        """Decodes the header."""
        fields = cython.declare(HeaderFields)
        data: Octets = cython.cast(Octets, PyBytes_AS_STRING(self._raw))
        if read_header(data, PyBytes_GET_SIZE(self._raw), cython.address(fields)) == MALFORMED:
            raise Malformed
        self._durable = fields.durable
        self._priority = fields.priority
        self._has_ttl = fields.has_ttl
        self._ttl_ms = fields.ttl_ms
        self._first_acquirer = fields.first_acquirer
        self._delivery_count = fields.delivery_count
        return 0

    def load_fields(self, values: list) -> cython.int:
        """Takes over the list of the properties section."""
        index: cython.Py_ssize_t
        if values is None or len(values) > PROPERTY_FIELDS:
            raise Malformed
        for index in range(len(values)):
            value = values[index]
            if value is not None and type(value) not in FIELD_TYPES[index]:
                raise Malformed
        values.extend([None] * (PROPERTY_FIELDS - len(values)))
        self._fields = values
        return 0

    def load_body(self) -> cython.int:
        """Decodes all body sections."""
        section = cython.declare(Section)
        parts: list
        wanted: object = bytes if self._body_code == DATA else list
        data: Octets = cython.cast(Octets, PyBytes_AS_STRING(self._raw))
        if self._layout.body_sections == 1:
            value = self.section_value(BODY_RANK)
            if self._body_code != VALUE and type(value) is not wanted:
                raise Malformed
            self._body = [value] if self._body_code == SEQUENCE else value
            return 0
        parts = []
        section.end = self._layout.sections[BODY_RANK].start
        while section.end < self._layout.sections[BODY_RANK].end:
            next_section(data, PyBytes_GET_SIZE(self._raw), section.end, cython.address(section))
            value = value_in(self._raw, section.value, section.end)
            if type(value) is not wanted:
                raise Malformed
            parts.append(value)
        self._body = parts
        return 0

    def section_value(self, rank: cython.int) -> object:
        """Decodes the value of a section."""
        return value_in(
            self._raw, self._layout.sections[rank].value, self._layout.sections[rank].end
        )

    def refuse(self) -> cython.int:
        """Has the reference say what is wrong with the bytes."""
        decode_sections(self._raw)
        raise DecodeError("the decoders disagree", 0)

    # --- encoding ---

    def write(self, out: cython.pointer(Writer)) -> cython.int:
        """Writes all sections: those never opened as they came."""
        rank: cython.int
        start: cython.Py_ssize_t
        for rank in range(RANKS):
            if self._pending & (1 << rank):
                start = self._layout.sections[rank].start
                put_bytes(
                    out,
                    PyBytes_AS_STRING(self._raw) + start,
                    self._layout.sections[rank].end - start,
                )
            else:
                self.write_rank(out, rank)
        return 0

    def write_rank(self, out: cython.pointer(Writer), rank: cython.int) -> cython.int:
        """Writes one section."""
        if rank == HEADER_RANK:
            self.write_header(out)
        elif rank == DELIVERY_ANNOTATIONS_RANK:
            write_annotations(out, DELIVERY_ANNOTATIONS, self._delivery_annotations)
        elif rank == MESSAGE_ANNOTATIONS_RANK:
            write_annotations(out, MESSAGE_ANNOTATIONS, self._annotations)
        elif rank == PROPERTIES_RANK:
            self.write_fields(out)
        elif rank == APPLICATION_PROPERTIES_RANK:
            write_properties(out, self._properties)
        elif rank == BODY_RANK:
            self.write_body(out)
        else:
            write_annotations(out, FOOTER, self._footer)
        return 0

    def write_header(self, out: cython.pointer(Writer)) -> cython.int:
        """Writes the header, unless all of it is default; trailing defaults are left out."""
        start: cython.Py_ssize_t
        count: cython.Py_ssize_t = self.header_length()
        if count == 0:
            return 0
        put_descriptor(out, HEADER)
        start = begin_compound(out)
        put_byte(out, 0x41 if self._durable else 0x40)
        if count > 1:
            put_priority(out, self._priority)
        if count > 2:
            put_uint(out, self._has_ttl, self._ttl_ms)
        if count > 3:
            put_byte(out, 0x41 if self._first_acquirer else 0x40)
        if count > 4:
            put_uint(out, True, self._delivery_count)
        return end_compound(out, start, 0xC0, count)

    def header_length(self) -> cython.int:
        """Counts the header's fields up to the last one that is not default."""
        if self._delivery_count != 0:
            return 5
        if self._first_acquirer:
            return 4
        if self._has_ttl:
            return 3
        if self._priority != DEFAULT_PRIORITY:
            return 2
        return 1 if self._durable else 0

    def write_fields(self, out: cython.pointer(Writer)) -> cython.int:
        """Writes the properties section, if any field is set; trailing nulls are left out."""
        index: cython.Py_ssize_t
        start: cython.Py_ssize_t
        section: cython.Py_ssize_t = out.size
        count: cython.Py_ssize_t = PROPERTY_FIELDS
        fields: list = self._fields
        if fields is None:
            return 0
        while count > 0 and fields[count - 1] is None:
            count -= 1
        if count == 0:
            return 0
        put_descriptor(out, PROPERTIES)
        start = begin_compound(out)
        for index in range(count):
            if not put_field(out, index, fields[index]):
                out.size = section
                return put_value(
                    out, Properties(**dict(zip(FIELD_NAMES, fields, strict=True))).to_described(), 0
                )
        return end_compound(out, start, 0xC0, count)

    def write_body(self, out: cython.pointer(Writer)) -> cython.int:
        """Writes all body sections."""
        if self._body_code == 0:
            return 0
        if self._body_code == SEQUENCE or (self._body_code == DATA and type(self._body) is list):
            for part in cython.cast(list, self._body):
                put_descriptor(out, self._body_code)
                put_value(out, part, 1)
            return 0
        put_descriptor(out, self._body_code)
        return put_value(out, self._body, 1)


def message_from(raw: bytes) -> Message:
    """Returns the message that `raw` is."""
    return filled(Message.__new__(Message), raw)


@cython.cfunc
def filled(message: Message, raw: bytes) -> Message:
    """Lets a new message be what `raw` says."""
    rank: cython.int
    data: Octets = cython.cast(Octets, PyBytes_AS_STRING(raw))
    message._raw = raw
    if locate(data, PyBytes_GET_SIZE(raw), cython.address(message._layout)) == MALFORMED:
        message.refuse()
    for rank in range(RANKS):
        if message._layout.sections[rank].start >= 0:
            message._pending |= 1 << rank
    message._body_code = message._layout.body_code
    message._is_intact = True
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
    """Returns an integer from 0 to `maximum`."""
    if not isinstance(number, int) or not 0 <= number <= maximum:
        raise EncodeError(f"{name}: 0 to {maximum} is expected, not {number!r:.80}")
    return number


@cython.cfunc
def value_in(raw: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
    """Decodes the value that lies between `at` and `end`, which `locate` found."""
    source = cython.declare(Reader)
    source.data = cython.cast(Octets, PyBytes_AS_STRING(raw))
    source.at = at
    source.end = end
    return read_value(cython.address(source), 1)


@cython.cfunc
def checked_keys(value: object, are_annotations: cython.bint) -> dict:
    """Returns a section's map if its keys are what the section takes."""
    if type(value) is not dict:
        raise Malformed
    for key in cython.cast(dict, value):
        if not isinstance(key, str) and not (are_annotations and type(key) is ULong):
            raise Malformed
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def put_descriptor(out: cython.pointer(Writer), code: cython.uchar) -> cython.int:
    put_bytes(out, b"\x00\x53", 2)
    return put_byte(out, code)


@cython.cfunc
@cython.exceptval(-1)
def put_priority(out: cython.pointer(Writer), priority: cython.uchar) -> cython.int:
    if priority == DEFAULT_PRIORITY:
        return put_byte(out, 0x40)
    put_byte(out, 0x50)
    return put_byte(out, priority)


@cython.cfunc
@cython.exceptval(-1)
def put_uint(out: cython.pointer(Writer), present: cython.bint, number: cython.uint) -> cython.int:
    if not present:
        return put_byte(out, 0x40)
    if number == 0:
        return put_byte(out, 0x43)
    if number > 0xFF:
        return put_u32(out, 0x70, number)
    put_byte(out, 0x52)
    return put_byte(out, number)


@cython.cfunc
@cython.exceptval(-1)
def put_field(out: cython.pointer(Writer), index: cython.Py_ssize_t, value: object) -> cython.int:
    """Writes a field of the plainest type; returns whether it was of that type."""
    kind = type(value)
    if value is None:
        put_byte(out, 0x40)
    elif kind not in PLAIN_TYPES[index]:
        return 0
    elif index in (CONTENT_TYPE_FIELD, CONTENT_ENCODING_FIELD):
        put_symbol(out, value)
    else:
        put_value(out, value, 2)
    return 1


@cython.cfunc
@cython.exceptval(-1)
def write_properties(out: cython.pointer(Writer), entries: dict | None) -> cython.int:
    """Writes the application-properties, if there are any."""
    start: cython.Py_ssize_t
    if not entries:
        return 0
    put_descriptor(out, APPLICATION_PROPERTIES)
    start = begin_compound(out)
    for key, value in entries.items():
        if not isinstance(key, str):
            raise EncodeError(f"an application-property's key is a str, not {key!r:.80}")
        put_text(out, key)
        put_value(out, value, 2)
    return end_compound(out, start, 0xC1, 2 * len(entries))


@cython.cfunc
@cython.exceptval(-1)
def write_annotations(
    out: cython.pointer(Writer), code: cython.uchar, entries: dict | None
) -> cython.int:
    """Writes annotations or the footer, if there are any."""
    start: cython.Py_ssize_t
    if not entries:
        return 0
    put_descriptor(out, code)
    start = begin_compound(out)
    for key, value in entries.items():
        if isinstance(key, str):
            put_symbol(out, key)
        elif isinstance(key, int) and not isinstance(key, bool):
            put_value(out, ULong(key), 2)
        else:
            raise EncodeError(f"an annotation's key is a symbol, not {key!r:.80}")
        put_value(out, value, 2)
    return end_compound(out, start, 0xC1, 2 * len(entries))
