"""Makes calls, forks, and makes calls in both processes; writes what each of them got."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet's, of itself
    import oslo_messaging
from oslo_config import cfg


class Endpoint:
    """Adds."""

    def add(self, ctxt: object, a: int, b: int) -> int:
        return a + b


def serve(url: str) -> None:
    """Run a server until it is killed."""
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    target = oslo_messaging.Target(topic="forking", server="one")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    signal.pause()


def main() -> None:
    """Fork a server before anything is connected, and a client in the middle of its work."""
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    here, there = sys.argv[1:3]
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=here)
    target = oslo_messaging.Target(topic="forking")
    calls = oslo_messaging.get_rpc_client(transport, target, timeout=20)
    server = os.fork()
    if server == 0:
        serve(there)
    got = [calls.call({}, "add", a=1, b=2)]
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        mine = [calls.call({}, "add", a=2, b=3), calls.call({}, "add", a=4, b=5)]
        os.write(writable, json.dumps(mine).encode())
        os._exit(0)
    os.waitpid(child, 0)
    got += [calls.call({}, "add", a=3, b=4), calls.call({}, "add", a=5, b=6)]
    both = {"parent": got, "child": json.loads(os.read(readable, 100))}
    sys.stdout.write(json.dumps(both) + "\n")
    transport.cleanup()
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)


if __name__ == "__main__":
    main()
