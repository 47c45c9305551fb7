"""What is wanted for one message: where to, how sure, how long, how often."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_messaging.exceptions import MessageUndeliverable

from cogwork.dataplane.client.posting_errors import MessageTooLarge
from cogwork.dataplane.encoding.extent import exceeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from oslo_messaging import Target

    from cogwork.dataplane.message.messages import Message
    from cogwork.oslo.addresses import Addresser, Service

__all__ = ("Plan",)

EAGER_BYTES_MAX = 64 * 1024
"""Bodies that may be larger are written only when it is known how much is taken."""

log = logging.getLogger("cogwork.oslo")


@dataclass(slots=True)
class Plan:
    """What is wanted.

    Attributes:
        target: Whom it is for; None where `reply_to` says it.
        service: Whose addresses are used.
        reply_to: The address of a caller, for a reply.
        is_settled: Whether it is sent without asking what became of it.
        timeout_s: Its time, to be sent or to be answered; None for ever.
        retry: How often it is sent again at most; None for any number.
        wants_reply: Whether it is a call.
        heartbeat_s: In which time a call must hear of its server; None: in any.
        is_mandatory: Whether it fails at once where nobody is there.
        carries_ttl: Whether it expires with its time.
        content: What the application sends, for the error that says it cannot be delivered.
        instead: Called, on the loop's thread, with the reason why it is nothing that can be sent.
        write: Writes the body, where that was put off; None where it is written.
        parts: What it will hold then.
    """

    target: Target | None = None
    service: Service = "rpc"
    reply_to: str = ""
    is_settled: bool = False
    timeout_s: float | None = None
    retry: int | None = None
    wants_reply: bool = False
    heartbeat_s: float | None = None
    is_mandatory: bool = False
    carries_ttl: bool = False
    content: Any = None
    instead: Callable[[Exception], object] | None = None
    write: Callable[[], str] | None = None
    parts: object = None

    def put_off(self, write: Callable[[], str], parts: object) -> str | None:
        """Return the body, or None where it is so large that it is written when it is sent.

        How much is taken is known then, so that what is too large is refused without being written.

        Args:
            write: Writes it.
            parts: What it will hold, at the least.
        """
        if not exceeds(parts, EAGER_BYTES_MAX):
            return write()
        self.write, self.parts = write, parts
        return None

    def fill(self, message: Message, size_bytes_max: int) -> None:
        """Write the body, if that was put off.

        Raises:
            MessageTooLarge: It is larger than what is taken.
        """
        if self.write is None:
            return
        if size_bytes_max and exceeds(self.parts, size_bytes_max):
            raise MessageTooLarge(f"more than {size_bytes_max} bytes are not taken")
        message.body = self.write()
        self.write = self.parts = None

    @property
    def is_reply(self) -> bool:
        """Whether it goes to a caller's own address."""
        return self.target is None

    @property
    def is_fanout(self) -> bool:
        """Whether it goes to all servers of a topic, however few."""
        return self.target is not None and bool(self.target.fanout) and not self.target.server

    def address_by(self, addresser: Addresser) -> str:
        """Return where it goes."""
        if self.target is None:
            return self.reply_to
        return addresser.of(self.target, self.service)

    def undeliverable(self, reason: str, address: str) -> MessageUndeliverable:
        """Return the exception for a mandatory message that nobody is there for."""
        made = MessageUndeliverable(
            reason, getattr(self.target, "exchange", None), address, self.content
        )
        made.args = (f"{address}: nobody is there to receive it: {reason}",)
        return made

    def on_failure(self, error: Exception) -> None:
        """Tell of a message that nobody waits for: a reply."""
        log.warning("cannot send a reply: %s", error)
