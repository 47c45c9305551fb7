"""Links on which bytes vanish without a word: nobody waits for them for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork

from .cables import BOTH, CONTROL, DATA, Cables
from .meshes import linked, meshed
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .meshes import Member

EVER_S = 20.0
"""Many times what a container waits for another one."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cables, dict[str, Member]]]:
    """Two containers, and the cables between them."""
    folder = tmp_path_factory.mktemp("pair")
    with (
        Cables() as cables,
        meshed(folder, ["a", "b"], [("a", "b")], lay=cables.lay) as members,
    ):
        yield cables, members


@pytest.mark.parametrize(
    ("roles", "ways"),
    [
        ((DATA,), (True,)),
        ((DATA,), (False,)),
        ((DATA,), (True, False)),
        ((CONTROL,), (False,)),
        (BOTH, (True, False)),
    ],
    ids=["data there", "data back", "data", "control", "both"],
)
def test_a_link_that_stands_still_is_lost_and_dialled_again(
    pair: tuple[Cables, dict[str, Member]], roles: tuple[str, ...], ways: tuple[bool, ...]
) -> None:
    cables, members = pair
    linked(members.values())
    near, far = cables.between("a", "b")

    @story
    async def run() -> None:
        async with (
            cogwork.connect(members["a"].url) as here,
            cogwork.connect(members["b"].url) as there,
            there.subscribe("topic/#") as messages,
            here.publisher("topic/a") as publisher,
        ):
            await until(publisher, is_accepted=True)
            near.stall(roles, ways)
            far.stall(roles, [not each for each in ways])
            await until(publisher, is_accepted=False)
            cables.heal()
            await until(publisher, is_accepted=True)
            await publisher.send("last")
            async with asyncio.timeout(EVER_S):
                while (await messages.__anext__()).body != "last":
                    pass

    run()


async def until(publisher: cogwork.client.Publisher, *, is_accepted: bool) -> None:
    """Publish until a message is accepted, or until one is not."""
    async with asyncio.timeout(EVER_S):
        while True:
            try:
                await publisher.send("")
            except cogwork.InDoubt:
                if not is_accepted:
                    return
            else:
                if is_accepted:
                    return
            await asyncio.sleep(0.02)
