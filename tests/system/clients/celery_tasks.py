"""A Celery application: tasks that write down that they ran, and who sends them.

BROKERS=amqp://…;amqp://… RECORD=FILE python -m celery -A celery_tasks worker
BROKERS=… python celery_tasks.py ping | use | send FIRST COUNT
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celery import Celery, chain, group

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 40.0
REVOKED, LATE = 1001, 1002

app = Celery("tasks", broker=os.environ["BROKERS"], backend="rpc://")
app.conf.update(
    broker_connection_max_retries=None,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=4,
)


def write_down(self: Any, number: int) -> int:
    """Write a number down; one in ten is tried again first."""
    if number % 10 == 0 and self.request.retries == 0:
        raise self.retry(countdown=0.1)
    with Path(os.environ["RECORD"]).open("a") as file:
        file.write(f"{number}\n")
    return number


def twice(number: int) -> int:
    """Return twice a number."""
    return 2 * number


record = app.task(write_down, bind=True, name="record", max_retries=3)
double = app.task(twice, name="double")


def ping() -> None:
    """Print how many workers answer."""
    sys.stdout.write(f"{len(app.control.ping(timeout=1.0))}\n")


def use(workers: int) -> None:
    """Use what applications use."""
    results = group(record.s(number) for number in range(60)).apply_async()
    assert sorted(results.get(timeout=TIMEOUT_S)) == list(range(60))
    assert chain(double.s(1), double.s(), double.s()).apply_async().get(timeout=TIMEOUT_S) == 8
    revoked = record.apply_async((REVOKED,), countdown=3)
    app.control.revoke(revoked.id)
    assert record.apply_async((LATE,), countdown=4).get(timeout=TIMEOUT_S) == LATE
    inspected = app.control.inspect(timeout=2.0)
    assert len(inspected.stats()) == workers
    assert all("record" in names for names in inspected.registered().values())


def send(first: int, count: int) -> None:
    """Send tasks; each is confirmed."""
    for number in range(first, first + count):
        record.apply_async((number,), retry=True, retry_policy={"max_retries": 100})


if __name__ == "__main__":
    parts: dict[str, Callable[..., None]] = {"ping": ping, "use": use, "send": send}
    parts[sys.argv[1]](*map(int, sys.argv[2:]))
