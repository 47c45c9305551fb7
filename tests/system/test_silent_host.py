"""A host that falls silent is tried last: it may take long to show that it does not answer."""

from __future__ import annotations

import cogwork

from .proxy import FaultyProxy
from .stories import QUICKLY, reconnected, story


@story
async def test_the_next_host_comes_first_where_one_has_fallen_silent(url: str) -> None:
    async with FaultyProxy(url) as proxy:
        urls = [proxy.url, url]
        async with cogwork.connect(
            urls, idle_timeout_s=0.5, connect_timeout_s=50, retry=QUICKLY
        ) as client:
            assert str(client.endpoint) == urls[0]
            proxy.hold_replies()
            await reconnected(client)
            assert str(client.endpoint) == urls[1]
            await client.publish("sink/here", 0)
