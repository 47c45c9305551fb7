"""The ZeroMQ gateway: Peer2Peer, RoundRobin and PubSub, one socket for each.

`docs/zeromq.md` specifies every frame.
"""

from cogwork.spi.gateway import GatewayError

try:
    from cogwork.gateways.zeromq.gateway import ZeromqGateway
except ModuleNotFoundError as error:
    raise GatewayError(f"{error}: pip install 'cogwork[zeromq]'") from error

__all__ = ("ZeromqGateway",)
