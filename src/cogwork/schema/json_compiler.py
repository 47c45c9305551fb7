"""From a JSON Schema to functions that check by it.

Theory of operation. Whoever may register a schema must not be able to stop a container with it. So
all of a document is looked at before it is used: what is no JSON Schema, what leads out of the
document, what has a cost that cannot be counted is refused. Each schema in it becomes a function,
once, wherever references to it come from. A message has steps in proportion to its size; each
function takes some, and those that call others count how deep they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.json_applicators import APPLICATORS, DRAFT_7_APPLICATORS, Making, Table
from cogwork.schema.json_keywords import ANNOTATIONS, KEYWORDS, make_keyword
from cogwork.schema.json_pattern import Pattern
from cogwork.schema.json_run import DEPTH_MAX, Check, Exhausted, Failure, Run, shown

if TYPE_CHECKING:
    from cogwork.schema.json_applicators import Maker

__all__ = ("SCHEMA_DEPTH_MAX", "compile_document", "is_draft_7")

SCHEMA_DEPTH_MAX = 40
"""How deep a schema may be nested."""

PATTERNS_MAX = 200
PATTERNS_SIZE_MAX = 200_000
"""Regular expressions of a schema, and their instructions: some megabytes of memory."""

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": False,
    "http://json-schema.org/draft-07/schema": True,
}
"""Which there are, and whether each is draft 7."""

OF_DOCUMENTS = ("$id", "$schema")
"""What says where references lead, and by which rules: for all of a document."""

REFUSED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")

_DEFINITIONS = ("$defs", "definitions")

_NOT_OF_DRAFT_7 = frozenset({"dependentRequired"})


def is_draft_7(document: object) -> bool:
    """Return whether a document says that it is of draft 7, and not of 2020-12.

    Raises:
        InvalidSchema: It says that it is something else.
    """
    name = document.get("$schema") if isinstance(document, dict) else None
    if name is None:
        return False
    found = DIALECTS.get(str(name).rstrip("#"))
    if found is None:
        raise InvalidSchema(f"$schema is one of {', '.join(DIALECTS)}, not {name!r:.80}")
    return found


def compile_document(document: object) -> Check:
    """Make the check of a document.

    Args:
        document: As decoded from JSON.

    Raises:
        InvalidSchema: It is no JSON Schema, or its use could not be bounded.
    """
    return _Compiler(document).compile()


class _Compiler:
    def __init__(self, document: object) -> None:
        self._document = document
        self._is_draft_7 = is_draft_7(document)
        self._applicators: dict[str, Maker] = (
            DRAFT_7_APPLICATORS if self._is_draft_7 else APPLICATORS
        )
        self._made: dict[int, Check] = {}
        self._targets: dict[str, list[Check]] = {}
        self._patterns: dict[str, Pattern] = {}
        self._patterns_size = 0
        self._depth = 0
        self._making = Making(self._check_of, self._reference, self._pattern)
        self._anchors: dict[str, object] = {}

    def compile(self) -> Check:
        found = self._check_of(self._document)
        waiting = [name for name, cell in self._targets.items() if not cell]
        while waiting:
            for name in waiting:
                target = self._resolved(name)
                self._depth = 0
                self._targets[name].append(self._check_of(target))
            waiting = [name for name, cell in self._targets.items() if not cell]
        return found

    # -- schemas

    def _check_of(self, schema: object) -> Check:
        if schema is True:
            return _accept
        if schema is False:
            return _refuse
        if not isinstance(schema, dict):
            raise InvalidSchema(f"a schema is an object or a boolean, not {shown(schema)}")
        made = self._made.get(id(schema))
        if made is None:
            self._depth += 1
            if self._depth > SCHEMA_DEPTH_MAX:
                raise InvalidSchema(f"the schema is nested more than {SCHEMA_DEPTH_MAX} deep")
            made = self._made[id(schema)] = self._make(schema)
            self._depth -= 1
        return made

    def _make(self, schema: Table) -> Check:
        self._look_at(schema)
        is_reference = self._is_draft_7 and "$ref" in schema
        rules = {"$ref": schema["$ref"]} if is_reference else schema
        flat = [
            check
            for name in KEYWORDS
            if name in rules and not (self._is_draft_7 and name in _NOT_OF_DRAFT_7)
            if (check := self._keyword(name, rules)) is not None
        ]
        deep = [
            check
            for name in self._applicators
            if name in rules and (check := self._applicator(name, rules)) is not None
        ]
        if deep:
            return _deep(flat + deep)
        return _flat(flat) if flat else _accept

    def _keyword(self, name: str, schema: Table) -> Check | None:
        try:
            return make_keyword(name, schema[name], self._pattern)
        except InvalidSchema as error:
            raise _placed(name, error) from error

    def _applicator(self, name: str, schema: Table) -> Check | None:
        try:
            return self._applicators[name](schema, self._making)
        except InvalidSchema as error:
            raise _placed(name, error) from error

    def _look_at(self, schema: Table) -> None:
        """Look at what makes no check.

        Raises:
            InvalidSchema: It is wrong, or refused.
        """
        for name in REFUSED:
            if name in schema:
                raise InvalidSchema(f"{name} is not supported: what it costs cannot be bounded")
        for name in OF_DOCUMENTS:
            if name in schema and schema is not self._document:
                raise InvalidSchema(f"{name} within the schema is not supported")
        for name, kind in ANNOTATIONS.items():
            if name in schema and not isinstance(schema[name], kind):
                raise _placed(name, InvalidSchema(f"{shown(schema[name])} is not what it takes"))
        if "$anchor" in schema and not self._is_draft_7:
            self._anchors[schema["$anchor"]] = schema
        for name in _DEFINITIONS:
            if name in schema:
                self._define(name, schema[name])

    def _define(self, name: str, rule: object) -> None:
        try:
            self._making.named(rule)
        except InvalidSchema as error:
            raise _placed(name, error) from error

    # -- what schemas have in common

    def _pattern(self, source: str) -> Pattern:
        found = self._patterns.get(source)
        if found is None:
            found = self._patterns[source] = Pattern(source)
            self._patterns_size += found.size
            if len(self._patterns) > PATTERNS_MAX or self._patterns_size > PATTERNS_SIZE_MAX:
                raise InvalidSchema("its patterns are too many, or too large")
        return found

    def _reference(self, name: str) -> Check:
        if not name.startswith("#"):
            raise InvalidSchema(f"{name!r:.80} leads out of the document")
        return _follow(self._targets.setdefault(name, []))

    def _resolved(self, name: str) -> object:
        """Find what a reference leads to.

        Raises:
            InvalidSchema: It leads nowhere.
        """
        pointer = unquote(name[1:])
        if pointer and not pointer.startswith("/"):
            if pointer in self._anchors:
                return self._anchors[pointer]
            raise InvalidSchema(f"$ref {name!r:.80} leads nowhere")
        found: Any = self._document
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise InvalidSchema(f"$ref {name!r:.80} leads nowhere")
        return found


def _placed(name: str, error: InvalidSchema) -> InvalidSchema:
    return InvalidSchema(f"{name}: {error}")


# -- functions that are made of others


def _accept(_value: object, run: Run) -> Failure | None:
    run.steps -= 1
    return None


def _refuse(value: object, run: Run) -> Failure | None:
    run.steps -= 1
    return Failure(lambda value, _: f"{value} is not allowed", value, None)


def _flat(checks: list[Check]) -> Check:
    """Make the check of a schema that leads to no other."""
    cost = len(checks) + 1

    def check(value: object, run: Run) -> Failure | None:
        run.steps -= cost
        if run.steps < 0:
            raise Exhausted
        for each in checks:
            failure = each(value, run)
            if failure is not None:
                return failure
        return None

    return check


def _deep(checks: list[Check]) -> Check:
    """Make the check of one that does."""
    cost = 2 * len(checks) + 1

    def check(value: object, run: Run) -> Failure | None:
        run.steps -= cost
        run.depth += 1
        if run.steps < 0 or run.depth > DEPTH_MAX:
            raise Exhausted
        for each in checks:
            failure = each(value, run)
            if failure is not None:
                run.depth -= 1
                return failure
        run.depth -= 1
        return None

    return check


def _follow(cell: list[Check]) -> Check:
    """Make the check of a reference, whose target is put into the cell later."""

    def check(value: object, run: Run) -> Failure | None:
        return cell[0](value, run)

    return check
