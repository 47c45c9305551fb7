"""Random histories of exchanges and bindings, by the same client at RabbitMQ and at Cogwork.

Replies, reply texts, returned messages and what each queue has got are compared after each step.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from rabbitmq import RabbitMq

from cogwork.bench.servers.process import Missing
from cogwork.testing import container

from .histories import Author, Broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HISTORIES = 12
STEPS = 120


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    folder: Path = tmp_path_factory.mktemp("rabbitmq")
    server = RabbitMq(folder)
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        with (
            container() as url,
            closing(Broker(server.port)) as theirs,
            closing(Broker(int(url.rpartition(":")[2]))) as ours,
        ):
            yield theirs, ours
    finally:
        server.kill()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_both_brokers_do_the_same(brokers: tuple[Broker, Broker], seed: int) -> None:
    theirs, ours = brokers
    author = Author(seed)
    theirs.clear()
    ours.clear()
    for number in range(STEPS):
        step = author.step()
        assert ours.play(step) == theirs.play(step), f"seed {seed}, step {number}: {step}"
