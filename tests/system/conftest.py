"""What many of these tests run against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import Missing
from cogwork.bench.servers.redis import RedisServer
from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """One container for all tests of a module, configured by its `CONFIGURATION` if it has one."""
    with container(getattr(request.module, "CONFIGURATION", "")) as running:
        yield running


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server for one test, which may kill it."""
    pytest.importorskip("redis", reason="the extra [redis] is not installed")
    server = RedisServer(tmp_path / "redis")
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()
