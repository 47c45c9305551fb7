"""JSON Schema, held to the library `jsonschema`; and that compatible schemas are."""

import json
from typing import Any

import jsonschema
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cogwork.schema import InvalidBody, Registry
from cogwork.schema.json_applicators import APPLICATORS, DRAFT_7_APPLICATORS
from cogwork.schema.json_compatibility import _RULES, LOWER, UNCHANGED, UPPER, why_not_covered
from cogwork.schema.json_keywords import KEYWORDS
from cogwork.schema.json_schema import JsonSchema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
Document = bool | dict[str, Any]

names = st.sampled_from(["a", "b", "x-a"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 10**20, 1e20, 2**60, 2.0**60, 2**60 + 1])
    | st.sampled_from(["", "a", "ab", "x-a", "ü"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
small = st.integers(0, 3)
kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
leaves = st.one_of(
    st.booleans(),
    st.just({}),
    st.fixed_dictionaries({"type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True)}),
    st.fixed_dictionaries({}, optional={"minimum": small, "exclusiveMaximum": small}),
    st.fixed_dictionaries({}, optional={"maximum": small, "exclusiveMinimum": small}),
    st.fixed_dictionaries({"multipleOf": st.integers(1, 3)}),
    st.fixed_dictionaries({}, optional={"maxLength": small, "minLength": small}),
    st.fixed_dictionaries({}, optional={"maxItems": small, "minItems": small}),
    st.fixed_dictionaries({}, optional={"maxProperties": small, "minProperties": small}),
    st.fixed_dictionaries({"pattern": st.sampled_from(["^a", "b$", "x", "^.$"])}),
    st.fixed_dictionaries({"uniqueItems": st.booleans()}),
    st.fixed_dictionaries({"required": st.lists(names, max_size=2, unique=True)}),
    st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=4)}),
    st.fixed_dictionaries({"const": values}),
    st.sampled_from([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}]),
)


def applied(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"allOf": several}),
        st.fixed_dictionaries({"anyOf": several}),
        st.fixed_dictionaries({"oneOf": several}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"items": inner}, optional={"minItems": small}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(names, inner, max_size=2)},
            optional={
                "additionalProperties": inner,
                "required": st.lists(names, max_size=2, unique=True),
                "type": st.just("object"),
                "patternProperties": st.fixed_dictionaries({"^x-": inner}),
            },
        ),
        st.fixed_dictionaries({"propertyNames": inner}),
    )


def applied_now(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        applied(inner),
        st.fixed_dictionaries({"prefixItems": several}, optional={"items": inner}),
        st.fixed_dictionaries(
            {"contains": inner}, optional={"minContains": small, "maxContains": small}
        ),
        st.fixed_dictionaries({"dependentSchemas": st.dictionaries(names, inner, max_size=2)}),
        st.fixed_dictionaries(
            {"dependentRequired": st.dictionaries(names, st.just(["a"]), max_size=2)}
        ),
    )


def applied_then(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        applied(inner),
        st.fixed_dictionaries({"items": several}, optional={"additionalItems": inner}),
        st.fixed_dictionaries({"contains": inner}, optional={"minContains": small}),
        st.fixed_dictionaries(
            {"dependencies": st.dictionaries(names, inner | st.just(["a"]), max_size=2)}
        ),
        st.fixed_dictionaries({"$ref": st.just("#/$defs/one"), "type": kinds}),
    )


def documents(schemas: st.SearchStrategy[Document]) -> st.SearchStrategy[dict[str, Any]]:
    """Schema with two definitions, of which the second may refer to itself."""
    return st.tuples(schemas, leaves, schemas).map(
        lambda parts: {"allOf": [parts[0]], "$defs": {"one": _plain(parts[1]), "two": parts[2]}}
    )


def _plain(schema: Document) -> Document:
    return {} if isinstance(schema, dict) and "$ref" in schema else schema


now = documents(st.recursive(leaves, applied_now, max_leaves=6))
then = documents(st.recursive(leaves, applied_then, max_leaves=6))


def takes(document: Document, value: object) -> bool:
    try:
        JsonSchema(json.dumps(document).encode()).decode(json.dumps(value).encode())
    except InvalidBody:
        return False
    return True


def judged(document: Document, value: object) -> bool:
    """What the library says; a schema without an end is none that it can follow."""
    is_old = isinstance(document, dict) and document.get("$schema") == DRAFT_7
    kind = jsonschema.Draft7Validator if is_old else jsonschema.Draft202012Validator
    kind.check_schema(document)
    try:
        return bool(kind(document).is_valid(value))
    except RecursionError:
        assume(False)
        raise


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(now, values)
def test_it_says_what_the_library_says(document: dict[str, Any], value: object) -> None:
    assert takes(document, value) == judged(document, value)


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(then, values)
def test_so_it_does_of_draft_7(document: dict[str, Any], value: object) -> None:
    document = {"$schema": DRAFT_7, **document}
    assert takes(document, value) == judged(document, value)


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(now, st.lists(values, min_size=1, max_size=5))
def test_a_registry_says_it_too(document: dict[str, Any], several: list[object]) -> None:
    registry = Registry()
    registry.apply(registry.register("topic/a.#", "json", json.dumps(document).encode()))
    for value in several:
        reason = registry.check("topic/a.b", "application/json", json.dumps(value).encode())
        assert (reason is None) == judged(document, value), reason


# -- compatibility

ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs")


def tables_in(document: object) -> list[dict[str, Any]]:
    """List the schemas in a schema that have keywords, itself first."""
    if not isinstance(document, dict):
        return []
    parts = [document[name] for name in ONE if name in document]
    parts += [part for name in MANY for part in document.get(name, ())]
    parts += [part for name in NAMED for part in document.get(name, {}).values()]
    return [document, *(table for part in parts for table in tables_in(part))]


keywords = st.one_of(leaves, applied_now(leaves)).filter(lambda each: isinstance(each, dict))


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema, and one that was made of it by a few changes."""
    old = draw(now)
    new: dict[str, Any] = json.loads(json.dumps(old))
    for _ in range(draw(st.integers(1, 2))):
        table = draw(st.sampled_from(tables_in(new)))
        change = json.loads(json.dumps(draw(keywords)))  # what is drawn belongs to the strategy
        if draw(st.booleans()) and set(table) - {"$defs"}:
            del table[draw(st.sampled_from(sorted(set(table) - {"$defs"})))]
        for name, rule in change.items() if isinstance(change, dict) else ():
            if draw(st.booleans()):
                table[name] = rule
    return old, new


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(edits(), st.lists(values, min_size=20, max_size=20))
def test_what_is_called_compatible_is(
    pair: tuple[dict[str, Any], dict[str, Any]], several: list[object]
) -> None:
    old, new = pair
    if why_not_covered(new, old) is not None:
        return
    before, after = (JsonSchema(json.dumps(each).encode()) for each in (old, new))
    for value in several:
        body = json.dumps(value).encode()
        try:
            before.decode(body)
        except InvalidBody:
            continue
        after.decode(body)


def test_every_keyword_is_compared() -> None:
    compared = {*_RULES, *UNCHANGED, *UPPER, *LOWER}
    assert {*KEYWORDS, *APPLICATORS, *DRAFT_7_APPLICATORS} <= compared
