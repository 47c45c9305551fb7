"""A broker in memory and peers that speak to it frame by frame: no socket, no clock, no event loop.

Theory of operation. `Broker` is the least host that the data plane needs: addresses by prefix
(`all/` multicast, `one/` closest, `least/` balanced, `whole/` closest and assembled for a node),
every attach accepted. A `Peer` is a client written with the reference codec alone, so whatever the
compiled code writes is read by something else. What a peer says is fed to its wire, then every peer
hears what its own wire has to say: each event of a test crosses two wires.
"""

from .broker import BLOCK, DETACH, DROP_OLDEST, Broker
from .channel import Channel
from .links import Arrival, Consumer, Publisher
from .peer import Peer, frame
from .sockets import SocketBroker, SocketPeer

__all__ = (
    "BLOCK",
    "DETACH",
    "DROP_OLDEST",
    "Arrival",
    "Broker",
    "Channel",
    "Consumer",
    "Peer",
    "Publisher",
    "SocketBroker",
    "SocketPeer",
    "frame",
)
