"""Serves calls that last; says so, and runs until it is killed."""

from __future__ import annotations

import sys
import time
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet's, of itself
    import oslo_messaging
from oslo_config import cfg


class Endpoint:
    """Is slow."""

    def last(self, ctxt: object, seconds: float) -> float:
        time.sleep(seconds)
        return seconds


def main() -> None:
    """Serves."""
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=sys.argv[1])
    target = oslo_messaging.Target(topic="lasting", server="one")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    time.sleep(120)


if __name__ == "__main__":
    main()
