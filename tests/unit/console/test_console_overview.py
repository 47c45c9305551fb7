"""The first page of the console: figures, charts, alarms; and a container that goes away."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from consoles import CONFIGURATION, Browser, browsed

from cogwork.console.charts import Line, line_chart
from cogwork.console.history import History
from cogwork.console.session import LOST, SILENT
from cogwork.console.views.overview import Alarm, alarms_of
from cogwork.testing import container

FINE: dict[str, Any] = {
    "is_draining": False,
    "memory": {"are_publishers_blocked": False},
    "disk": {"total_bytes": 1000, "free_bytes": 900},
    "cluster": None,
    "certificate_days_left": None,
    "durable_in_memory": 0,
}


@pytest.mark.parametrize(
    ("key", "wrong", "text"),
    [
        ("is_draining", True, "stopping"),
        ("memory", {"are_publishers_blocked": True}, "Publishers wait"),
        ("disk", {"total_bytes": 1000, "free_bytes": 99}, "nearly full: 99 B left"),
        ("cluster", {"is_current": False}, "does not know all declarations"),
        ("certificate_days_left", -1, "expires in -1 days"),
        ("durable_in_memory", 1234, "1,234 durable messages"),
    ],
)
def test_what_is_wrong_with_a_container_is_an_alarm(key: str, wrong: object, text: str) -> None:
    assert alarms_of(FINE, [], [], []) == []
    container = copy.deepcopy(FINE) | {key: wrong}
    (alarm,) = alarms_of(container, [], [], [])
    assert text in alarm.text


def test_of_many_problems_the_first_are_told() -> None:
    queues = [
        {"name": f"queue/{at}", "address": f"queue/{at}", "problem": "no owner"} for at in range(9)
    ]
    streams = [{"address": "stream/s", "state": "away", "problem": None}]
    peers = [{"url": "amqp://b", "state": "up", "error": None}]
    peers += [{"url": "amqp://c", "state": "refused", "error": "wrong user"}]
    alarms = alarms_of({}, queues, streams, peers)
    assert len(alarms) == 8
    assert alarms[0] == Alarm("queue/0: no owner", "/queue?name=queue%2F0")
    assert [each.text for each in alarms[5:]] == [
        "and 4 other queues",
        "stream/s: away",
        "amqp://c: wrong user",
    ]


def test_rates_are_of_the_time_between_two_samples() -> None:
    now = [0.0]
    history = History(lambda: now[0])
    for at_s, count in ((0, 100), (0.1, 500), (2, 300), (4, 250), (30, 900)):
        now[0] = at_s
        history.note("box", {"in": count})
    assert history.levels("box", "in") == [(-30, 100), (-28, 300), (-26, 250), (0, 900)]
    assert history.rates("box", "in") == [(-28, 100), (-26, 0)], "one that fell began anew"
    now[0] = 301
    assert history.levels("box", "in") == [(-299, 300), (-297, 250), (-271, 900)]
    assert history.levels("other", "in") == []


def test_figures_of_some_subjects_are_kept() -> None:
    history = History(lambda: 0.0)
    for number in range(60):
        history.note(str(number), {"in": number})
    assert history.levels("9", "in") == []
    assert history.levels("59", "in") == [(0, 59)]


def test_a_chart_parts_its_lines_where_nobody_looked() -> None:
    points = [(-100.0, 5.0), (-98.0, 30.0), (-20.0, 10.0), (-18.0, 0.0)]
    drawn = line_chart("<Rates>", [Line("in", points)], "{:.0f}".format)
    assert drawn.count("<polyline") == 2
    assert 'aria-label="&lt;Rates&gt;: in 0"' in drawn
    assert ">50</text>" in drawn, "the top is a round number"
    assert "no figures yet" in line_chart("Rates", [Line("in", [])], str)


@pytest.mark.parametrize(
    ("most", "is_binary", "top"),
    [
        (0, False, "1"),
        (0.03, False, "0.05"),
        (70, False, "100"),
        (200, False, "200"),
        (0, True, "1"),
        (1000, True, "1024"),
        (1024, True, "1024"),
    ],
)
def test_the_top_of_a_chart_is_round(most: float, is_binary: bool, top: str) -> None:
    drawn = line_chart("x", [Line("in", [(0, most)])], "{:g}".format, is_binary=is_binary)
    assert re.findall(r'y="15">([\d.]+)<', drawn) == [top]


def test_a_container_that_goes_away_is_told_and_comes_back() -> None:
    running = container(CONFIGURATION, id="box")
    with running as url:
        port = int(url.rpartition(":")[2])

        async def work(browser: Browser) -> None:
            await browser.log_in()
            assert "<dd><bdi>box</bdi></dd>" in await browser.live("/")
            running.stop()
            assert await browser.live("/", 503) in (SILENT, LOST)
            page = await browser.get("/queues", 503)
            assert 'data-live="/queues" data-every="2" data-reload' in page
            answer = await browser.post("/login", {"user": "operator", "password": "secret"})
            assert answer.status_code == 503
            with container(CONFIGURATION, port=port, id="again"):
                for _ in range(100):
                    answer = await browser.http.get("/", headers={"cogwork-fragment": "1"})
                    if answer.status_code == 200:
                        break
                assert "<dd><bdi>again</bdi></dd>" in answer.text
                await browser.get("/queues")

        browsed(url, work)


def test_a_user_who_is_not_known_any_more_is_logged_out() -> None:
    running = container(CONFIGURATION, id="box")
    with running as url:
        port = int(url.rpartition(":")[2])

        async def work(browser: Browser) -> None:
            await browser.log_in()
            running.stop()
            other = CONFIGURATION.replace('name = "operator"', 'name = "another"')
            with container(other, port=port, id="box"):
                for _ in range(100):
                    answer = await browser.http.get("/queues")
                    if answer.status_code == 303:
                        break
                assert answer.headers["location"] == "/login?next=%2Fqueues&why=refused"
                text = await browser.get(answer.headers["location"])
                assert "does not let this user in any more" in text
                assert len(browser.console.sessions) == 0

        browsed(url, work)
