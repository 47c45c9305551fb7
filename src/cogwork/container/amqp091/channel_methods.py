"""Methods on a channel itself, confirms and transactions (AMQP 0-9-1 §1.5, §1.9; RabbitMQ)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.basic_methods import apply_settlement
from cogwork.container.amqp091.transaction_places import demand_one_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declarer import Work

__all__ = ("HANDLERS",)


def close(channel: Channel, _method: m.ChannelClose, _content: Content | None) -> None:
    """Close a channel: what it holds goes back."""
    channel.connection.end_channel(channel.number)
    channel.reply(m.ChannelCloseOk())


def flow(channel: Channel, method: m.ChannelFlow, _content: Content | None) -> None:
    """Answer that messages flow; RabbitMQ does not let them stop, either."""
    if not method.active:
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, "active=false")
    channel.reply(m.ChannelFlowOk(active=True))


def ignore(_channel: Channel, _method: object, _content: Content | None) -> None:
    """Take an answer to what needs none."""


def grant(channel: Channel, _method: m.AccessRequest, _content: Content | None) -> None:
    """Give a ticket, which means nothing."""
    channel.reply(m.AccessRequestOk(ticket=1))


def select_confirms(channel: Channel, method: m.ConfirmSelect, _content: Content | None) -> None:
    """Confirm what is published from now on."""
    channel.publishing.select_confirms()
    if not method.nowait:
        channel.reply(m.ConfirmSelectOk())


def select_transactions(channel: Channel, _method: m.TxSelect, _content: Content | None) -> None:
    """Collect publishes and acknowledgements from now on."""
    channel.publishing.select_transactions()
    channel.reply(m.TxSelectOk())


def commit(channel: Channel, _method: m.TxCommit, _content: Content | None) -> None:
    """Do what was collected; answered when all of it is done."""
    demand_one_place(channel, channel.publishing.collected())
    channel.publishing.commit(partial(apply_settlement, channel))


def rollback(channel: Channel, _method: m.TxRollback, _content: Content | None) -> None:
    """Forget what was collected."""
    channel.publishing.rollback()
    channel.reply(m.TxRollbackOk())


HANDLERS: dict[type[Method], Callable[..., Work | None]] = {
    m.ChannelClose: close,
    m.ChannelCloseOk: ignore,
    m.ChannelFlow: flow,
    m.ChannelFlowOk: ignore,
    m.AccessRequest: grant,
    m.ConfirmSelect: select_confirms,
    m.TxSelect: select_transactions,
    m.TxCommit: commit,
    m.TxRollback: rollback,
}
