"""JSON Schema: 2020-12, or draft 7 where `$schema` says so; bounded, whatever it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.schema.errors import InvalidBody, InvalidSchema, TooCostly, shortened
from cogwork.schema.json_compatibility import why_not_covered
from cogwork.schema.json_compiler import compile_document
from cogwork.schema.json_run import Exhausted, Run
from cogwork.schema.schema import BODY_BYTES_MAX

if TYPE_CHECKING:
    from cogwork.schema.schema import Schema

__all__ = ("JsonSchema",)


class JsonSchema:
    """A JSON Schema. It does not change: several threads may use it.

    Args:
        definition: The document.

    Raises:
        InvalidSchema: It is none, or its use could not be bounded.
    """

    content_type = "application/json"

    def __init__(self, definition: bytes) -> None:
        try:
            self._document: object = msgspec.json.decode(definition)
            self._check = compile_document(self._document)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidSchema(shortened(f"the schema is no JSON: {error}")) from error
        except InvalidSchema as error:
            raise InvalidSchema(shortened(f"no JSON Schema: {error}")) from error
        except ValueError as error:
            raise InvalidSchema(shortened(f"the schema is no JSON: {error}")) from error

    def takes(self, content_type: str) -> bool:
        """Return whether messages of a content-type can be messages by this schema."""
        kind = content_type.partition(";")[0].strip().lower()
        return kind == self.content_type or kind.endswith("+json")

    def encode(self, value: object) -> bytes:
        """Make a body."""
        try:
            body = msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidBody(f"no JSON can be made of it: {error}") from error
        self.decode(body)
        return body

    def decode(self, body: bytes, steps_max: int | None = None) -> object:
        """Read a body."""
        if len(body) > BODY_BYTES_MAX:
            raise InvalidBody(f"{len(body)} octets are more than the {BODY_BYTES_MAX} of a message")
        run = Run.of(len(body))
        is_short = steps_max is not None and steps_max < run.steps
        if is_short:
            run.steps = steps_max or 0
        try:
            value: object = msgspec.json.decode(body)
            failure = self._check(value, run)
        except msgspec.DecodeError as error:
            raise InvalidBody(f"no JSON: {error}") from error
        except RecursionError as error:
            raise InvalidBody("it is nested too deeply") from error
        except Exhausted as error:
            if is_short and run.steps < 0:
                raise TooCostly from error
            raise InvalidBody("to check it by its schema takes too long or too deep") from error
        except ValueError as error:
            raise InvalidBody(f"no JSON: {error}") from error
        if failure is not None:
            raise InvalidBody(failure.reason, failure.place)
        return value

    def why_not_after(self, older: Schema) -> str | None:
        """Tell why it may not take each message that an older schema takes; None where it does."""
        if not isinstance(older, JsonSchema):
            return "the version before is no JSON Schema"
        return why_not_covered(self._document, older._document)
