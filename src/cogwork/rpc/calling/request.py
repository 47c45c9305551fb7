"""What is asked of a service, and the message that asks.

Arguments are encoded before anything is waited for, so that what cannot be carried is refused at
once. Large ones wait until it is known how much the container takes: what is too large is refused
without being encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, EncodeError
from cogwork.client.checks import demand_seconds
from cogwork.dataplane.client.posting_errors import MessageTooLarge
from cogwork.dataplane.encoding.extent import exceeds
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.codec import unserialisable
from cogwork.rpc.errors import NoSuchMethod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.rpc.codec import Codec

__all__ = ("RESERVED", "Request", "demand_fitting")

RESERVED = "$"
"""What the names of no methods begin with."""

EAGER_BYTES_MAX = 64 * 1024
"""Arguments that may be larger are encoded only when it is known how much is carried."""


def demand_fitting(value: object, size_bytes_max: int) -> None:
    """Refuse what is too large to be carried, without encoding it.

    Args:
        value: The arguments, or a result.
        size_bytes_max: How large a message may be; 0 for any size.

    Raises:
        MessageTooLarge: The value alone is larger.
    """
    if size_bytes_max and exceeds(value, size_bytes_max):
        text = f"more than {size_bytes_max} bytes; at most {size_bytes_max} are taken"
        raise MessageTooLarge(text)


class Request:
    """What is to be asked of whom.

    Attributes:
        address: Whom.
        method: What is to be run.
        arguments: The arguments.
        codec: What encoded them.
        timeout_s: How long it may take.
        properties: Application-properties; None for none.
        topic: Of which any server is asked; None where a certain one is.
        exchange: The second level of the topic's address; None for the usual one.
    """

    __slots__ = (
        "_body",
        "_is_encoded",
        "address",
        "arguments",
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
        """Encode the arguments, unless they are large.

        Raises:
            NoSuchMethod: The name is a reserved one.
            Unserialisable: An argument cannot be carried.
            ValueError: There is no time for it.
        """
        demand_seconds("timeout_s", timeout_s)
        if timeout_s <= 0:
            raise ValueError(f"timeout: more than 0 s are expected, not {timeout_s!r:.80}")
        if method.startswith(RESERVED):
            text = f"{method!r:.80}: no method has a name with {RESERVED} in front"
            raise NoSuchMethod(address, Condition.NOT_IMPLEMENTED, text)
        self.address = address
        self.method = method
        self.arguments = arguments
        self.codec = codec
        self.timeout_s = timeout_s
        self.properties = properties
        self.topic = topic
        self.exchange = exchange
        self._body: object = None
        self._is_encoded = False
        if not exceeds(arguments, EAGER_BYTES_MAX):
            self._encode()

    def _encode(self) -> None:
        try:
            self._body = self.codec.encode(self.arguments)
        except Exception as error:
            raise unserialisable(self.arguments, self._carry, error) from error
        self._is_encoded = True

    def _carry(self, value: object) -> None:
        Message(self.codec.encode(value)).encode()

    def message(
        self, call_id: str | None, reply_to: str | None, ttl_s: float | None, size_bytes_max: int
    ) -> Message:
        """Return the message that asks.

        Args:
            call_id: What replies name; None for a cast.
            reply_to: Where replies go; None for a cast.
            ttl_s: How long it lives; None for ever.
            size_bytes_max: How large it may be; 0 for any size.

        Raises:
            MessageTooLarge: The arguments are larger.
            Unserialisable: An argument cannot be carried.
        """
        if not self._is_encoded:
            demand_fitting(self.arguments, size_bytes_max)
            self._encode()
        return Message(
            self._body,
            subject=self.method,
            to=self.address,
            message_id=call_id,
            reply_to=reply_to,
            content_type=self.codec.content_type,
            properties=self.properties,
            ttl_s=ttl_s,
        )

    def refusal(self, error: Exception) -> Exception:
        """Return the exception for a message that could not be encoded."""
        if isinstance(error, EncodeError):
            return unserialisable(self.arguments, self._carry, error)
        return error
