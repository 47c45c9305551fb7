"""Whether a JSON Schema takes every message that an older one takes.

Theory of operation. In general that cannot be decided, so what is looked for is a proof: each
keyword of the new schema must follow from the old one. Where no proof is found the answer is no,
with the place, although the schemas may be compatible. References are followed in pairs, and a pair
that is being proved is taken to hold: a message has an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.schema.json_keywords import TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    Table = Mapping[str, Any]

__all__ = ("why_not_covered",)

STEPS_MAX = 20_000
"""A comparison that takes more is given up: then the answer is no."""

UNCHANGED = frozenset(
    {
        *("additionalItems", "dependencies", "dependentRequired", "dependentSchemas"),
        *("exclusiveMaximum", "exclusiveMinimum", "maxContains", "minContains", "multipleOf"),
        *("not", "oneOf", "pattern", "patternProperties", "prefixItems", "propertyNames"),
    }
)
"""Keywords that must be what they were."""

UPPER = {"maximum": "exclusiveMaximum", "maxItems": "", "maxLength": "", "maxProperties": ""}
LOWER = {"minimum": "exclusiveMinimum", "minItems": "", "minLength": "", "minProperties": ""}


def why_not_covered(new: object, old: object) -> str | None:
    """Return why a schema may not take every message that an older one takes; None where it does.

    Args:
        new: The document of the new schema, one that can be followed.
        old: That of the old one.
    """
    dialects = [each.get("$schema", "") for each in (_table(new), _table(old))]
    if dialects[0] != dialects[1]:
        return "$: $schema is not what it was"
    try:
        _Proof(new, old, is_draft_7="draft-07" in dialects[0]).cover(new, old, "$")
    except _Unproved as missing:
        return str(missing)
    except (RecursionError, OverflowError):
        return "$: the schemas are too much to be compared"
    return None


class _Unproved(Exception):
    """The proof fails; the text says where."""


class _Proof:
    def __init__(self, new_root: object, old_root: object, *, is_draft_7: bool) -> None:
        self._new_root = new_root
        self._old_root = old_root
        self._is_draft_7 = is_draft_7
        self._assumed: dict[tuple[int, int], None] = {}
        self._steps = STEPS_MAX

    def cover(self, new: object, old: object, path: str) -> None:
        """Prove that `new` takes what `old` takes.

        Raises:
            _Unproved: It may not.
        """
        self._steps -= 1
        if self._steps < 0:
            raise _Unproved(f"{path}: the schemas are too large to be compared")
        if new is True or new == {} or old is False:
            return
        if new is False:
            raise _Unproved(f"{path}: nothing is taken any more")
        pair = (id(new), id(old))
        if pair in self._assumed:
            return
        proved = len(self._assumed)
        self._assumed[pair] = None
        parts = self._parts_of(old, self._old_root)
        try:
            self._cover(self._parts_of(new, self._new_root), parts, path)
        except _Unproved:
            self._forget(proved)
            if not self._by_parts(new, parts, path):
                raise

    def _forget(self, proved: int) -> None:
        """Take back what was proved with the help of what turned out wrong."""
        while len(self._assumed) > proved:
            self._assumed.popitem()

    def _parts_of(self, schema: object, root: object) -> Table:
        """Return a schema's keywords.

        Raises:
            _Unproved: References in it do not lead where they seem to.
        """
        table = _table(schema)
        if "$id" in table and schema is not root:
            raise _Unproved("$: schemas with an $id of their own are not compared")
        if self._is_draft_7 and "$ref" in table:
            return {"$ref": table["$ref"]}
        return table

    def _by_parts(self, new: object, old: Table, path: str) -> bool:
        """Try what the old schema is made of: a reference, all of some, or one of several."""
        if "$ref" in old:
            target = _resolved(self._old_root, old["$ref"])
            if self._holds(new, target, path):
                return True
        if any(self._holds(new, each, path) for each in old.get("allOf", ())):
            return True
        return any(
            bool(old.get(name)) and all(self._holds(new, each, path) for each in old[name])
            for name in ("anyOf", "oneOf")
        )

    def _holds(self, new: object, old: object, path: str) -> bool:
        proved = len(self._assumed)
        try:
            self.cover(new, old, path)
        except _Unproved:
            self._forget(proved)
            return False
        return True

    def _cover(self, new: Table, old: Table, path: str) -> None:
        for name, value in new.items():
            if name in _RULES:
                _RULES[name](self, new, old, path)
            elif name in UNCHANGED:
                _same(name, new, old, path)
            elif name in UPPER:
                _bound(name, UPPER[name], value, old, path, is_upper=True)
            elif name in LOWER:
                _bound(name, LOWER[name], value, old, path, is_upper=False)

    # -- keyword by keyword: what of the old schema makes that of the new one hold

    def _reference(self, new: Table, old: Table, path: str) -> None:
        self.cover(_resolved(self._new_root, new["$ref"]), old, path)

    def _type(self, new: Table, old: Table, path: str) -> None:
        types = _listed(new["type"])
        if (values := _values(old)) is not None:
            if all(any(TYPES[kind](value) for kind in types) for value in values):
                return
        elif "type" in old:
            wide = {*types, "integer"} if "number" in types else set(types)
            if wide >= set(_listed(old["type"])):
                return
        raise _Unproved(f"{path}: it was not always of type {' or '.join(types)}")

    def _enum(self, new: Table, old: Table, path: str) -> None:
        _one_of(new["enum"], old, path)

    def _const(self, new: Table, old: Table, path: str) -> None:
        _one_of([new["const"]], old, path)

    def _required(self, new: Table, old: Table, path: str) -> None:
        for name in new["required"]:
            if name not in old.get("required", ()):
                raise _Unproved(f"{path}: {name!r:.80} was not required before")

    def _properties(self, new: Table, old: Table, path: str) -> None:
        before, others = old.get("properties", {}), old.get("additionalProperties", True)
        if old.get("patternProperties"):
            others = True
        for name, schema in new["properties"].items():
            self.cover(schema, before.get(name, others), f"{path}.{name}")

    def _additional_properties(self, new: Table, old: Table, path: str) -> None:
        _same("patternProperties", new, old, path)
        rule = new["additionalProperties"]
        for name, schema in old.get("properties", {}).items():
            if name not in new.get("properties", {}):
                self.cover(rule, schema, f"{path}.{name}")
        self.cover(rule, old.get("additionalProperties", True), f"{path}.*")

    def _items(self, new: Table, old: Table, path: str) -> None:
        _same("prefixItems", new, old, path)
        if isinstance(new["items"], list) or isinstance(old.get("items"), list):
            _same("items", new, old, path)
            _same("additionalItems", new, old, path)
        else:
            self.cover(new["items"], old.get("items", True), f"{path}[]")

    def _contains(self, new: Table, old: Table, path: str) -> None:
        for name in ("contains", "minContains", "maxContains"):
            _same(name, new, old, path)

    def _unique_items(self, new: Table, old: Table, path: str) -> None:
        if new["uniqueItems"] and not old.get("uniqueItems"):
            raise _Unproved(f"{path}: its items did not have to be different")

    def _all_of(self, new: Table, old: Table, path: str) -> None:
        for schema in new["allOf"]:
            self.cover(schema, old, path)

    def _any_of(self, new: Table, old: Table, path: str) -> None:
        if not any(self._holds(schema, old, path) for schema in new["anyOf"]):
            raise _Unproved(f"{path}: none of anyOf takes all that was taken")

    def _condition(self, new: Table, old: Table, path: str) -> None:
        for name in ("if", "then", "else"):
            _same(name, new, old, path)


_RULES = {
    "$ref": _Proof._reference,
    "type": _Proof._type,
    "enum": _Proof._enum,
    "const": _Proof._const,
    "required": _Proof._required,
    "properties": _Proof._properties,
    "additionalProperties": _Proof._additional_properties,
    "items": _Proof._items,
    "contains": _Proof._contains,
    "uniqueItems": _Proof._unique_items,
    "allOf": _Proof._all_of,
    "anyOf": _Proof._any_of,
    "if": _Proof._condition,
}


def _same(name: str, new: Table, old: Table, path: str) -> None:
    """Prove that a keyword is what it was; what references lead to may have changed.

    Raises:
        _Unproved: It may not be.
    """
    if name in new or name in old:
        if name not in new or name not in old or not _is_equal(new[name], old[name]):
            raise _Unproved(f"{path}: {name} is not what it was")
        if _refers(new[name]):
            raise _Unproved(f"{path}: {name} holds references, and is not compared")


def _one_of(values: list[Any], old: Table, path: str) -> None:
    """Prove that all that was taken is listed.

    Raises:
        _Unproved: It may not be.
    """
    before = _values(old)
    if before is None or not all(any(_is_equal(a, b) for b in values) for a in before):
        raise _Unproved(f"{path}: it was not always one of {values!r:.80}")


def _bound(
    name: str, exclusive: str, limit: float, old: Table, path: str, *, is_upper: bool
) -> None:
    """Prove that a bound is no closer than the old one.

    Raises:
        _Unproved: It may be.
    """
    before = [old[key] for key in (name, exclusive) if key in old]
    if any(each <= limit if is_upper else each >= limit for each in before):
        return
    if is_upper or limit != 0 or name == "minimum":
        raise _Unproved(f"{path}: {name} is closer than it was")


def _table(schema: object) -> Table:
    if schema is False:
        return {"not": {}}
    return schema if isinstance(schema, dict) else {}


def _values(schema: Table) -> list[Any] | None:
    """Return all that a schema takes, where it lists that."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _is_equal(one: object, other: object) -> bool:
    """Return whether values are equal in JSON, where true is not 1."""
    return one == other and _booleans(one) == _booleans(other)


def _booleans(value: object) -> object:
    """Write down where a value holds booleans."""
    if isinstance(value, list):
        return [_booleans(each) for each in value]
    if isinstance(value, dict):
        return {name: _booleans(each) for name, each in value.items()}
    return isinstance(value, bool)


def _refers(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_refers, value))
    if isinstance(value, dict):
        return "$ref" in value or any(map(_refers, value.values()))
    return False


def _resolved(root: object, reference: str) -> object:
    """Follow a reference within the document.

    Raises:
        _Unproved: It is no JSON pointer, or leads nowhere.
    """
    found: Any = root
    if reference == "#":
        return found
    if not reference.startswith("#/"):
        raise _Unproved(f"$: the reference {reference!r:.80} is not compared")
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise _Unproved(f"$: the reference {reference!r:.80} leads nowhere")
    return found
