"""What the console does to a container: each action by its form, by rights, with hostile input."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from consoles import TOKEN, Browser, browsed

import cogwork
from cogwork.console.actions.action import number_of, pairs_of, words_of
from cogwork.console.actions.registry import ACTIONS
from cogwork.console.errors import WrongForm
from cogwork.console.text import BODY_CHARACTERS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

from cogwork.testing import container


def flashes(page: str) -> list[tuple[str, str]]:
    """List what a page says once."""
    return re.findall(r'<p class="flash (\w+)" role="status"><bdi>(.*?)</bdi></p>', page)


def fact(page: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd>(.*?)</dd>", page)
    assert found is not None, page
    return re.sub("<.*?>", "", found[1])


def test_a_queue_from_its_declaration_to_its_end(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        page = await browser.do(
            "/queues", "/do/queue.declare", name="queue/own.jobs", options="ttl_s=60\npriorities=5"
        )
        told = "queue/own.jobs declared, in memory, until the container stops"
        assert flashes(page) == [("done", told)]
        here = "/queue?name=queue%2Fown.jobs"
        assert fact(page := await browser.get(here), "depth") == "0"
        for number in range(3):
            body, sent = f"<b>{number}</b>\nline two", {"name": "queue/own.jobs"}
            page = await browser.do(
                here, "/do/queue.publish", **sent, body=body, properties='trace="<i>"\nnumber=7'
            )
            assert flashes(page) == [("done", "Published: it was accepted.")]
        assert fact(page, "depth") == "3"
        peeked = await browser.get("/queue/items?name=queue%2Fown.jobs&from=1")
        assert "&lt;b&gt;1&lt;/b&gt;\nline two</pre>" in peeked
        assert "&lt;i&gt;" in peeked
        assert "&lt;b&gt;0" not in peeked
        assert "<b>" not in peeked
        page = await browser.do(here, "/do/queue.get", name="queue/own.jobs", count="2")
        assert flashes(page) == [("done", "2 items taken off queue/own.jobs")]
        assert page.count("<article") == 2
        assert fact(await browser.get(here), "depth") == "1"
        await browser.do("/queues", "/do/queue.declare", name="queue/own.other")
        page = await browser.do(
            here, "/do/queue.move", name="queue/own.jobs", target="queue/own.other", count="5"
        )
        assert flashes(page) == [("done", "1 items moved")]
        other = "/queue?name=queue%2Fown.other"
        page = await browser.do(other, "/do/queue.redrive", name="queue/own.other", count="")
        assert flashes(page)[0][0] == "problem"
        assert "1 are no dead letters and stay" in flashes(page)[0][1]
        page = await browser.do(other, "/do/queue.purge", name="queue/own.other")
        assert flashes(page) == [("done", "1 items purged")]
        page = await browser.do(other, "/do/queue.delete", name="queue/own.other", list="/queues")
        assert flashes(page) == [("done", "queue/own.other deleted")]
        assert "<h1>Queues</h1>" in page
        assert "<h1>Not found</h1>" in await browser.get(other, 404)

    browsed(url, work)


def test_a_stream_from_its_creation_to_its_end(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        page = await browser.do("/streams", "/do/stream.create", name="logs")
        assert flashes(page) == [("done", "stream/logs is open")]
        here = "/stream?name=stream%2Flogs"
        empty = await browser.get("/stream/records?name=stream%2Flogs")
        assert "There are none here" in empty
        async with (
            cogwork.connect(url, user="operator", password="secret") as client,
            client.stream("logs") as stream,
        ):
            await stream.append(f'{{"n": {number}}}' for number in range(45))
        last = await browser.get("/stream/records?name=stream%2Flogs")
        assert re.findall(r"<h2><bdi>record (\d+)<", last) == [str(at) for at in range(25, 45)]
        assert 'rel="next"' not in last
        some = await browser.get("/stream/records?name=stream%2Flogs&from=3")
        assert "{&#34;n&#34;: 3}</pre>" in some
        assert "from=23" in some
        assert "There are none here" in await browser.get(
            "/stream/records?name=stream%2Flogs&from=99"
        )
        await browser.get("/stream/records?name=stream%2Flogs&from=x", 400)
        page = await browser.do(
            here, "/do/stream.append", name="stream/logs", body='{"n": 45}', encoding="JSON as AMQP"
        )
        assert fact(page, "next offset") == "46"
        page = await browser.do(here, "/do/stream.trim", name="stream/logs", before="40")
        assert flashes(page) == [("done", "Records from 40 to 46 are left.")]
        page = await browser.do(here, "/do/stream.delete", name="stream/logs", list="/streams")
        assert flashes(page) == [("done", "stream/logs deleted")]

    browsed(url, work)


def test_an_exchange_with_a_binding(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        page = await browser.do(
            "/exchanges", "/do/exchange.declare", name="news", type="topic", arguments=""
        )
        assert flashes(page) == [("done", "news declared")]
        here, name = "/exchange?name=exchange%2Fnews", "exchange/news"
        await browser.do("/queues", "/do/queue.declare", name="queue/own.news")
        bound = {"name": name, "destination": "queue/own.news", "key": "a.#", "arguments": ""}
        page = await browser.do(here, "/do/exchange.bind-to", **bound)
        assert flashes(page) == [("done", "bound")]
        assert "a.#" in page
        page = await browser.do(here, "/do/exchange.publish", name=name, body="x", subject="b")
        assert flashes(page) == [("problem", "Nobody takes the message: it went nowhere.")]
        page = await browser.do(here, "/do/exchange.publish", name=name, body="x", subject="a.b")
        assert flashes(page) == [("done", "Published: it was accepted.")]
        page = await browser.do(here, "/do/exchange.delete", name=name, if_unused="on")
        assert flashes(page)[0][0] == "problem"
        page = await browser.do("/bindings", "/do/exchange.unbind", **bound)
        assert flashes(page) == [("done", "the binding is removed")]
        page = await browser.do("/bindings", "/do/exchange.unbind", **bound)
        assert flashes(page) == [("problem", "there is no such binding")]
        page = await browser.do(here, "/do/exchange.delete", name=name, list="/exchanges")
        assert flashes(page) == [("done", "exchange/news deleted")]

    browsed(url, work)


def test_clients_are_shown_and_can_be_sent_away(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        name = "<img src=x>"
        async with (
            cogwork.connect(url, user="keeper", password="key", name=name) as client,
            client.consume("queue/own.a"),
        ):
            page = await browser.get("/connections?search=keeper")
            (row,) = re.findall(r"<tr>\s*<td .*?</tr>", page, re.DOTALL)
            assert "&lt;img src=x&gt;" in row
            found = re.search(r'href="(/connection\?name=(\d+))"', row)
            assert found is not None
            page = await browser.get(found[1])
            assert "queue/own.a" in page, "its links"
            link = re.search(r'href="(/link\?name=(\d+))"', page)
            assert link is not None
            assert fact(await browser.get(link[1]), "credit") == "100"
            page = await browser.do(link[1], "/do/link.detach", name=link[2], list="/links")
            assert flashes(page) == [("done", "The link is detached.")]
            page = await browser.do(
                found[1], "/do/connection.close", name=found[2], list="/connections"
            )
            assert flashes(page) == [("done", "The connection is closed.")]

    browsed(url, work)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A container that keeps what is declared."""
    folder: Path = tmp_path_factory.mktemp("kept")
    permissions = '[{ address = "$management", rights = ["send", "manage"] }]'
    head = f'data_dir = "{folder}"\n[anonymous]\npermissions = {permissions}\n'
    with container(head, id="kept") as found:
        asyncio.run(risen(found))
        yield found


