"""Protocol Buffers by descriptors: made here by hand, as protoc would."""

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.schema import InvalidBody, InvalidSchema
from cogwork.schema.protobuf_schema import ProtobufSchema
from cogwork.schema.schema import BODY_BYTES_MAX


def descriptors(syntax: str = "proto3") -> FileDescriptorSet:
    """An order with an id, a symbol and orders below it."""
    files = FileDescriptorSet()
    file = files.file.add(name="order.proto", package="shop", syntax=syntax)
    order = file.message_type.add(name="Order")
    kinds = FieldDescriptorProto
    label = kinds.LABEL_REQUIRED if syntax == "proto2" else kinds.LABEL_OPTIONAL
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=label)
    order.field.add(name="symbol", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    order.field.add(
        name="parts",
        number=3,
        type=kinds.TYPE_MESSAGE,
        type_name=".shop.Order",
        label=kinds.LABEL_REPEATED,
    )
    return files


def schema(syntax: str = "proto3") -> ProtobufSchema:
    return ProtobufSchema(descriptors(syntax).SerializeToString(), "shop.Order")


def test_a_message_comes_and_goes() -> None:
    order = schema()
    body = order.encode({"id": 7, "symbol": "ACME", "parts": [{"id": 8}]})
    assert body == b"\x08\x07\x12\x04ACME\x1a\x02\x08\x08"
    found = order.decode(body)
    assert (found.id, found.symbol, found.parts[0].id) == (7, "ACME", 8)
    assert order.encode(found) == body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x08", "no shop.Order"),
        (b"\x12\x02\xff\xff", "no shop.Order"),
        (b"\x1a\x05\x08", "no shop.Order"),
        (b"x" * (BODY_BYTES_MAX + 1), "octets are more than"),
    ],
)
def test_what_is_none_is_said(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidBody, match=reason):
        schema().decode(body)


def test_of_fields_that_are_missing_within_no_list_is_made() -> None:
    """It has all names that each is within: five hundred megabytes, of a message like this one."""
    body = b"\x1a\x00" * 100
    for _ in range(50):
        size = len(body)
        body = b"\x08\x01\x1a" + bytes((size & 0x7F | 0x80, size >> 7)) + body
    with pytest.raises(InvalidBody, match=r"missing: of a message within it$"):
        schema("proto2").decode(b"\x08\x01" + body)


def test_required_fields_are_required() -> None:
    with pytest.raises(InvalidBody, match="missing: id"):
        schema("proto2").decode(b"")
    with pytest.raises(InvalidBody):
        schema("proto2").encode({"symbol": "A"})


@pytest.mark.parametrize("value", [7, {"price": 1}, {"id": "seven"}, FileDescriptorSet()])
def test_what_cannot_be_encoded_is_said(value: object) -> None:
    with pytest.raises(InvalidBody):
        schema().encode(value)


def test_a_message_that_is_nested_without_end_is_refused() -> None:
    body = b"\x08\x01"
    for _ in range(500):
        length = len(body)
        head = b"\x1a" + (
            bytes([length]) if length < 128 else bytes([length % 128 + 128, length // 128])
        )
        body = head + body
    with pytest.raises(InvalidBody):
        schema().decode(body)


def test_content_types() -> None:
    assert schema().takes("application/x-protobuf; proto=shop.Order")
    assert not schema().takes("application/json")


def test_what_is_no_schema_is_said() -> None:
    data = descriptors().SerializeToString()
    with pytest.raises(InvalidSchema, match=r"no message 'shop\.Ordr', but shop\.Order"):
        ProtobufSchema(data, "shop.Ordr")
    with pytest.raises(InvalidSchema, match="no FileDescriptorSet"):
        ProtobufSchema(data[:-3], "shop.Order")
    missing = descriptors()
    missing.file[0].dependency.append("elsewhere.proto")
    with pytest.raises(InvalidSchema, match="elsewhere"):
        ProtobufSchema(missing.SerializeToString(), "shop.Order")
    many = FileDescriptorSet()
    for i in range(1000):
        many.file.add(name=f"{i}.proto")
    with pytest.raises(InvalidSchema, match="1000 files"):
        ProtobufSchema(many.SerializeToString(), "shop.Order")


def test_two_schemas_may_define_the_same_name_differently() -> None:
    schema("proto2")
    assert schema("proto3").decode(b"")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_octets_are_a_message_or_none(body: bytes) -> None:
    try:
        schema().decode(body)
    except InvalidBody:
        return


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_any_octets_are_a_schema_or_none(definition: bytes) -> None:
    try:
        ProtobufSchema(definition, "shop.Order")
    except InvalidSchema:
        return
