"""A program that is patched for green threads; writes what it saw."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet's, of itself
    import eventlet

    eventlet.monkey_patch()
    import oslo_messaging

import json
import sys

from oslo_config import cfg


class Endpoint:
    """Adds, or takes its time."""

    def add(self, ctxt: object, a: int, b: int) -> int:
        return a + b

    def last(self, ctxt: object) -> None:
        eventlet.sleep(2)


def main() -> None:
    """Call from many green threads, is interrupted, and waits while others run."""
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    found: dict[str, object] = {}
    here = oslo_messaging.get_rpc_transport(cfg.CONF, url=sys.argv[1])
    there = oslo_messaging.get_rpc_transport(cfg.CONF, url=sys.argv[1])
    target = oslo_messaging.Target(topic="green", server="one")
    server = oslo_messaging.get_rpc_server(there, target, [Endpoint()], executor="eventlet")
    server.start()
    client = oslo_messaging.get_rpc_client(here, oslo_messaging.Target(topic="green"))
    pool = eventlet.GreenPool(20)
    results = pool.imap(lambda each: client.call({}, "add", a=each, b=1), range(100))
    found["sum"] = sum(results)
    try:
        with eventlet.Timeout(0.5):
            client.call({}, "last")
    except eventlet.Timeout:
        found["interrupted"] = True
    ticks: list[int] = []

    def tick() -> None:
        while True:
            ticks.append(1)
            eventlet.sleep(0.01)

    ticking = eventlet.spawn(tick)
    nobody = oslo_messaging.get_rpc_client(here, oslo_messaging.Target(topic="none"), timeout=1)
    try:
        nobody.call({}, "any")
    except oslo_messaging.MessagingTimeout:
        found["others ran"] = len(ticks) > 10
    ticking.kill()
    server.stop()
    server.wait()
    for transport in (here, there):
        transport.cleanup()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
