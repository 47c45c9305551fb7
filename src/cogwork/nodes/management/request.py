"""Requests and replies of AMQP Management: what is asked stands in the application-properties.

A request has `operation`, mostly `type` and `name`, and what else the operation needs, in the
application-properties or in a body that is a map. Its reply goes to `reply-to`, with `statusCode`
and `statusDescription`, and with the request's correlation-id, or its message-id where it has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.message import Properties, Sections, Value, encode_sections
from cogwork.amqp.types import Described, Int, ULong
from cogwork.dataplane.encoding.codec import encode
from cogwork.plugin.management import BAD_REQUEST, ManagementError

if TYPE_CHECKING:
    from cogwork.amqp.message import MessageId

__all__ = ("Reply", "Request")

_VALUE_SECTION = ULong(0x77)

CONDITIONS = {
    400: Condition.INVALID_FIELD,
    401: Condition.UNAUTHORIZED_ACCESS,
    403: Condition.UNAUTHORIZED_ACCESS,
    404: Condition.NOT_FOUND,
    409: Condition.PRECONDITION_FAILED,
    429: Condition.RESOURCE_LIMIT_EXCEEDED,
    501: Condition.NOT_IMPLEMENTED,
}
"""What a status is among the conditions of AMQP, for `errorCondition`."""

TEXTS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request is answered with.

    Attributes:
        body: The body's one value.
        status: The status code.
        description: For people; None takes the usual text of the status.
        properties: Further application-properties.
    """

    body: object = None
    status: int = 200
    description: str | None = None
    properties: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of_error(cls, error: ManagementError) -> Reply:
        """Make the reply to a request that was not carried out."""
        condition = CONDITIONS.get(error.status, Condition.INTERNAL_ERROR)
        return cls(None, error.status, error.description, {"errorCondition": condition})


class Request:
    """One request.

    Attributes:
        operation: In upper case; empty where it is missing.
        type: The type of entity; empty where it is missing.
        name: The entity's name; empty where it is missing.
        body: The body's value; None where it has none.
        reply_to: Where the reply goes.
        correlation_id: What the reply says to be told from others.
    """

    __slots__ = ("_properties", "body", "correlation_id", "name", "operation", "reply_to", "type")

    def __init__(self, message: Sections) -> None:
        """Read a message.

        Args:
            message: Decoded.
        """
        properties = message.properties or Properties()
        self._properties = message.application_properties or {}
        self.reply_to: str | None = properties.reply_to
        self.correlation_id: MessageId | None = (
            properties.message_id
            if properties.correlation_id is None
            else properties.correlation_id
        )
        self.body = message.body.value if isinstance(message.body, Value) else None
        self.operation = self._word("operation").upper()
        self.type = self._word("type") or self._word("entityType")
        self.name = self._word("name") or self._word("identity")

    def _word(self, key: str) -> str:
        value = self._properties.get(key)
        return value if isinstance(value, str) else ""

    def _get(self, key: str) -> object:
        value = self._properties.get(key)
        if value is None and isinstance(self.body, dict):
            value = self.body.get(key)
        return value

    def text(self, key: str) -> str:
        """Return a string that the operation needs.

        Raises:
            ManagementError: It is missing, or none.
        """
        value = self._get(key)
        if not isinstance(value, str) or not value:
            found = "missing" if value is None else repr(value)
            raise ManagementError(
                BAD_REQUEST, f"{self.operation} needs {key}, a string; it is {found:.80}"
            )
        return str(value)

    def number(self, key: str, default: int, least: int = 0) -> int:
        """Return a whole number that may be left out.

        Raises:
            ManagementError: It is none, or below `least`.
        """
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ManagementError(
                BAD_REQUEST, f"{key} is a whole number from {least}, not {value!r:.80}"
            )
        return int(value)

    def names(self, key: str) -> list[str]:
        """Return a list of strings that may be left out.

        Raises:
            ManagementError: It is none.
        """
        value = self._get(key)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
            raise ManagementError(BAD_REQUEST, f"{key} is a list of strings, not {value!r:.80}")
        return [str(each) for each in value]

    def required_name(self) -> str:
        """Return the entity's name.

        Raises:
            ManagementError: It is missing.
        """
        if not self.name:
            raise ManagementError(
                BAD_REQUEST,
                f"{self.operation} needs the application-property name: which {self.type}?",
            )
        return self.name

    def attributes(self) -> dict[str, object]:
        """Return the body as the attributes of an entity.

        Raises:
            ManagementError: It is no map with strings for keys.
        """
        if self.body is None:
            return {}
        if not isinstance(self.body, dict) or not all(isinstance(key, str) for key in self.body):
            raise ManagementError(
                BAD_REQUEST, f"{self.operation} needs a map of attributes as its body"
            )
        return {str(key): value for key, value in self.body.items()}

    def answer(self, reply: Reply) -> bytes:
        """Encode the message that answers this request."""
        head = Sections(
            properties=Properties(correlation_id=self.correlation_id),
            application_properties={
                "statusCode": Int(reply.status),
                "statusDescription": reply.description or TEXTS.get(reply.status, ""),
                **reply.properties,
            },
        )
        return encode_sections(head) + encode(Described(_VALUE_SECTION, reply.body))
