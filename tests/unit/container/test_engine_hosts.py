"""The hosts of a container's engines as it stops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cogwork.amqp.errors import CogworkError
from cogwork.container.vhost.engines import EngineHosts, VhostEngines
from cogwork.plugin.engine.errors import Unavailable


class Host:
    """A host that may fail as it is closed."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (CogworkError("its server is away"), []),
        (KeyError("socket"), ["engine bent: cannot close it: KeyError('socket')"]),
    ],
)
def test_a_host_that_fails_keeps_no_other_open(
    fault: Exception, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    hosts = EngineHosts("x")
    bent: Any = Host(fault)
    sound: Any = Host()
    hosts.add("bent", bent)
    hosts.add("sound", sound)
    asyncio.run(hosts.close())
    assert (bent.is_closed, sound.is_closed) == (True, True)
    assert [record.getMessage() for record in caplog.records] == told


def test_a_stream_keeps_its_records_where_the_cluster_cannot_give_it_up() -> None:
    class Sharing:
        async def demand_majority(self) -> None:
            raise Unavailable("b is away")

    hosts = EngineHosts("x")
    hosts.add("sound", Host())  # type: ignore[arg-type]  # which deletes nothing
    hosts.sharing = Sharing()  # type: ignore[assignment]  # all that is asked of it
    with pytest.raises(Unavailable, match="b is away"):
        asyncio.run(VhostEngines(hosts, "").delete("sound", "orders", is_shared=True))
