"""The two ends of calls behind what a client shows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.rpc.calls import ClientCalls
from cogwork.rpc.serving.service import Service

if TYPE_CHECKING:
    from cogwork.client import Client, MethodService
    from cogwork.rpc.calling.caller import Caller

__all__ = ("caller_of", "server_of")


def caller_of(client: Client) -> Caller:
    """The calling half of a client's RPC."""
    assert isinstance(client.rpc, ClientCalls)
    return client.rpc.caller


def server_of(service: MethodService) -> Service:
    """A service with what is behind its methods."""
    assert isinstance(service, Service)
    return service
