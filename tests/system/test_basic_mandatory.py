"""Mandatory messages in a cluster: returned only where nobody anywhere takes them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pika.exceptions import UnroutableError

from .basic_clients import basic_channel, taken
from .served import within
from .test_shared_topology import cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel


def test_what_has_no_route_anywhere_is_returned_with_and_without_a_majority(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, "abc") as members, basic_channel(members["a"].served) as here:
        here.confirm_delivery()
        with basic_channel(members["b"].served) as there:
            there.exchange_declare("orders", "topic", durable=True)
            queue = there.queue_declare("", exclusive=True).method.queue
            there.queue_bind(queue, "orders", "new.*")
            within(20, lambda: is_taken(here, "new.eu"), "the private queue is known")
            assert [body for _, _, body in taken(there, queue, 1, auto_ack=True)] == [b"new.eu"]
        assert not is_taken(here, "old.eu")
        for each in "bc":
            members[each].kill()
        assert not is_taken(here, "old.eu")
        started_s = time.monotonic()
        for _ in range(20):
            assert not is_taken(here, "old.eu")
        assert time.monotonic() - started_s < 2.0, "each of them asked who does not answer"


def is_taken(channel: BlockingChannel, key: str) -> bool:
    try:
        channel.basic_publish("orders", key, key.encode(), mandatory=True)
    except UnroutableError:
        return False
    return True
