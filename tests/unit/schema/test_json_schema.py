"""JSON Schema: what it says, against the library unbounded; and schemas that mean harm."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.schema import InvalidBody, InvalidSchema
from cogwork.schema.errors import REASON_LENGTH_MAX
from cogwork.schema.json_schema import DEPTH_MAX, JsonSchema
from cogwork.schema.schema import BODY_BYTES_MAX

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "symbol": {"type": "string", "pattern": "^[A-Z]{1,4}$"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "patternProperties": {"^x-": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def schema(document: object) -> JsonSchema:
    return JsonSchema(json.dumps(document).encode())


def test_a_message_comes_and_goes() -> None:
    order = schema(ORDER)
    value = {"id": 7, "symbol": "ACME", "tags": ["a", "b"], "x-note": "n"}
    assert order.decode(order.encode(value)) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": 0}, r"\$\.id: 0 is less than the minimum"),
        ({}, "'id' is a required property"),
        ({"id": 1, "symbol": "acme"}, "does not match"),
        ({"id": 1, "tags": ["a", "a"]}, "not all different"),
        ({"id": 1, "other": 1}, "no property 'other'"),
        ({"id": 1, "x-note": 1}, r"\$\['x-note'\]: 1 is not of type 'string'|x-note"),
        ([], "is not of type 'object'"),
    ],
)
def test_what_is_wrong_is_said(value: object, reason: str) -> None:
    order = schema(ORDER)
    with pytest.raises(InvalidBody, match=reason):
        order.decode(json.dumps(value).encode())
    with pytest.raises(InvalidBody):
        order.encode(value)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"NaN", b"[" * 100_000])
def test_what_is_no_json_is_said(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        schema({}).decode(body)


def test_a_reason_does_not_carry_the_message_back() -> None:
    with pytest.raises(InvalidBody) as caught:
        schema({"type": "object"}).decode(json.dumps("x" * 10_000).encode())
    assert len(str(caught.value)) <= REASON_LENGTH_MAX


def test_what_is_too_large_is_refused_unread() -> None:
    with pytest.raises(InvalidBody, match="octets are more than"):
        schema({}).decode(b"1" * (BODY_BYTES_MAX + 1))


def test_content_types() -> None:
    takes = schema({}).takes
    assert takes("application/json")
    assert takes("Application/JSON; charset=utf-8")
    assert takes("application/geo+json")
    assert not takes("text/plain")
    assert not takes("application/jsonx")


def test_draft_7_is_understood() -> None:
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    with pytest.raises(InvalidBody):
        schema(draft_7).decode(b"[1]")
    assert schema(draft_7).decode(b'["a", 1]') == ["a", 1]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"type": "integr"}, "no JSON Schema"),
        (7, "no JSON Schema"),
        ({"$schema": "http://example.com/mine"}, "is one of"),
        ({"$ref": "http://example.com/other.json"}, "leads out of the document"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, "leads out of the document"),
        ({"$dynamicRef": "#x"}, "dynamicRef is not supported"),
        ({"allOf": [{"unevaluatedProperties": False}]}, "unevaluatedProperties is not supported"),
        ({"pattern": "(?=a)"}, "none of RE2"),
        ({"pattern": r"(a)\1"}, "none of RE2"),
        ({"patternProperties": {"(": {}}}, "none of RE2"),
        ({"pattern": "((a{500}){500}){500}"}, "none of RE2"),
    ],
)
def test_what_cannot_be_bounded_is_refused(document: object, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        schema(document)


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(DEPTH_MAX + 1):
        document = {"not": document}
    with pytest.raises(InvalidSchema, match="nested"):
        schema(document)
    with pytest.raises(InvalidSchema):
        JsonSchema(b'{"not":' * 50_000)


def test_a_property_may_be_called_like_a_keyword() -> None:
    document = {"properties": {"unevaluatedProperties": {"type": "string"}, "$ref": {}}}
    assert schema(document).decode(b'{"unevaluatedProperties": "x"}')


def doubling(levels: int) -> dict[str, Any]:
    """Refers twice to what refers twice, and so on."""
    defs = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
        for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {}}}


@pytest.mark.parametrize(
    ("document", "body"),
    [
        ({"$ref": "#"}, b"1"),
        ({"allOf": [{"$ref": "#"}]}, b"1"),
        ({"not": {"$ref": "#"}}, b"1"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#"}}}, b"1"),
        (doubling(40), b"1"),
        ({"properties": {"a": {"allOf": [{"$ref": "#"}] * 2}}}, b'{"a":' * 60 + b"1" + b"}" * 60),
        ({"items": {"anyOf": [{"$ref": "#"}] * 9}, "maxItems": 0}, b"[" * 60 + b"]" * 60),
        ({"$ref": "#/nowhere"}, b"1"),
        ({"$ref": "#/examples/0", "examples": [{"unevaluatedItems": False}]}, b"[1]"),
        ({"$ref": "#/examples/0", "examples": [{"$ref": "http://127.0.0.1:9/x"}]}, b"1"),
        ({"$ref": "#/examples/0", "examples": [{"pattern": "(?=a)"}]}, b'"a"'),
    ],
)  # fmt: skip
def test_a_schema_that_means_harm_ends(document: object, body: bytes) -> None:
    """In a moment: the time limit of the test would tell."""
    with pytest.raises(InvalidBody):
        schema(document).decode(body)


def test_patterns_take_time_in_proportion_to_the_text() -> None:
    evil = schema({"pattern": "^(a+)+$", "propertyNames": {"pattern": "^(a|a)*b"}})
    with pytest.raises(InvalidBody, match="does not match"):
        evil.decode(json.dumps("a" * 50_000 + "!").encode())
    with pytest.raises(InvalidBody):
        evil.decode(json.dumps({"a" * 50_000: 1}).encode())


def test_unlike_items_are_compared_in_one_pass() -> None:
    items = [{"a": i, "b": [i]} for i in range(5_000)]
    unique = schema({"uniqueItems": True})
    assert unique.decode(json.dumps(items).encode()) == items
    with pytest.raises(InvalidBody):
        unique.decode(json.dumps([*items, {"b": [7], "a": 7.0}]).encode())
    unique.decode(b'[1, true, 0, false, "1", [1], [true], {"a": 1}, {"a": true}]')


def test_a_long_honest_message_is_not_exhausted() -> None:
    document = {"items": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 0}}}}
    body = json.dumps([{"a": i} for i in range(5_000)]).encode()
    schema(document).decode(body)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "x-a"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "x-a"]), inner, max_size=3)
    ),
    max_leaves=8,
)
leaves = st.sampled_from(
    [
        True,
        False,
        {},
        {"type": "string"},
        {"type": ["integer", "array"]},
        {"minimum": 1},
        {"maxLength": 1},
        {"pattern": "^a"},
        {"uniqueItems": True},
        {"required": ["a"]},
        {"enum": [1, "a", None, []]},
        {"const": 1},
        {"maxProperties": 1},
        {"minItems": 1},
    ]
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
        st.fixed_dictionaries(
            {
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
                "additionalProperties": inner,
            }
        ),
        st.fixed_dictionaries(
            {
                "patternProperties": st.fixed_dictionaries({"^x-": inner}),
                "additionalProperties": inner,
            }
        ),
        st.fixed_dictionaries({"propertyNames": inner}),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(schemas, values)
def test_it_says_what_the_library_says(document: bool | dict[str, Any], value: object) -> None:
    expected = jsonschema.Draft202012Validator(document).is_valid(value)
    try:
        schema(document).decode(json.dumps(value).encode())
        found = True
    except InvalidBody:
        found = False
    assert found == expected