async def risen(url: str) -> None:
    """Wait until all that a cluster may declare can be: its feature level rises after the start."""
    async with cogwork.connect(url) as client, asyncio.timeout(20):
        while True:
            row: Any = (await client.manage("READ", {"type": "container"})).body
            cluster = row["cluster"]
            if cluster["level"] == cluster["supports"].get("kept"):
                return
            await asyncio.sleep(0.02)


def test_administration(kept: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in("", "")
        page = await browser.do("/users", "/do/user.add", name="bob", password="pw", groups="ops")
        assert flashes(page)[0][0] == "done", page
        assert "password_hash" not in await browser.get("/user?name=bob")
        async with cogwork.connect(kept, user="bob", password="pw"):
            page = await browser.do("/user?name=bob", "/do/user.disconnect", name="bob")
            assert flashes(page) == [("done", "1 connections closed")]
        page = await browser.do(
            "/permissions", "/do/permission.add", user="bob", address="queue/#", send="on"
        )
        assert "allow user" in flashes(page)[0][1]
        page = await browser.do("/permissions", "/do/permission.add", address="queue/#")
        assert flashes(page) == [("problem", "Add a permission: give either a user or a group")]
        page = await browser.do("/vhosts", "/do/vhost.add", name="west")
        assert "west" in page
        page = await browser.do("/limits", "/do/limit.set", name="queues", value="7")
        assert flashes(page) == [("done", "queues is 7")]
        page = await browser.do("/limit?name=queues", "/do/limit.change", name="queues", value="8")
        assert fact(page, "<bdi>value</bdi>") == "8"
        page = await browser.do(
            "/policies",
            "/do/policy.set",
            name="short",
            pattern="^x",
            definition="message-ttl=60000",
            priority="1",
        )
        assert flashes(page) == [("done", "policy short set")]
        for path, name in (("user", "bob"), ("vhost", "west"), ("policy", "short")):
            page = await browser.do(f"/{path}?name={name}", f"/do/{path}.remove", name=name)
            assert flashes(page) == [("done", f"{name} removed")], page

    browsed(kept, work)


def test_what_a_user_may_not_do_is_told_and_not_done(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in("keeper", "key")
        for action in ("queue.declare", "queue.purge", "queue.delete", "queue.get"):
            page = await browser.do("/queues", f"/do/{action}", name="queue/others", count="1")
            ((level, text),) = flashes(page)
            assert level == "problem", action
            assert "no permission to" in text
        page = await browser.do("/queues", "/do/connection.close", name="1")
        assert flashes(page)[0][0] == "problem"

    browsed(url, work)


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_no_action_is_done_without_the_token_of_the_session(url: str, name: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        sent = {"name": "queue/own.a", "back": "/queues", "form_token": "x"}
        answer = await browser.post(f"/do/{name}", sent)
        assert answer.status_code == 400
        assert "the form is out of date" in answer.text

    browsed(url, work)


def test_forms_that_make_no_sense_are_told(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        here = "/queues"
        await browser.do(here, "/do/queue.declare", name="queue/own.form")
        for action, fields, text in (
            ("queue.declare", {"name": ""}, "the name is missing"),
            ("queue.declare", {"name": "queue/own.b", "options": "colour=red"}, "unknown option"),
            ("queue.declare", {"name": "queue/own.b", "durability": "x"}, "expected one of auto"),
            ("queue.get", {"name": "queue/own.form", "count": "51"}, "from 0 to 50"),
            ("queue.get", {"name": "queue/own.form", "count": "9" * 99}, "from 0 to 50"),
            ("queue.publish", {"name": "queue/own.form", "properties": "x"}, "is no K=V"),
            (
                "queue.publish",
                {"name": "queue/own.form", "body": "{", "encoding": "JSON as AMQP"},
                "expected JSON",
            ),
            ("queue.move", {"name": "queue/own.form"}, "To the queue is missing"),
            ("queue.publish", {"name": "queue/a\u202eb", "body": "x"}, "cannot be seen"),
        ):
            page = await browser.do(here, f"/do/{action}", **fields)
            ((level, said),) = flashes(page)
            assert (level, text in said) == ("problem", True), said
            assert "\u202e" not in page
        token = TOKEN.search(await browser.get(here))
        assert token is not None
        answer = await browser.post("/do/queue.fly", {"form_token": token[1], "name": "x"})
        assert answer.status_code == 404
        sent = {"form_token": token[1], "name": "queue/x", "back": "https://evil.example/"}
        answer = await browser.post("/do/queue.purge", sent)
        assert answer.headers["location"] == "/"

    browsed(url, work)


def test_huge_and_hostile_bodies_are_cut_and_escaped(url: str) -> None:
    address = "queue/own.bodies"

    async def work(browser: Browser) -> None:
        async with cogwork.connect(url, user="operator", password="secret") as client:
            await client.publish(address, "<script>x</script>\u202e\x00\x1b[31m" + "y" * 1_000_000)
            await client.publish(address, b"\xff\xfe<b>", subject="<i>\u2066")
        await browser.log_in()
        page = await browser.get(f"/queue/items?name={address}")
        assert len(page) < 5 * BODY_CHARACTERS_MAX
        assert "&lt;script&gt;x&lt;/script&gt;\\u202e\\x00\\x1b[31myyy" in page
        assert "1,000,025 characters in all; the first 4,000 are shown" in page
        assert "<script>x" not in page
        assert "&lt;i&gt;\\u2066" in page
        assert not set(page) & set("\u202e\u2066\x00\x1b")

    browsed(url, work)


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "\u0661", "9" * 30, ""])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(WrongForm, match=r"Items: expected a whole number from 0 to 100"):
        number_of(text, "Items", 100)


def test_values_of_pairs_are_json_or_text() -> None:
    found = pairs_of('a=1\n b = two \n\nc={"d": null}\ne=[', "Options")
    assert found == {"a": 1, "b": "two", "c": {"d": None}, "e": "["}
    assert words_of(" a, b,,c ") == ["a", "b", "c"]


def test_lists_are_read_anew_after_a_change(url: str) -> None:
    now = [0.0]

    async def work(browser: Browser) -> None:
        await browser.log_in()
        await browser.get("/queues")
        async with cogwork.connect(url, user="operator", password="secret") as client:
            await client.publish("queue/own.late", "x")
        assert "queue/own.late" not in await browser.live("/queues"), "kept for a moment"
        await browser.do("/queues", "/do/queue.declare", name="queue/own.later")
        assert "queue/own.late<" in await browser.live("/queues")
        await asyncio.sleep(0)
        now[0] += 60
        assert "queue/own.later" in await browser.live("/queues?search=later")

    browsed(url, work, clock=lambda: now[0])
