"""Serves calls that last; says so, and when it begins one, and runs until it is killed."""

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
        say("working")
        time.sleep(seconds)
        return seconds


def main() -> None:
    """Serve."""
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=sys.argv[1])
    target = oslo_messaging.Target(topic="lasting", server="one")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    say("serving")
    time.sleep(120)


def say(what: str) -> None:
    """Tell the test how far it has come."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
