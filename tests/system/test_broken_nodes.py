"""Nodes of one's own that cannot be made."""

from __future__ import annotations

import pytest

import cogwork
from cogwork.client.errors import LinkRefused
from cogwork.testing import container

from .stories import story

BROKEN = '[[node]]\naddress = "words"\nkind = "os:getcwd"\n'
"""A function that takes no context: calling it with one is a TypeError."""


@story
async def test_they_refuse_links_with_the_reason_and_the_connection_stays() -> None:
    with container(BROKEN) as url:
        async with cogwork.connect(url) as mesh, mesh.consume("queue/a") as items:
            with pytest.raises(LinkRefused, match=r"'words', of kind 'os:getcwd', cannot be made"):
                await mesh.publish("words", "a b")
            await mesh.publish("queue/a", "still here")
            assert (await anext(items)).body == "still here"
