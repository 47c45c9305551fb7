"""What becomes of a message at an address that is held to its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, CogworkError, Condition
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Symbol
from cogwork.container.schemas.guards import ENFORCE
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.schema import InvalidBody, InvalidSchema
from cogwork.schema.bodies import content_of
from cogwork.schema.errors import TooCostly
from cogwork.schema.registry import decode

if TYPE_CHECKING:
    from cogwork.schema.version import Version

__all__ = ("SCHEMA_MISMATCH", "SCHEMA_MISSING", "SCHEMA_UNUSABLE", "failed", "judge")

SCHEMA_MISMATCH = Symbol("cogwork:schema-mismatch")
SCHEMA_MISSING = Symbol("cogwork:schema-missing")
SCHEMA_UNUSABLE = Symbol("cogwork:schema-unusable")


def judge(
    version: Version | None, policy: int, address: str, data: bytes, steps_max: int | None = None
) -> bytes | None:
    """Decide over a message.

    Args:
        version: The schema of its address; None where there is none.
        policy: What `[[schema]]` says of the address.
        address: Where it goes.
        data: The message, encoded.
        steps_max: What it may cost; None is all that a message of its size has.

    Returns:
        None where it may pass, else its outcome, encoded.

    Raises:
        TooCostly: It needs more than `steps_max`, or its schema is still to be compiled.
    """
    if version is None:
        if policy != ENFORCE:
            return None
        return _rejected(SCHEMA_MISSING, f"no schema is registered for {address:.200}")
    event = version.event
    facts: dict[str, object] = {"schema": event.address, "version": event.version}
    if steps_max is not None and not version.is_compiled:
        raise TooCostly("the schema is to be compiled")
    try:
        content_type, body = content_of(Message.decode(data))
        decode(version.schema(), content_type, body, steps_max)
    except InvalidBody as invalid:
        if invalid.path:
            facts["path"] = invalid.path
        return _rejected(SCHEMA_MISMATCH, str(invalid), facts)
    except InvalidSchema as error:
        text = f"the schema of {address:.80} cannot be used here: {error}"
        return _rejected(SCHEMA_UNUSABLE, text, facts)
    except TooCostly:
        raise
    except CogworkError as error:
        return _rejected(Condition.DECODE_ERROR, f"it is no message: {error}"[:300])
    return None


def failed(error: BaseException) -> bytes:
    """Return the outcome of a message over which nobody could decide."""
    return _rejected(Condition.INTERNAL_ERROR, f"the message could not be checked: {error!r:.200}")


def _rejected(condition: Symbol, description: str, facts: dict[str, object] | None = None) -> bytes:
    info = {Symbol(key): value for key, value in facts.items()} if facts else None
    error = AmqpError(condition=condition, description=description, info=info)
    return encode(Rejected(error=error).to_described())
