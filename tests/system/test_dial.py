"""A list of places: links at run time lead nowhere else, before and after it is changed."""

from __future__ import annotations

import pytest

import cogwork
from cogwork.config.reading import parse

from .linked import linked
from .stories import eventually, story


def configuration(*places: str) -> str:
    return f"[dial]\nallow = {list(places)}\n"


@story
async def test_a_link_at_run_time_leads_only_where_the_list_says() -> None:
    async with linked() as mesh:
        await mesh.start("north")
        await mesh.start("west")
        north, west = mesh.address("north"), mesh.address("west")
        await mesh.start("south", configuration=configuration(north, west))
        south = mesh.containers["south"]

        async def add(url: str) -> None:
            client = await mesh.client("south")
            await client.manage("CREATE", {"type": "org.cogwork.link", "name": url})

        await add(north)
        await add(west)
        with pytest.raises(
            cogwork.ClientError, match=r"127\.0\.0\.1:1 is not allowed: dial\.allow"
        ):
            await add("127.0.0.1:1")
        there = south.mesh
        await eventually(lambda: there.is_linked("north") and there.is_linked("west"), "linked")
        head = 'id = "south"\n[[listen]]\nport = 0\n'
        south.reconfigure(parse(head + configuration(north), "test"))
        await eventually(lambda: not there.is_linked("west"), "west is not listed any more")
        assert [each.url.endpoint for each in there.diallers] == [north]
        assert there.is_linked("north")
