"""JSON Schema: what it says; and schemas that mean harm."""

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import pytest

from cogwork.schema import InvalidBody, InvalidSchema
from cogwork.schema.errors import REASON_LENGTH_MAX, TooCostly
from cogwork.schema.json_compiler import SCHEMA_DEPTH_MAX
from cogwork.schema.json_run import Run, key_of
from cogwork.schema.json_schema import JsonSchema
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
        ({"id": 1, "x-note": 1}, r"\$\['x-note'\]: 1 is not of type 'string'"),
        ({"id": 1, "tags": ["a", 2]}, r"\$\.tags\[1\]: 2 is not of type 'string'"),
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
        ({"type": "integr"}, "no JSON Schema: type: 'integr' is none of null"),
        ({"properties": {"a": {"type": []}}}, "properties: type: "),
        ({"type": ["string", "string"]}, "names a type twice"),
        (7, "no JSON Schema: a schema is an object or a boolean, not 7"),
        ({"items": [{}]}, "items: a schema is an object"),
        ({"minimum": "1"}, "minimum: a number is expected"),
        ({"minimum": True}, "minimum: a number is expected"),
        ({"multipleOf": 0}, "above 0"),
        ({"maxLength": -1}, "a whole number from 0 on"),
        ({"maxLength": 1.5}, "a whole number from 0 on"),
        ({"pattern": 1}, "a regular expression is expected"),
        ({"required": "id"}, "a list of names"),
        ({"required": ["a", "a"]}, "a name twice"),
        ({"required": [{"a": 1}] * 30_000}, "a list of names"),
        ({"dependentRequired": []}, "an object"),
        ({"dependentRequired": {"a": [1]}}, "a list of names"),
        ({"uniqueItems": 1}, "true or false"),
        ({"enum": {}}, "a list"),
        ({"properties": []}, "an object whose values are schemas"),
        ({"allOf": []}, "one at least"),
        ({"anyOf": {}}, "a list of schemas"),
        ({"minContains": -1, "contains": {}}, "a whole number"),
        ({"$defs": {"a": {"type": 1}}}, r"\$defs: type: "),
        ({"title": 7}, "title: 7 is not what it takes"),
        ({"$ref": 7}, "a reference is expected"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$ref": "#nowhere"}, "leads nowhere"),
        ({"$ref": "#/$defs/0/1", "$defs": {"0": {"examples": []}}}, "leads nowhere"),
        ({"$ref": "#/examples/0", "examples": [{"unevaluatedItems": False}]}, "is not supported"),
        ({"$ref": "#/examples/0", "examples": [{"$ref": "http://127.0.0.1:9/x"}]}, "leads out"),
        ({"$ref": "#/examples/0", "examples": [{"pattern": "(?=a)"}]}, "none of RE2"),
        ({"$ref": "#/examples/0", "examples": [7]}, "a schema is an object"),
        ({"allOf": [{"$id": "http://example.com/x"}]}, r"\$id within the schema"),
        ({"not": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}, r"\$schema within"),
        ({"allOf": [{"pattern": f"{i}" * 9} for i in range(2_000)]}, "too many, or too large"),
        ({"allOf": [{"pattern": f"a{{{i}}}"} for i in range(900)]}, "too large"),
        ({"$schema": "http://example.com/mine"}, "is one of"),
        ({"$ref": "http://example.com/other.json"}, "leads out of the document"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, "leads out of the document"),
        ({"$dynamicRef": "#x"}, "dynamicRef is not supported"),
        ({"allOf": [{"unevaluatedProperties": False}]}, "unevaluatedProperties is not supported"),
        ({"pattern": "(?=a)"}, r"references: invalid perl operator: \(\?="),
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
    for _ in range(SCHEMA_DEPTH_MAX + 1):
        document = {"not": document}
    with pytest.raises(InvalidSchema, match="nested"):
        schema(document)
    with pytest.raises(InvalidSchema):
        JsonSchema(b'{"not":' * 50_000)


def test_a_property_may_be_called_like_a_keyword() -> None:
    document = {"properties": {"unevaluatedProperties": {"type": "string"}, "$ref": {}}}
    assert schema(document).decode(b'{"unevaluatedProperties": "x"}')


def doubling(levels: int) -> dict[str, Any]:
    """Refer twice to what refers twice, and so on."""
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
    ],
)
def test_a_schema_that_means_harm_ends(document: object, body: bytes) -> None:
    """In a moment: the time limit of the test would tell."""
    with pytest.raises(InvalidBody):
        schema(document).decode(body)


