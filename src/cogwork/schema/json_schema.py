"""JSON Schema, bounded.

Theory of operation. Whoever may register a schema must not be able to stop a container with it. A
schema can hang whoever follows it in three ways: by patterns that backtrack, by references that
multiply or never end, and by being fetched from elsewhere. So patterns are RE2's, which takes time
in proportion to the text; every keyword that is followed costs steps, and a message has a number of
them in proportion to its size; references stay within the document. `unevaluatedProperties`,
`unevaluatedItems` and dynamic references are refused, for what they cost cannot be counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import re2
import referencing
from jsonschema.exceptions import SchemaError as JsonSchemaError
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft7Validator, Draft202012Validator, extend

from cogwork.schema.errors import InvalidBody, InvalidSchema, shortened
from cogwork.schema.schema import BODY_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ("JsonSchema",)

STEPS_MIN = 10_000
"""Steps that any message has; one more for each of its octets."""

ITEMS_A_STEP = 16
"""As many elements, of a list in the schema or in the message, are a step."""

DEPTH_MAX = 40
"""How deep a schema may be nested."""

FOLLOWED_DEPTH_MAX = 64
"""How many keywords are followed within each other."""

PATTERN_MEMORY_BYTES = 1 << 20

DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
}

REFUSED = (
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
)

_ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)
_MANY = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
)


class _Exhausted(Exception):
    """A message needs more steps than it has."""


class JsonSchema:
    """A JSON Schema (2020-12, or draft 7 where `$schema` says so).

    Args:
        definition: The document.

    Raises:
        InvalidSchema: It is none, or its use could not be bounded.
    """

    content_type = "application/json"

    def __init__(self, definition: bytes) -> None:
        self._steps = 0
        self._depth = 0
        self._patterns: dict[str, Any] = {}
        try:
            document: Any = msgspec.json.decode(definition)
            self._inspect(document, 0)
            draft = _draft_of(document)
            draft.check_schema(document)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidSchema(f"the schema is no JSON: {error}") from error
        except JsonSchemaError as error:
            raise InvalidSchema(shortened(f"no JSON Schema: {error.message}")) from error
        self._validator = self._bounded(draft)(document, registry=referencing.Registry())

    def takes(self, content_type: str) -> bool:
        """Tells whether messages of a content-type can be messages by this schema."""
        kind = content_type.partition(";")[0].strip().lower()
        return kind == self.content_type or kind.endswith("+json")

    def encode(self, value: object) -> bytes:
        """Makes a body."""
        try:
            body = msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidBody(shortened(f"no JSON can be made of it: {error}")) from error
        self.decode(body)
        return body

    def decode(self, body: bytes) -> object:
        """Reads a body."""
        if len(body) > BODY_BYTES_MAX:
            raise InvalidBody(f"{len(body)} octets are more than the {BODY_BYTES_MAX} of a message")
        self._steps = STEPS_MIN + len(body)
        self._depth = 0
        try:
            value: object = msgspec.json.decode(body)
            error = next(self._validator.iter_errors(value), None)
        except msgspec.DecodeError as failure:
            raise InvalidBody(shortened(f"no JSON: {failure}")) from failure
        except RecursionError as failure:
            raise InvalidBody("it is nested too deeply") from failure
        except _Exhausted as failure:
            raise InvalidBody("to check it by its schema takes too long or too deep") from failure
        except (referencing.exceptions.Unresolvable, InvalidSchema) as failure:
            raise InvalidBody(shortened(f"its schema cannot be followed: {failure}")) from failure
        if error is not None:
            raise InvalidBody(shortened(f"{error.json_path}: {error.message}"))
        return value

    # -- what the schema may be

    def _inspect(self, schema: object, depth: int) -> None:
        """Refuses what cannot be bounded, wherever a schema may stand in a schema."""
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"the schema is nested more than {DEPTH_MAX} deep")
        if not isinstance(schema, dict):
            return
        for name in REFUSED:
            if name in schema:
                raise InvalidSchema(f"{name} is not supported: what it costs cannot be bounded")
        reference = schema.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise InvalidSchema(f"$ref {reference!r:.80} leads out of the document")
        if isinstance(pattern := schema.get("pattern"), str):
            self._pattern(pattern)
        if isinstance(patterns := schema.get("patternProperties"), dict):
            for each in patterns:
                self._pattern(each)
        for subschema in _subschemas(schema):
            self._inspect(subschema, depth + 1)

    def _pattern(self, pattern: str) -> Any:  # noqa: ANN401  # re2 has no types
        """Returns the compiled pattern."""
        found = self._patterns.get(pattern)
        if found is None:
            options = re2.Options()
            options.max_mem = PATTERN_MEMORY_BYTES
            options.log_errors = False
            try:
                found = self._patterns[pattern] = re2.compile(pattern, options)
            except re2.error as error:
                raise InvalidSchema(
                    f"pattern {pattern!r:.80} is none of RE2, which has no look-around and no "
                    f"references: {error!s:.80}"
                ) from error
        return found

    # -- how it is followed

    def _bounded(self, draft: Any) -> Any:  # noqa: ANN401  # a class made at run time
        """Returns the draft's validator, in which each keyword costs steps."""
        keywords: dict[str, Any] = dict(draft.VALIDATORS)
        keywords["pattern"] = self._check_pattern
        keywords["patternProperties"] = self._check_pattern_properties
        keywords["additionalProperties"] = self._check_additional_properties
        keywords["uniqueItems"] = _check_unique
        for name in REFUSED:
            keywords[name] = _refuse
        return extend(draft, {name: self._counted(each) for name, each in keywords.items()})

    def _counted(self, keyword: Any) -> Any:  # noqa: ANN401  # a keyword
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:  # noqa: ANN401
            items = len(value) if isinstance(value, list | dict) else 0
            if isinstance(instance, list | dict | str):
                items += len(instance)
            self._spend(items)
            # Counted here, because the library does not survive the interpreter's own limit.
            self._depth += 1
            if self._depth > FOLLOWED_DEPTH_MAX:
                raise _Exhausted
            try:
                yield from keyword(validator, value, instance, schema) or ()
            finally:
                self._depth -= 1

        return check

    def _check_pattern(
        self,
        validator: Any,  # noqa: ANN401, ARG002  # a keyword's signature
        pattern: str,
        instance: object,
        schema: object,  # noqa: ARG002
    ) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not self._finds(pattern, instance):
            yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")

    def _check_pattern_properties(
        self,
        validator: Any,  # noqa: ANN401
        patterns: Mapping[str, object],
        instance: object,
        schema: object,  # noqa: ARG002
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if self._finds(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)

    def _check_additional_properties(
        self,
        validator: Any,  # noqa: ANN401
        subschema: object,
        instance: object,
        schema: Mapping[str, Any],
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name in named or any(self._finds(pattern, name) for pattern in patterns):
                continue
            if subschema is False:
                yield ValidationError(f"there is no property {name!r:.80}")
            else:
                yield from validator.descend(value, subschema, path=name)

    def _finds(self, pattern: str, text: str) -> bool:
        self._spend(len(text))
        return self._pattern(pattern).search(text) is not None

    def _spend(self, items: int) -> None:
        self._steps -= 1 + items // ITEMS_A_STEP
        if self._steps < 0:
            raise _Exhausted


def _draft_of(document: object) -> Any:  # noqa: ANN401  # a class made at run time
    name = document.get("$schema") if isinstance(document, dict) else None
    if name is None:
        return jsonschema.Draft202012Validator
    found = DRAFTS.get(str(name).rstrip("#"))
    if found is None:
        raise InvalidSchema(f"$schema is one of {', '.join(DRAFTS)}, not {name!r:.80}")
    return found


def _subschemas(schema: Mapping[str, Any]) -> Iterator[object]:
    """Yields what stands where a schema is expected."""
    for name in _ONE:
        yield schema.get(name)
    for name in _MANY:
        if isinstance(several := schema.get(name), list):
            yield from several
    for name in _NAMED:
        if isinstance(named := schema.get(name), dict):
            yield from named.values()


def _refuse(validator: object, value: object, instance: object, schema: object) -> None:
    del validator, value, instance, schema
    raise InvalidSchema("it comes to a keyword that is not supported")


def _check_unique(
    validator: object,  # noqa: ARG001  # a keyword's signature
    is_unique: object,
    instance: object,
    schema: object,  # noqa: ARG001
) -> Iterator[ValidationError]:
    """Compares in one pass, where the library may compare each with each."""
    if is_unique and isinstance(instance, list):
        keys = {_key(each) for each in instance}
        if len(keys) < len(instance):
            yield ValidationError("its items are not all different")


def _key(value: object) -> object:
    """Returns what is equal where values are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, list):
        return ("list", *map(_key, value))
    if isinstance(value, dict):
        return ("dict", frozenset((name, _key(each)) for name, each in value.items()))
    if isinstance(value, bool):
        return ("bool", value)
    return value
