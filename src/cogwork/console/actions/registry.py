"""All actions, by their names."""

from __future__ import annotations

from cogwork.console.actions.administration import ADMINISTRATION_ACTIONS
from cogwork.console.actions.clients import CLIENT_ACTIONS
from cogwork.console.actions.exchanges import EXCHANGE_ACTIONS
from cogwork.console.actions.queues import QUEUE_ACTIONS
from cogwork.console.actions.streams import STREAM_ACTIONS

__all__ = ("ACTIONS",)

ACTIONS = {
    each.name: each
    for each in (
        *QUEUE_ACTIONS,
        *STREAM_ACTIONS,
        *EXCHANGE_ACTIONS,
        *CLIENT_ACTIONS,
        *ADMINISTRATION_ACTIONS,
    )
}
"""What forms may do."""
