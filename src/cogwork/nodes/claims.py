"""The node at `$cbs`: takes tokens of clients that are connected (AMQP claims-based security).

Theory of operation. A client attaches a sender to `$cbs` and a receiver from it, or a receiver with
a dynamic source, and sends a request: `operation`, `type` and `name` stand in the
application-properties, and the token is the body. What it stands for, the container finds out,
request after request of one connection. The reply goes to `reply-to` where that is an address of
the client's own, and else to its receiver here: in the draft, `reply-to` names that one's target.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.message import Properties, Sections, Value, encode_sections
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Int
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.effects import ACCEPTED, Publish, Send
from cogwork.plugin.node import Refused
from cogwork.router.own_addresses import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.amqp.message import MessageId
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.terminus import Terminus
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.management import ContainerView
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("ClaimsNode",)

PUT_TOKEN = "put-token"

TYPES = ("jwt", "amqp:jwt")
"""What a token is called that is a JWT: by Azure's clients, and by the draft."""

SIZE_BYTES_MAX = 64 * 1024
"""A token that is longer was issued by nobody."""

WAITING_MAX = 100
"""Replies that a receiver gives no credit for; further requests are refused."""

OK, BAD_REQUEST, NOT_IMPLEMENTED = 200, 400, 501

REJECTED = 0x25
"""Descriptor code of the outcome `rejected` (AMQP 1.0 §3.4.3)."""


class _Request(NamedTuple):
    """What a client asks for.

    Attributes:
        operation: What is to be done.
        kind: What kind of token it is.
        body: The token.
        reply_to: Where the reply goes; None leaves it to the receiver.
        correlation_id: What the reply is told by.
    """

    operation: object
    kind: object
    body: object
    reply_to: str | None
    correlation_id: MessageId | None


