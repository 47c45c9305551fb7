"""Carries out what nodes want done."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.types import Symbol
from cogwork.container.amqp091.consumer import Consumer
from cogwork.container.amqp091.stream_consumer import StreamConsumer
from cogwork.container.management.gathered import Gathered
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.link import Link
from cogwork.plugin.effects import Detach, Publish, Report, Send, Settle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.vhost.outgoing import Outgoing
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.core import Core
    from cogwork.plugin.effects import Effect

__all__ = ("EffectRunner",)

log = logging.getLogger("cogwork")


class EffectRunner:
    """Runs effects in order. Owned by the container."""

    def __init__(self, core: Core, outgoing: Outgoing) -> None:
        """Open the port that effects are sent from.

        Args:
            core: The data plane.
            outgoing: Sends what is to be answered for.
        """
        self._core = core
        self._port = Port(core, self)
        self._outgoing = outgoing
        self._gathered = Gathered(_tell)

    def tick(self, now_s: float) -> None:
        """Tell what was gathered of what many nodes reported."""
        self._gathered.tick(now_s)

    def close(self) -> None:
        """Tell what is left of that."""
        self._gathered.close()

    def on_batch(self, port: Port) -> None:
        """Forget the outcomes: what is sent by this port is sent settled."""
        port.outcomes.clear()
        port.arrivals.clear()
        port.woken.clear()

    def run(self, vhost: VirtualHost, effects: Iterable[Effect]) -> None:
        """Carry out a node's effects.

        Args:
            vhost: Whose addresses `Send` means.
            effects: In order.
        """
        for effect in effects:
            if isinstance(effect, Send):
                self._send(vhost, effect)
            elif isinstance(effect, Publish):
                effect.entry.send(self._port, 0, effect.message, settled=True)
            elif isinstance(effect, Settle):
                effect.source.settle(effect.token, effect.code, effect.state)
            elif isinstance(effect, Detach):
                _detach(effect)
            elif isinstance(effect, Report):
                self._gathered.add(effect, self._core.now)

    def _send(self, vhost: VirtualHost, effect: Send) -> None:
        if effect.on_outcome is not None:
            outgoing = self._outgoing
            if not outgoing.send(vhost, effect.address, effect.message, effect.on_outcome):
                effect.on_outcome(accepted=False)
            return
        address = effect.address.removeprefix("/").encode()
        if not vhost.space.send(self._port, 0, address, effect.message, True):
            log.warning("dropped a node's message to %r: there is no such address", effect.address)


def _detach(effect: Detach) -> None:
    link = effect.link.owner
    if isinstance(link, Consumer | StreamConsumer) and link.is_attached:
        link.detach()
    elif isinstance(link, Link) and link.is_attached:
        info = {Symbol(key): value for key, value in (effect.info or {}).items()}
        link.detach(
            AmqpError(condition=effect.condition, description=effect.description, info=info or None)
        )


def _tell(report: Report, text: str) -> None:
    log.log(_level_of(report), "%s", text)


def _level_of(report: Report) -> int:
    if report.is_error:
        return logging.ERROR
    return logging.WARNING if report.is_warning else logging.INFO