def test_the_dialect_of_a_schema_within_a_schema_lifts_no_bound() -> None:
    """Followed by the library that is our measure, this one takes minutes."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    evil = schema({"$schema": dialect, "pattern": "^(a+)+$", "items": {"$ref": "#"}})
    with pytest.raises(InvalidBody, match="does not match"):
        evil.decode(b'["' + b"a" * 50 + b'!"]')


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


def multiples() -> Iterator[int]:
    """Make numbers that all have the same hash, which is taken modulo a prime number."""
    return (sign * at * (2**61 - 1) for at in count(5) for sign in (1, -1))


def alike_in_pairs() -> Iterator[list[int]]:
    """Make pairs of small numbers of which tuples have the same hash, whatever is in front."""
    word = 1 << 64
    one, two = 11400714785074694791, 14029467366897019727  # the primes of a tuple's hash
    inverse = pow(two, -1, word)
    for at in count(1):
        steps = [(at << 33) * inverse % word, -at * one * inverse % word]
        pair = [each - word if each >= word // 2 else each for each in steps]
        if all(abs(each) < 1 << 60 for each in pair):
            yield pair


def powers() -> Iterator[float]:
    """Make decimals whose hashes are their odd factors, 32 of each."""
    return (odd * 2.0 ** (61 * at) for odd in count(1, 2) for at in range(-16, 16))


@pytest.mark.parametrize("make", [multiples, alike_in_pairs, powers])
def test_items_cannot_be_chosen_to_have_the_same_key(make: Callable[[], Iterator[object]]) -> None:
    keys = [key_of(each, Run(1 << 30)) for each in islice(make(), 5_000)]
    assert len({hash(each) for each in keys}) > 4_900


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("0", "-0.0"),
        ("1180591620717411303424", "1180591620717411303424.0"),
        ("-1152921504606846976", "-1.152921504606846976e18"),
        ("1" + "0" * 22, "1e22"),
        (str(int(1e308)), "1e308"),
        ('{"a": [7]}', '{"a": [7.0]}'),
        ("[0, [0.5]]", "[-0.0, [5e-1]]"),
    ],
)
def test_numbers_are_equal_however_they_are_written(one: str, other: str) -> None:
    assert schema({"enum": [7, json.loads(one)]}).decode(other.encode()) == json.loads(other)
    with pytest.raises(InvalidBody, match="not all different"):
        schema({"uniqueItems": True}).decode(f"[{one}, {other}]".encode())


@pytest.mark.parametrize(
    "body",
    [
        '[1, 1.5, true, "1", "0x1", null, [1], [true], ["1"]]',
        "[9007199254740993, 9007199254740992.0, [9007199254740993], [9007199254740992.0]]",
        '[1180591620717411303424, 1180591620717411303425, ["number", "0x1"]]',
        "[1" + "0" * 400 + ", 1" + "0" * 401 + ", 1.5e308]",
    ],
)
def test_numbers_that_are_near_are_different(body: str) -> None:
    schema({"uniqueItems": True}).decode(body.encode())


def eightfold(leaf: dict[str, Any]) -> JsonSchema:
    """Make a schema that looks at the same value two million times, if it may."""
    eight = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 8} for at in range(7)}
    return schema({"$ref": "#/$defs/d0", "$defs": {**eight, "d7": leaf}})


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        ({"const": "x" * 100_000}, "x" * 100_000),
        ({"const": [["x" * 100_000]]}, [["x" * 100_000]]),
        ({"const": {"x" * 100_000: 1}}, {"x" * 100_000: 1}),
        ({"multipleOf": 10**2000}, 10**4285),
        ({"uniqueItems": True}, [10**4285, 10**4285 + 1]),
    ],
)
def test_what_is_large_costs_by_its_size(leaf: dict[str, Any], value: object) -> None:
    body = json.dumps(value).encode()
    with pytest.raises(InvalidBody, match="too long or too deep"):
        eightfold(leaf).decode(body)


def test_a_long_honest_message_is_not_exhausted() -> None:
    document = {"items": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 0}}}}
    body = json.dumps([{"a": i} for i in range(5_000)]).encode()
    schema(document).decode(body)


def test_a_pattern_costs_by_its_size_and_that_of_the_text() -> None:
    evil = schema({"allOf": [{"pattern": f"a(a|b){{{i}}}c"} for i in range(100, 120)]})
    with pytest.raises(InvalidBody, match="too long or too deep"):
        evil.decode(json.dumps("ab" * 50_000).encode())


def test_a_message_may_be_given_fewer_steps_for_now() -> None:
    document = {"items": {"type": "integer"}}
    body = json.dumps([1] * 1000).encode()
    with pytest.raises(TooCostly):
        schema(document).decode(body, 500)
    assert schema(document).decode(body, 5000) == [1] * 1000
    with pytest.raises(InvalidBody, match="too long or too deep"):
        schema({"items": {"allOf": [{"type": "integer"}] * 50}}).decode(body, 1 << 40)


def test_decimals_are_what_they_look_like() -> None:
    cents = schema({"multipleOf": 0.01})
    for body in (b"0.3", b"19.99", b"1e300", b"7", b"123456789012345678901234567890"):
        cents.decode(body)
    for body in (b"0.005", b"1e-300"):
        with pytest.raises(InvalidBody, match=r"not a multiple of 0\.01"):
            cents.decode(body)


@pytest.mark.parametrize(
    ("document", "value", "reason"),
    [
        ({"type": ["string", "null"]}, 7, "7 is not of type 'string', 'null'"),
        ({"enum": ["a", "b"]}, "c", r"'c' is not one of \['a', 'b'\]"),
        ({"const": {"a": 1}}, 7, "{'a': 1} was expected, not 7"),
        ({"maximum": 5}, 6, "6 is greater than the maximum of 5"),
        ({"exclusiveMinimum": 5}, 5, "5 is not greater than 5"),
        ({"maxLength": 2}, "abc", "'abc' is longer than 2"),
        ({"minItems": 1}, [], r"\[\] has fewer items than 1"),
        ({"anyOf": [{"type": "string"}]}, 1, "1 is not valid under any of the given schemas"),
        ({"oneOf": [True, True]}, 1, "1 is valid under more than one"),
        ({"not": {}}, 1, "1 is valid under what is not allowed"),
        (False, 1, "1 is not allowed"),
        ({"contains": {"type": "string"}}, [1], "has fewer items than 1 of those"),
        ({"contains": {}, "maxContains": 1}, [1, 2], "has more items than 1 of those"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "'b' is required where 'a' is"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, "'b' is a required property"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "'ab' is longer than 1"),
        ({"prefixItems": [{"type": "string"}]}, [1], r"\$\[0\]: 1 is not of type 'string'"),
        ({"properties": {"a b": {"type": "null"}}}, {"a b": 1}, r"\$\['a b'\]: 1 is not"),
        ({"if": {"type": "object"}, "then": {"required": ["a"]}}, {}, "'a' is a required"),
        ({"maximum": 1}, 10**2000, "a number of very many digits is greater"),
    ],
)
def test_each_keyword_says_what_it_misses(document: object, value: object, reason: str) -> None:
    with pytest.raises(InvalidBody, match=reason):
        schema(document).decode(json.dumps(value).encode())
