"""The ZeroMQ gateway: Peer2Peer, RoundRobin and PubSub, one socket for each.

`docs/zeromq.md` specifies every frame.
"""

from cogwork.gateways.zeromq.gateway import ZeromqGateway

__all__ = ("ZeromqGateway",)
