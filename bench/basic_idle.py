"""AMQP 0-9-1: what connections that do nothing cost, and private queues that come and go.

    python bench/basic_idle.py [--connections N] [--queues N] [--serve COMMAND]

Each idle connection has a channel and a consumer; in one case all consume one queue, in the other
each an exclusive queue of its own. Then one connection declares, binds and deletes exclusive
queues. Prints one line of JSON for each case; the exit code is 1 where one does not hold.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import pairwise
from typing import Any, Final

import click
from basic import Client, DiskServer
from server import DEFAULT_COMMAND

from cogwork.amqp091.methods import (
    BasicConsume,
    BasicConsumeOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

SHARED: Final = "shared"
EACH_MUST_BYTES: Final = 16 << 10
OPERATION_MUST_US: Final = 200.0
LOOKED_S: Final = 10.0


class CrowdedServer(DiskServer):
    """A server that lets one machine have many connections."""

    tables = (
        "\n[limits]\nconnections = 20000\nconnections_per_source = 20000\n"
        "connections_per_user = 20000\nqueues_per_user = 50000\nqueues_per_source = 50000\n"
    )


def idle(server: CrowdedServer, count: int, *, is_private: bool) -> dict[str, Any]:
    """Return what so many connections that wait for messages take."""
    Client(server.port).call(QueueDeclare(queue=SHARED), QueueDeclareOk)
    before_bytes = server.usage.rss_bytes()
    clients = []
    for number in range(count):
        client = Client(server.port)
        queue = f"private-{number}" if is_private else SHARED
        if is_private:
            declared = QueueDeclare(queue=queue, exclusive=True, auto_delete=True)
            client.call(declared, QueueDeclareOk)
        client.call(BasicConsume(queue=queue), BasicConsumeOk)
        clients.append(client)
    each_bytes = (server.usage.rss_bytes() - before_bytes) / count
    cpu_s = server.usage.cpu_s()
    time.sleep(LOOKED_S)
    core = (server.usage.cpu_s() - cpu_s) / LOOKED_S
    for client in clients:
        client.socket.close()
    has_limit = not is_private
    return {
        "case": f"basic, {count} idle consumers of {'a queue each' if is_private else 'one queue'}",
        "bytes_each": round(each_bytes),
        "cores": round(core, 4),
        **({"must_bytes_each": EACH_MUST_BYTES} if has_limit else {}),
        "holds": not has_limit or each_bytes <= EACH_MUST_BYTES,
    }


def come_and_go(server: CrowdedServer, count: int) -> dict[str, Any]:
    """Return what it costs to declare, bind and delete exclusive queues, one after the other."""
    client = Client(server.port)
    marks = [server.usage.cpu_s()]
    names = [f"gone-{number}" for number in range(count)]
    for name in names:
        client.call(QueueDeclare(queue=name, exclusive=True), QueueDeclareOk)
    marks.append(server.usage.cpu_s())
    for name in names:
        client.call(QueueBind(queue=name, exchange="amq.topic", routing_key=name), QueueBindOk)
    marks.append(server.usage.cpu_s())
    for name in names:
        client.call(QueueDelete(queue=name), QueueDeleteOk)
    marks.append(server.usage.cpu_s())
    declared, bound, deleted = (
        round((after - before) / count * 1e6) for before, after in pairwise(marks)
    )
    return {
        "case": f"basic, {count} exclusive queues",
        "declare_us": declared,
        "bind_us": bound,
        "delete_us": deleted,
        "must_us_each": OPERATION_MUST_US,
        "holds": max(declared, bound, deleted) <= OPERATION_MUST_US,
    }


@click.command()
@click.option("--connections", default=9000, show_default=True, type=click.IntRange(1))
@click.option("--queues", default=5000, show_default=True, type=click.IntRange(1))
@click.option("--serve", default=DEFAULT_COMMAND, show_default=True, help="{config}, {port}")
def main(connections: int, queues: int, serve: str) -> None:
    """Measure each case, with a server of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    holds = True
    for is_private in (False, True):
        with CrowdedServer(serve) as server:
            line = idle(server, connections, is_private=is_private)
        print(json.dumps(line))
        holds = holds and line["holds"]
    with CrowdedServer(serve) as server:
        line = come_and_go(server, queues)
    print(json.dumps(line))
    sys.exit(not (holds and line["holds"]))


if __name__ == "__main__":
    main()
