"""Retention at work, whatever is in its way."""

from __future__ import annotations

import asyncio

import pytest

from cogwork.engines.shared import retaining
from cogwork.engines.shared.retaining import Retaining
from cogwork.plugin.engine.errors import Unavailable


@pytest.mark.parametrize("fault", [Unavailable("no"), KeyError("kvs")])
def test_whatever_goes_wrong_once_is_told_and_it_goes_on(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retaining, "RETENTION_INTERVAL_S", 0.001)

    async def story() -> None:
        told = list[str]()
        faults = [fault, fault]

        async def retain() -> None:
            if faults:
                raise faults.pop()

        made = Retaining(retain, lambda: False, told.append, told.append)
        async with asyncio.timeout(30):
            while len(told) < 2:
                await asyncio.sleep(0.001)
        made.cancel()
        reason = "no" if isinstance(fault, Unavailable) else "KeyError('kvs')"
        assert told[0].startswith("retention fails and the stream grows")
        assert f" grows: {reason}; retrying every " in told[0]
        assert told[1:] == ["retention works again"]

    asyncio.run(story())
