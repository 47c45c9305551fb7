"""Lists of the console: searched, sorted, cut; hostile names are text, and rights hold."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from consoles import Browser, browsed

import cogwork
from cogwork.console.kinds import KINDS
from cogwork.console.listing import Asked, Listing, listing_of
from cogwork.console.views import details, lists, overview

if TYPE_CHECKING:
    from collections.abc import Sequence

QUEUES = KINDS["queues"]
LINKS = KINDS["links"]
HOSTILE = "queue/own.<script>alert(1)</script>\"'&amp; \u05e9\u05dc\u05d5\u05dd"


def asked(**query: str) -> Asked:
    return Asked.of(query, QUEUES)


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"address": f"queue/q{at}", "depth": at * 7 % count, "policy": None, "problem": None}
        for at in range(count)
    ]


def names(listing: Listing) -> list[str]:
    return [row["address"] for row in listing.rows]


def test_a_page_has_fifty_rows() -> None:
    listing = listing_of(QUEUES, rows(120), asked(page="3"))
    assert (len(listing.rows), listing.pages, listing.total) == (20, 3, 120)
    assert names(listing)[0] == "queue/q100"


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 40, "\u0663"])
def test_a_page_that_there_is_not_becomes_one_that_there_is(page: str) -> None:
    assert listing_of(QUEUES, rows(60), asked(page=page)).asked.page == 1
    assert listing_of(QUEUES, rows(60), asked(page="9")).asked.page == 2


def test_a_search_finds_a_part_of_a_name_in_any_case() -> None:
    listing = listing_of(QUEUES, rows(120), asked(search="Q11"))
    assert names(listing) == ["queue/q11", *(f"queue/q11{digit}" for digit in range(10))]
    assert (listing.found, listing.total) == (11, 120)


def test_numbers_are_sorted_as_numbers_and_what_is_missing_first() -> None:
    listing = listing_of(
        QUEUES, [{"depth": 9}, {"depth": None}, {"depth": 10}], asked(sort="depth")
    )
    assert [row["depth"] for row in listing.rows] == [None, 9, 10]
    mixed: list[dict[str, Any]] = [{"address": "b"}, {"address": 3}, {"address": "A"}]
    listing = listing_of(QUEUES, mixed, asked(sort="address", order="down"))
    assert names(listing) == ["b", "A", 3]


def test_a_click_on_a_column_turns_it_round() -> None:
    depth, address = QUEUES.columns[1], QUEUES.columns[0]
    first = asked(page="2", search="a").sorted_by(depth)
    assert first.query() == "search=a&sort=depth&order=down"
    assert first.sorted_by(depth).query() == "search=a&sort=depth"
    assert asked().sorted_by(address).query() == "sort=address"


def test_what_is_no_column_sorts_nothing() -> None:
    assert asked(sort="password") == Asked()


def test_links_can_be_those_of_one_connection() -> None:
    found = [{"link": "a", "connection": "1"}, {"link": "b", "connection": "11"}]
    only = Asked.of({"only_connection": "1", "only_credit": "5"}, LINKS)
    assert [row["link"] for row in listing_of(LINKS, found, only).rows] == ["a"]
    assert only.query() == "only_connection=1"


def publish(url: str, addresses: Sequence[str]) -> None:
    async def run() -> None:
        async with cogwork.connect(url, user="operator", password="secret") as client:
            for each in addresses:
                await client.publish(each, "x")

    asyncio.run(run())


def test_every_list_is_shown(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        for path, kind in KINDS.items():
            text = await browser.get(f"/{path}?search=%3Cb%3E")
            assert f"<h1>{kind.title}</h1>" in text
            assert "<b>" not in text
            assert f'<a href="/{path}" aria-current="page">' in text
            assert "<h1>" not in await browser.live(f"/{path}")

    browsed(url, work)


def test_a_page_does_not_wait_for_a_long_list(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (lists, overview):
        monkeypatch.setattr(each, "FIRST_CONTENT_S", 0)
    monkeypatch.setattr(details, "RELATED_S", 0)

    async def work(browser: Browser) -> None:
        await browser.log_in()
        page = await browser.get("/exchanges?search=amq")
        assert "Reading a long list" in page
        assert 'data-live="/exchanges?search=amq" data-every="3" data-now>' in page
        assert "amq.topic" in await browser.live("/exchanges?search=amq")
        assert "Reading long lists" in await browser.get("/")
        assert "Reading long lists" not in await browser.live("/")
        here = "/exchange?name=exchange%2Famq.topic"
        sent = {"destination": "queue/own.bound", "key": "a.#", "arguments": ""}
        await browser.do("/queues", "/do/queue.declare", name="queue/own.bound")
        name = "exchange/amq.topic"
        assert "<h2>Bindings" not in await browser.do(
            here, "/do/exchange.bind-to", name=name, **sent
        )
        assert "<h2>Bindings" in await browser.live(here)
        await browser.get("/queues")
        await browser.console.sessions.close()

    browsed(url, work)


def test_hostile_names_are_text(url: str) -> None:
    publish(url, [HOSTILE])

    async def work(browser: Browser) -> None:
        await browser.log_in()
        text = await browser.get("/queues?search=script")
        assert (
            "<bdi>queue/own.&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;amp; "
            "\u05e9\u05dc\u05d5\u05dd</bdi>"
        ) in text
        assert "<script>alert" not in text
        assert text.count("<tr>") == 2, "the heading, and one row"

    browsed(url, work)


def test_a_user_sees_what_it_may_manage_and_is_told_what_not(url: str) -> None:
    publish(url, ["queue/own.a", "queue/others"])

    async def work(browser: Browser) -> None:
        await browser.log_in("keeper", "key")
        text = await browser.get("/queues")
        assert "queue/own.a" in text
        assert "queue/others" not in text
        for path in ("/connections", "/users"):
            refused = await browser.get(path, 403)
            assert "<h1>You may not see this</h1>" in refused
            assert "operator" not in refused
            banner = await browser.live(path, 403)
            assert "<" not in banner
        text = await browser.get("/")
        assert "You may not see the container itself" in text
        assert "queue/own.a" in text
        assert "queue/others" not in text

    browsed(url, work)


def test_a_user_without_rights_sees_nothing(url: str) -> None:
    publish(url, ["queue/others"])

    async def work(browser: Browser) -> None:
        await browser.log_in("", "")
        for path in ("/queues", "/connections", "/limits"):
            text = await browser.get(path, 403)
            assert "queue/others" not in text
            assert re.search("<h1>You may not see this</h1>", text)

    browsed(url, work)
