"""Who gets into the console, how sessions end, and what other sites cannot do."""

from __future__ import annotations

import re

import pytest
from consoles import HOME, TOKEN, Browser, browsed

from cogwork.console.views.login import local_path

HOURS_S = 3600.0


class Clock:
    """Time passes when it is told so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_who_is_not_logged_in_is_sent_to_the_form(url: str) -> None:
    async def work(browser: Browser) -> None:
        answer = await browser.http.get("/queues?search=a&page=2")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/login?next=%2Fqueues%3Fsearch%3Da%26page%3D2&why="
        form = await browser.get(answer.headers["location"])
        assert 'name="next" value="/queues?search=a&amp;page=2"' in form
        sent = {"user": "operator", "password": "secret", "next": "/queues?search=a&page=2"}
        answer = await browser.post("/login", sent)
        assert answer.headers["location"] == "/queues?search=a&page=2"
        assert "operator" in await browser.get("/queues")

    browsed(url, work)


def test_a_wrong_password_is_told_and_the_user_kept(url: str) -> None:
    async def work(browser: Browser) -> None:
        answer = await browser.post("/login", {"user": "oper<b>", "password": "no"})
        assert answer.status_code == 401
        assert "does not let user &#39;oper&lt;b&gt;&#39; in" in answer.text
        assert 'value="oper&lt;b&gt;"' in answer.text
        assert "set-cookie" not in answer.headers
        assert len(browser.console.sessions) == 0
        answer = await browser.post("/login", {"user": "a\0b", "password": "x"})
        assert answer.status_code in (400, 401, 503)
        assert "flash problem" in answer.text

    browsed(url, work)


@pytest.mark.parametrize(
    ("base_url", "is_secure", "cookie"),
    [
        (HOME, False, r"cogwork-9420=[\w-]{43}; HttpOnly; Path=/; SameSite=strict"),
        (
            "https://localhost:9420",
            True,
            r"__Host-cogwork-9420=[\w-]{43}; HttpOnly; Path=/; SameSite=strict; Secure",
        ),
    ],
)
def test_the_cookie_is_for_this_console_alone(
    url: str, base_url: str, is_secure: bool, cookie: str
) -> None:
    async def work(browser: Browser) -> None:
        answer = await browser.post("/login", {"user": "operator", "password": "secret"})
        assert re.fullmatch(cookie, answer.headers["set-cookie"])

    browsed(url, work, base_url=base_url, is_secure=is_secure)


def test_every_answer_keeps_scripts_and_frames_of_others_out(url: str) -> None:
    async def work(browser: Browser) -> None:
        for path in ("/login", "/", "/nowhere", "/static/console.js"):
            headers = (await browser.http.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
        form = await browser.get("/login")
        assert not re.search(r"<script(?! src=\"/static/)|<style|\sstyle=|\son\w+=", form)

    browsed(url, work)


def test_a_form_without_the_token_of_its_session_does_nothing(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        for fields in ({"a": "b"}, {"form_token": "x" * 43}, {"form_token": "\u00fc"}):
            answer = await browser.post("/logout", fields)
            assert answer.status_code == 400
            assert "the form is out of date" in answer.text
        assert len(browser.console.sessions) == 1
        found = TOKEN.search(await browser.get("/queues"))
        assert found is not None
        answer = await browser.post("/logout", {"form_token": found[1]})
        assert answer.headers["location"] == "/login"
        assert len(browser.console.sessions) == 0
        assert (await browser.http.get("/queues")).status_code == 303

    browsed(url, work)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": HOME, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://localhost:1"}, 403),
        ({"origin": HOME, "sec-fetch-site": "same-origin"}, 303),
    ],
)
def test_forms_of_other_sites_are_refused(url: str, headers: dict[str, str], status: int) -> None:
    async def work(browser: Browser) -> None:
        fields = {"user": "operator", "password": "secret"}
        assert (await browser.post("/login", fields, **headers)).status_code == status

    browsed(url, work)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9420", 200),
        ("127.0.0.1:9420", 200),
        ("[::1]:9420", 200),
        ("console.example", 200),
        ("evil.example:9420", 421),
        ("127.0.0.1.evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_name_that_others_give_this_machine_is_no_name_of_the_console(
    url: str, host: str, status: int
) -> None:
    async def work(browser: Browser) -> None:
        await browser.get("/login", status, host=host)

    browsed(url, work, hosts=frozenset({"console.example"}))


def test_a_session_ends_when_nobody_asks_for_pages(url: str) -> None:
    clock = Clock()

    async def work(browser: Browser) -> None:
        await browser.log_in()
        for _ in range(3):
            clock.now_s += 20 * 60
            await browser.get("/queues")
        clock.now_s += 20 * 60
        await browser.live("/queues")  # what a page does by itself does not count
        clock.now_s += 20 * 60
        assert await browser.live("/queues", 401) == "Your session has ended."
        answer = await browser.http.get("/queues")
        assert answer.headers["location"] == "/login?next=%2Fqueues&why=ended"
        assert "Your session has ended" in await browser.get(answer.headers["location"])
        await browser.console.sessions.sweep()
        assert len(browser.console.sessions) == 0

    browsed(url, work, clock=clock)


def test_a_session_ends_in_any_case(url: str) -> None:
    clock = Clock()

    async def work(browser: Browser) -> None:
        await browser.log_in()
        for _ in range(12):
            await browser.get("/queues")
            clock.now_s += HOURS_S
        await browser.get("/queues")
        clock.now_s += 1
        await browser.get("/queues", 303)

    browsed(url, work, clock=clock, idle_timeout_s=2 * HOURS_S)


def test_there_are_so_many_sessions_and_no_more(url: str) -> None:
    async def work(browser: Browser) -> None:
        await browser.log_in()
        answer = await browser.post("/login", {"user": "operator", "password": "secret"})
        assert answer.status_code == 503
        assert "there are 1 sessions already" in answer.text

    browsed(url, work, sessions_max=1)


def test_methods_that_no_browser_sends_are_refused(url: str) -> None:
    async def work(browser: Browser) -> None:
        assert (await browser.http.delete("/queues")).status_code == 405

    browsed(url, work)


def test_a_form_that_is_too_large_or_none_is_refused(url: str) -> None:
    async def work(browser: Browser) -> None:
        answer = await browser.post("/login", {"user": "x" * 2_100_000})
        assert (answer.status_code, answer.text) == (400, "the form has more than 2,097,152 bytes")
        answer = await browser.http.post("/login", json={"user": "operator"})
        assert (answer.status_code, answer.text) == (400, "this is no form")

    browsed(url, work)


@pytest.mark.parametrize(
    "text", ["https://evil.example/", "//evil.example", "/\\evil.example", "queues", "", "/a\nb"]
)
def test_a_login_leads_nowhere_else(text: str) -> None:
    assert local_path(text) == "/"


def test_a_login_leads_back() -> None:
    assert local_path("/queue?name=queue%2Fa") == "/queue?name=queue%2Fa"
