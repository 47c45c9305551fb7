"""What is wanted for one message: where to, how sure, how long, how often."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_messaging.exceptions import MessageUndeliverable

if TYPE_CHECKING:
    from collections.abc import Callable

    from oslo_messaging import Target

    from cogwork.oslo.addresses import Addresser, Service

__all__ = ("Plan",)

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

    @property
    def is_reply(self) -> bool:
        """Whether it goes to a caller's own address."""
        return self.target is None

    @property
    def is_fanout(self) -> bool:
        """Whether it goes to all servers of a topic, however few."""
        return self.target is not None and bool(self.target.fanout) and not self.target.server

    def address_by(self, addresser: Addresser) -> str:
        """Returns where it goes."""
        if self.target is None:
            return self.reply_to
        return addresser.of(self.target, self.service)

    def undeliverable(self, reason: str, address: str) -> MessageUndeliverable:
        """Returns the exception for a mandatory message that nobody is there for."""
        made = MessageUndeliverable(
            reason, getattr(self.target, "exchange", None), address, self.content
        )
        made.args = (f"{address}: nobody is there to receive it: {reason}",)
        return made

    def on_failure(self, error: Exception) -> None:
        """Tells of a message that nobody waits for: a reply."""
        log.warning("a reply was not sent: %s", error)
