"""What is asked of a service: encoded before anything is waited for, and the message that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import EncodeError
from cogwork.client.checks import demand_seconds
from cogwork.client.rpc.codec import unserialisable
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.client.rpc.codec import Codec

__all__ = ("Request",)


class Request:
    """What is to be asked of whom.

    Attributes:
        address: Whom.
        method: What is to be run.
        body: The arguments, encoded.
        arguments: The arguments.
        codec: What encoded them.
        timeout_s: How long it may take.
        properties: Application-properties; None for none.
        topic: Of which any server is asked; None where a certain one is.
        exchange: The second level of the topic's address; None for the usual one.
    """

    __slots__ = (
        "address",
        "arguments",
        "body",
        "codec",
        "exchange",
        "method",
        "properties",
        "timeout_s",
        "topic",
    )

    def __init__(
        self,
        address: str,
        method: str,
        *,
        arguments: Mapping[str, object],
        codec: Codec,
        timeout_s: float,
        properties: dict[str, object] | None = None,
        topic: str | None = None,
        exchange: str | None = None,
    ) -> None:
        """Encodes the arguments.

        Raises:
            Unserialisable: One of them cannot be carried.
            ValueError: There is no time for it.
        """
        demand_seconds("timeout_s", timeout_s)
        if timeout_s <= 0:
            raise ValueError(f"timeout: more than 0 s are expected, not {timeout_s!r:.80}")
        self.address = address
        self.method = method
        self.arguments = arguments
        self.codec = codec
        self.timeout_s = timeout_s
        self.properties = properties
        self.topic = topic
        self.exchange = exchange
        try:
            self.body = codec.encode(arguments)
        except Exception as error:
            raise unserialisable(arguments, self._carry, error) from error

    def _carry(self, value: object) -> None:
        Message(self.codec.encode(value)).encode()

    def message(self, number: int | None, reply_to: str | None, ttl_s: float | None) -> Message:
        """Returns the message that asks."""
        return Message(
            self.body,
            subject=self.method,
            to=self.address,
            message_id=number,
            reply_to=reply_to,
            content_type=self.codec.content_type,
            properties=self.properties,
            ttl_s=ttl_s,
        )

    def refusal(self, error: Exception) -> Exception:
        """Returns the exception for a message that could not be encoded."""
        if isinstance(error, EncodeError):
            return unserialisable(self.arguments, self._carry, error)
        return error
