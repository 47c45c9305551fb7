"""What `cogwork top` makes of looks and keys."""

from __future__ import annotations

import pytest

from cogwork.cli.top.keyboard import keys_of
from cogwork.cli.top.pages import PAGES
from cogwork.cli.top.rates import rate, with_rates
from cogwork.cli.top.screen import bars
from cogwork.cli.top.view import View, chosen, pressed

QUEUES = View.of("queues")


@pytest.mark.parametrize(
    ("before", "now", "elapsed_s", "expected"),
    [(10, 30, 2.0, 10.0), (30, 10, 2.0, 0.0), (None, 30, 2.0, 0.0), (10, 30, 0.0, 0.0)],
    ids=["rises", "started anew", "not known before", "at once"],
)
def test_a_rate(before: object, now: object, elapsed_s: float, expected: float) -> None:
    assert rate(before, now, elapsed_s) == expected


def test_rows_get_the_rates_of_their_own() -> None:
    def row(name: str, count: int) -> dict[str, object]:
        return {"name": name, "vhost": "", "in": count, "out": 0}

    before: dict[object, dict[str, object]] = {(None, "", "a"): row("a", 100)}
    rows = with_rates(PAGES["queues"], [row("a", 300), row("new", 900)], before, 2.0)
    assert [each["in_per_s"] for each in rows] == [100, 0]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_sorted_by_a_column_that_it_has(page: str) -> None:
    assert PAGES[page].order in PAGES[page].columns
    assert not any(each.endswith("_per_s") for each in PAGES[page].counts)


def test_keys_choose_pages() -> None:
    assert pressed(QUEUES, "2") == View.of("streams")
    assert pressed(QUEUES, "tab") == View.of("streams")
    assert pressed(View.of("links"), "tab") == QUEUES
    assert pressed(QUEUES, "9") == pressed(QUEUES, "0") == pressed(QUEUES, "x") == QUEUES


def test_keys_choose_the_order() -> None:
    assert pressed(QUEUES, "right").order == "unsettled"
    assert pressed(QUEUES, "left").order == "address"
    assert pressed(pressed(QUEUES, "left"), "left").order == "problem"
    assert pressed(QUEUES, "r").is_rising


def test_what_is_paused_stays_so_on_another_page() -> None:
    assert pressed(pressed(QUEUES, " "), "4").is_paused
    assert not pressed(pressed(QUEUES, " "), " ").is_paused


def test_rows_are_sorted_and_scrolled_no_further_than_there_are() -> None:
    rows = [{"ready": each} for each in (3, None, 1, 2)]
    assert [row["ready"] for row in chosen(QUEUES, rows, 2)] == [3, 2]
    assert [row["ready"] for row in chosen(pressed(QUEUES, "down"), rows, 2)] == [2, 1]
    assert [row["ready"] for row in chosen(QUEUES._replace(first=99), rows, 3)] == [2, 1, None]
    assert pressed(QUEUES, "up").first == 0


def test_texts_of_all_kinds_can_be_sorted() -> None:
    rows = [{"ready": each} for each in ("b", "", 1, "a", None)]
    assert [row["ready"] for row in chosen(QUEUES, rows, 9)][:3] == [1, "b", "a"]


def test_what_a_terminal_sends_is_parted_into_keys() -> None:
    assert keys_of("q\x1b[A\x1bOD\t2\x1b[6~") == ["q", "up", "left", "tab", "2", "page down"]
    assert keys_of("\x1b[Zé") == ["\x1b", "[", "Z", "é"]


def test_bars_are_as_high_as_their_share() -> None:
    assert bars([0, 50, 100]) == "▁▅█"
    assert bars([0, 0]) == "▁▁"
    assert bars([]) == ""
