"""What many nodes tell at the same time."""

from __future__ import annotations

from cogwork.container.management.gathered import FEW, FIRST_S, NEXT_S, Gathered
from cogwork.plugin.effects import Report

KIND = "streams are away"


class Log:
    """A log, and what is gathered for it."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool]] = []
        self.gathered = Gathered(lambda report, text: self.lines.append((text, report.is_warning)))

    def away(self, count: int, now_s: float) -> None:
        for number in range(count):
            self.gathered.add(Report(f"s{number} is away", is_warning=True, kind=KIND), now_s)


def test_what_is_of_no_kind_is_told_at_once() -> None:
    log = Log()
    log.gathered.add(Report("one"), 0.0)
    assert log.lines == [("one", False)]


def test_a_few_are_told_one_by_one() -> None:
    log = Log()
    log.away(FEW, 0.0)
    log.gathered.tick(FIRST_S / 2)
    assert log.lines == []
    log.gathered.tick(FIRST_S)
    assert log.lines == [(f"s{number} is away", True) for number in range(FEW)]


def test_many_are_one_line() -> None:
    log = Log()
    log.away(500, 0.0)
    log.away(500, FIRST_S / 2)
    log.gathered.add(Report("s1 is back", kind=KIND), FIRST_S / 2)
    log.gathered.tick(FIRST_S)
    line = f"1,000 {KIND}; the first of them: s0 is away"
    assert log.lines == [(line, True)], "what is told at another level is another thing"
    log.gathered.tick(FIRST_S * 2)
    assert log.lines[1:] == [("s1 is back", False)]


def test_what_comes_one_after_the_other_is_a_line_now_and_then() -> None:
    log = Log()
    now_s = 0.0
    while now_s < 30:
        log.away(10, now_s)
        now_s += 1
        log.gathered.tick(now_s)
    log.gathered.close()
    assert [text.split()[0] for text, _ in log.lines] == ["10", "100", "100", "90"]


def test_what_is_over_has_its_first_second_again() -> None:
    log = Log()
    for began_s in (0.0, 3 * NEXT_S):
        log.away(1, began_s)
        log.gathered.tick(began_s + FIRST_S)
        assert len(log.lines) == 1
        log.lines.clear()
        log.gathered.tick(began_s + FIRST_S + NEXT_S)


def test_nothing_is_lost_at_the_end() -> None:
    log = Log()
    log.away(2, 0.0)
    log.gathered.close()
    log.gathered.close()
    assert len(log.lines) == 2
