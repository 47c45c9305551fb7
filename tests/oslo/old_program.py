"""A client, or a server, with whatever release of oslo.messaging comes first in its path."""

from __future__ import annotations

import sys
import time
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet's, of itself
    import oslo_messaging
from oslo_config import cfg


class Endpoint:
    """Adds, fails, and takes its time."""

    def add(self, ctxt: object, a: int, b: int) -> int:
        return a + b

    def fail(self, ctxt: object) -> None:
        raise KeyError("not here")

    def last(self, ctxt: object, seconds: float) -> float:
        time.sleep(seconds)
        return seconds


def serve(url: str) -> None:
    """Serve until its standard input ends."""
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    target = oslo_messaging.Target(topic="old-and-new", server="one")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    sys.stdin.read()


def call(url: str) -> None:
    """Make three calls, and write what came of them."""
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    target = oslo_messaging.Target(topic="old-and-new", server="one")
    client = oslo_messaging.get_rpc_client(transport, target, timeout=20, call_monitor_timeout=2)
    found: list[object] = [client.call({}, "add", a=1, b=2), client.call({}, "last", seconds=3)]
    try:
        client.call({}, "fail")
    except KeyError as error:
        found.append(type(error).__name__.removesuffix("_Remote"))
    sys.stdout.write(f"{oslo_messaging.__file__}\n{found}\n")
    transport.cleanup()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    {"serve": serve, "call": call}[sys.argv[1]](sys.argv[2])
