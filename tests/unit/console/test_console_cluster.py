"""The mesh, the cluster and the schemas, as the console shows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from consoles import CONFIGURATION, Browser, browsed

import cogwork
from cogwork.testing import container

if TYPE_CHECKING:
    from pathlib import Path

OPEN = """
[anonymous]
mesh = true
permissions = [{ address = "$management", rights = ["send", "manage"] }]
"""


def test_a_mesh_is_a_picture_and_a_table() -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in("", "")
        for _ in range(200):
            text = await browser.live("/mesh")
            if "2 containers" in text and "<bdi>west</bdi>" in text:
                break
        assert "2 containers, 1 link; blue: the ways from east" in text
        assert "<style>" not in text
        assert re.search(r'<rect class="box own"', text)
        assert "<h1>Mesh</h1>" in await browser.get("/mesh")
        assert "<bdi>west</bdi>" in await browser.get("/peers")

    with container(OPEN, id="west") as west:
        link = f'[[link]]\nurl = "{west}"\n'
        with container(f"{OPEN}\n{link}", id="east") as east:
            browsed(east, work)


def test_the_members_of_a_cluster_are_shown(tmp_path: Path) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in("", "")
        text = await browser.get("/cluster")
        assert "<bdi>box</bdi>" in text
        for _ in range(200):
            if "<strong>root</strong>" in text:
                break
            text = await browser.live("/cluster")
        assert "<strong>root</strong>" in text

    head = f'data_dir = "{tmp_path}"\n{OPEN}\n[cluster]\nname = "<i>"\nprimaries = ["box"]\n'
    with container(head, id="box") as url:
        browsed(url, work)


def test_a_container_in_no_cluster_says_so(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        assert "is in no cluster" in await browser.get("/cluster")

    browsed(url, work)


@pytest.mark.parametrize("path", ["/mesh", "/cluster", "/schemas"])
def test_who_may_not_see_them_is_told(url: str, path: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in("keeper", "key")
        assert "<h1>You may not see this</h1>" in await browser.get(path, 403)

    browsed(url, work)


def test_a_container_without_schemas_has_none(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        assert "0 of 0" in await browser.get("/schemas")

    browsed(url, work)


def test_schemas_are_found_by_their_addresses() -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        definition = {"type": "object", "title": "<script>"}
        async with cogwork.connect(url, user="operator", password="secret") as client:
            await client.schemas.register("queue/orders", definition)
        text = await browser.get("/schemas?search=ORDERS")
        assert "<bdi>queue/orders</bdi>" in text
        assert "&#34;title&#34;: &#34;&lt;script&gt;&#34;" in text
        assert "<bdi>queue/orders</bdi>" not in await browser.get("/schemas?search=others")

    with container(f'{CONFIGURATION}\n[[stream]]\naddress = "stream/$schemas"\n') as url:
        browsed(url, work)
