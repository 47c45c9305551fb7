"""Whether a version of a schema takes all that the one before took."""

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from cogwork.schema import Incompatible, Registry, make_schema
from cogwork.schema.json_compatibility import why_not_covered
from cogwork.schema.protobuf_schema import ProtobufSchema

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "symbol": {"enum": ["A", "B"]},
        "parts": {"type": "array", "items": {"$ref": "#"}, "maxItems": 9},
    },
    "additionalProperties": False,
}


def changed(**keywords: object) -> dict[str, Any]:
    """The order with other keywords; None leaves one out."""
    given = {**ORDER, **keywords}
    return {name: value for name, value in given.items() if value is not None}


def with_properties(**schemas: object) -> dict[str, Any]:
    return changed(properties={**ORDER["properties"], **schemas})


@pytest.mark.parametrize(
    "new",
    [
        ORDER,
        True,
        {},
        changed(title="An order", description="A thing", examples=[1]),
        changed(required=None),
        changed(type=["object", "null"]),
        changed(additionalProperties=None),
        changed(additionalProperties={"type": "string"}),
        with_properties(id={"type": "number"}),
        with_properties(id={"minimum": 0}),
        with_properties(symbol={"enum": ["C", "B", "A"]}),
        with_properties(symbol={"type": "string"}),
        with_properties(note={"type": "string"}),
        with_properties(parts={"type": "array", "maxItems": 10, "uniqueItems": False}),
        {"anyOf": [{"type": "string"}, ORDER]},
        {"$ref": "#/$defs/order", "$defs": {"order": {"type": "object"}}},
    ],
)
def test_wider_ones_are_compatible(new: object) -> None:
    assert why_not_covered(new, ORDER) is None


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (False, r"$: nothing is taken any more"),
        (changed(required=["id", "symbol"]), "$: 'symbol' was not required before"),
        (changed(type="array"), "$: it was not always of type array"),
        (changed(minProperties=2), "$: minProperties is closer than it was"),
        (changed(patternProperties={"^x-": {}}), "$: patternProperties is not what it was"),
        (with_properties(id={"type": "string"}), "$.id: it was not always of type string"),
        (with_properties(id={"minimum": 2}), "$.id: minimum is closer than it was"),
        (with_properties(symbol={"enum": ["A"]}), "$.symbol: it was not always one of ['A']"),
        (with_properties(symbol={"const": "A"}), "$.symbol: it was not always one of ['A']"),
        (with_properties(symbol=None), "$.symbol: nothing is taken any more"),
        (with_properties(parts={"items": False}), "$.parts[]: nothing is taken any more"),
        (with_properties(parts={"uniqueItems": True}), "$.parts: its items did not have to be"),
        (with_properties(parts={"contains": {}}), "$.parts: contains is not what it was"),
        (changed(propertyNames={"maxLength": 9}), "$: propertyNames is not what it was"),
        (changed(**{"if": True, "then": False}), "$: if is not what it was"),
        (changed(anyOf=[{"required": ["symbol"]}]), "$: none of anyOf takes all that was taken"),
        ({**ORDER, "$schema": "http://json-schema.org/draft-07/schema"}, "$: $schema is not"),
        ({"$ref": "#/gone"}, "$: the reference '#/gone' leads nowhere"),
        ({"$ref": "#gone"}, "$: the reference '#gone' is not compared"),
    ],
)
def test_what_may_refuse_an_old_message_is_not(new: object, reason: str) -> None:
    if isinstance(new, dict) and "symbol" in new.get("properties", {}):
        properties = {name: each for name, each in new["properties"].items() if each is not None}
        new = {**new, "properties": properties}
    found = why_not_covered(new, ORDER)
    assert found is not None
    assert found.startswith(reason)


def test_a_property_that_was_anything_is_not_bound_later() -> None:
    assert why_not_covered({"properties": {"a": {"type": "string"}}}, {}) is not None
    assert why_not_covered({"additionalProperties": {}}, {"patternProperties": {"a": {}}})
    closed = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
    open_before: dict[str, object] = {"properties": {"a": {}}, "patternProperties": {"^b": {}}}
    assert why_not_covered(closed, {**open_before, "additionalProperties": False}) is not None


def test_recursive_schemas_are_compared() -> None:
    def tree(kind: str, name: str) -> dict[str, Any]:
        node = {"properties": {"v": {"type": kind}, "left": {"$ref": f"#/$defs/{name}"}}}
        return {"$ref": f"#/$defs/{name}", "$defs": {name: node}}

    assert why_not_covered(tree("number", "a"), tree("integer", "b")) is None
    assert why_not_covered(tree("integer", "a"), tree("number", "b")) is not None