class ClaimsNode:
    """Has tokens of connected clients checked. One for each virtual host."""

    serves_prefix = False

    def __init__(self, context: NodeContext) -> None:
        """Start without receivers.

        Args:
            context: With the container's view.

        Raises:
            Refused: The address is not `$cbs` itself.
        """
        if context.address != CLAIMS or context.container is None:
            raise Refused(f"{context.address!r} is no address; {CLAIMS} is", Condition.NOT_FOUND)
        self._container: ContainerView = context.container
        self._core = context.core
        self._emit = context.emit
        self._port = Port(context.core, self)
        self._entry = AddressEntry(context.core, CLAIMS, CLOSEST_CODE)
        self._entry.add_outlet(self._port)
        self._receivers: dict[OutgoingLink, AddressEntry] = {}
        self._counts = {"requests": 0, "refused": 0}

    def entry(self, _address: str) -> AddressEntry:
        """Return where requests go.

        Raises:
            Refused: No tokens are taken.
        """
        self._demand_tokens()
        return self._entry

    def subscribe(self, subscription: Subscription) -> None:
        """Take a receiver of replies.

        Raises:
            Refused: No tokens are taken.
        """
        self._demand_tokens()
        entry = AddressEntry(self._core, CLAIMS, CLOSEST_CODE)
        entry.add_outlet(subscription.link)
        self._receivers[subscription.link] = entry

    def _demand_tokens(self) -> None:
        if not self._container.takes_tokens:
            text = "no tokens are taken here: the configuration has no [oauth]"
            raise Refused(text, Condition.NOT_IMPLEMENTED)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget one, with the replies that it has not taken."""
        entry = self._receivers.pop(subscription.link, None)
        if entry is not None:
            entry.remove_outlet(subscription.link)
            entry.close()

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Do nothing."""
        return ()

    def status(self) -> Mapping[str, object]:
        """Count requests, those that were refused among them, and receivers."""
        return {**self._counts, "receivers": len(self._receivers)}

    def close(self) -> None:
        """Give its entries back."""
        for entry in self._receivers.values():
            entry.close()
        self._receivers.clear()
        self._entry.close()
        self._port.close()

    # -- requests

    def on_batch(self, port: Port) -> None:
        """Take requests in."""
        arrivals, port.arrivals = port.arrivals, []
        port.outcomes.clear()
        for message, token, source, _settled in arrivals:
            if source is not None:
                self._take(message, token, source)

    def _take(self, message: bytes, token: int, source: Terminus) -> None:
        requester = self._container.requester(source)
        if requester is None:
            return
        if len(message) > SIZE_BYTES_MAX:
            text = f"a request of {len(message)} bytes; at most {SIZE_BYTES_MAX} are read"
            self._reject(source, token, Condition.RESOURCE_LIMIT_EXCEEDED, text)
            return
        try:
            request = _request_of(Message.decode(message))
        except ProtocolError as error:
            self._reject(source, token, error.condition, error.description)
            return
        is_own = request.reply_to is not None and requester.takes_reply(request.reply_to)
        if not is_own and self._receiver_of(source) is None:
            text = f"a request needs a receiver of its reply: attach one with the source {CLAIMS}"
            self._reject(source, token, Condition.NOT_ALLOWED, text)
            return
        answer = partial(self._answer, source, token, request, is_own=is_own)
        wrong = _what_is_wrong(request)
        if wrong is not None:
            answer(*wrong)
        else:
            self._container.put_token(requester, str(request.body), answer)

    def _receiver_of(self, source: Terminus) -> AddressEntry | None:
        """Find who takes replies: of the sender's session, or at least of its connection."""
        session = getattr(source, "session", None)
        found = [each for each in self._receivers if session and each.session.wire is session.wire]
        found.sort(key=lambda each: each.session is session)
        entry = self._receivers[found[-1]] if found else None
        return None if entry is None or entry.held >= WAITING_MAX else entry

    def _reject(self, source: Terminus, token: int, condition: Symbol, description: str) -> None:
        """Answer with the outcome alone, where no reply can be sent."""
        self._counts["refused"] += 1
        error = AmqpError(condition=condition, description=description)
        source.settle(token, REJECTED, encode(Rejected(error=error).to_described()))

    def _answer(
        self,
        source: Terminus,
        token: int,
        request: _Request,
        status: int,
        description: str,
        *,
        is_own: bool,
    ) -> None:
        """Reply to a request, if anybody is there any more."""
        self._counts["requests"] += 1
        self._counts["refused"] += status >= BAD_REQUEST
        reply = _reply(request, status, description)
        if is_own and request.reply_to is not None:
            self._emit((Send(request.reply_to, reply),))
        elif (entry := self._receiver_of(source)) is not None:
            self._emit((Publish(entry, reply),))
        source.settle(token, ACCEPTED)


def _request_of(message: Message) -> _Request:
    """Read a request.

    Raises:
        ProtocolError: It cannot be read.
    """
    said = message.properties or {}
    by = message.correlation_id if message.message_id is None else message.message_id
    body = message.body
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    return _Request(said.get("operation"), said.get("type"), body, message.reply_to, by)


def _what_is_wrong(request: _Request) -> tuple[int, str] | None:
    """Return the status and the words for a request that is none; None where it is one."""
    if request.operation != PUT_TOKEN:
        text = f"unknown operation {request.operation!r:.80} (expected {PUT_TOKEN!r})"
        return NOT_IMPLEMENTED, text
    if request.kind not in TYPES:
        expected = ", ".join(map(repr, TYPES))
        return BAD_REQUEST, f"unknown type {request.kind!r:.80} (expected one of {expected})"
    if not isinstance(request.body, str) or not request.body:
        return BAD_REQUEST, "the body is no token: a string, or its octets"
    return None


def _reply(request: _Request, status: int, description: str) -> bytes:
    head = Sections(
        properties=Properties(correlation_id=request.correlation_id),
        application_properties={"status-code": Int(status), "status-description": description},
        body=Value(None),
    )
    return encode_sections(head)