def test_a_comparison_ends() -> None:
    def doubling(kind: str) -> dict[str, Any]:
        defs = {
            f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"not": {"$ref": f"#/$defs/d{i}"}}]}
            for i in range(60)
        }
        return {"$ref": "#/$defs/d0", "$defs": {**defs, "d60": {"type": kind}}}

    assert why_not_covered(doubling("string"), doubling("integer")) is not None


def test_true_is_not_1() -> None:
    assert why_not_covered({"enum": [1]}, {"const": True}) is not None
    assert why_not_covered({"enum": [[True]]}, {"const": [1]}) is not None
    assert why_not_covered({"enum": [1.0]}, {"const": 1}) is None


# -- Protocol Buffers

KINDS = FieldDescriptorProto


def message(*fields: tuple[str, int, int, int], syntax: str = "proto2") -> ProtobufSchema:
    files = FileDescriptorSet()
    file = files.file.add(name="order.proto", package="shop", syntax=syntax)
    order = file.message_type.add(name="Order")
    for name, number, kind, label in fields:
        field = order.field.add(name=name, number=number, type=kind, label=label)
        if kind == KINDS.TYPE_MESSAGE:
            field.type_name = ".shop.Order"
    return ProtobufSchema(files.SerializeToString(), "shop.Order")


ONCE, NEEDED, OFTEN = KINDS.LABEL_OPTIONAL, KINDS.LABEL_REQUIRED, KINDS.LABEL_REPEATED
ID = ("id", 1, KINDS.TYPE_INT64, ONCE)
NAME = ("name", 2, KINDS.TYPE_STRING, ONCE)
PART = ("part", 3, KINDS.TYPE_MESSAGE, ONCE)


@pytest.mark.parametrize(
    "new",
    [
        (ID, NAME, PART),
        (ID,),
        (ID, NAME, PART, ("more", 4, KINDS.TYPE_DOUBLE, ONCE)),
        (("number", 1, KINDS.TYPE_INT32, ONCE), NAME, PART),
        (("ids", 1, KINDS.TYPE_INT64, OFTEN), NAME, PART),
        (ID, ("name", 2, KINDS.TYPE_BYTES, ONCE), PART),
    ],
)
def test_fields_may_come_go_and_be_named(new: tuple[tuple[str, int, int, int], ...]) -> None:
    assert message(*new).why_not_after(message(ID, NAME, PART)) is None


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ((("id", 1, KINDS.TYPE_STRING, ONCE),), "id had another type under its number 1"),
        ((("id", 1, KINDS.TYPE_SINT64, ONCE),), "id had another type under its number 1"),
        ((ID, ("part", 2, KINDS.TYPE_MESSAGE, ONCE)), "part had another type"),
        ((("id", 1, KINDS.TYPE_INT64, NEEDED),), "id was not required"),
        ((ID, ("more", 4, KINDS.TYPE_INT64, NEEDED)), "more is required, and was not there"),
    ],
)
def test_what_cannot_be_read_is_told(
    new: tuple[tuple[str, int, int, int], ...], reason: str
) -> None:
    found = message(*new).why_not_after(message(ID, NAME, PART))
    assert found is not None
    assert found.startswith(reason)


def test_what_was_repeated_stays_so() -> None:
    often = message(("id", 1, KINDS.TYPE_INT64, OFTEN))
    assert message(ID).why_not_after(often) == "id was repeated"
    assert often.why_not_after(message(ID)) is None


def test_other_kinds_are_not_compared() -> None:
    json_schema = make_schema("json", b"{}")
    assert json_schema.why_not_after(message(ID)) == "the version before is no JSON Schema"
    assert (
        message(ID).why_not_after(json_schema) == "the version before is none of Protocol Buffers"
    )


# -- in a registry


def test_an_incompatible_version_is_registered_only_where_that_is_meant() -> None:
    registry = Registry()
    registry.apply(registry.register("a", "json", b'{"type": "integer"}'))
    with pytest.raises(Incompatible, match=r"version 1 is one by it: \$: it was not"):
        registry.register("a", "json", b'{"type": "string"}')
    registry.apply(registry.register("a", "json", b'{"type": "number"}'))
    registry.apply(registry.register("a", "json", b'{"type": "string"}', must_fit=False))
    assert [each.version for each in registry.versions("a")] == [1, 2, 3]
    assert registry.decode("a", None, b'"x"') == "x"
    assert registry.decode("a", None, b"1.5", 2) == 1.5
