"""The page on replication, against the code that it specifies."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from cogwork.cluster import declarations
from cogwork.replication import call_tracker, calls, files, journal_records, scheduler
from cogwork.replication.outbox import OWN_MARK
from cogwork.replication.pacing import Pacing

PAGE = (Path(__file__).parents[3] / "docs" / "internals" / "replication.md").read_text()

DASH = "\u2013"
OF_EVERY_CALL = ("number", "stream")
ANSWERS = {
    "Proposal": "Results",
    "Read": "Records",
    "GetBounds": "Bounded",
    "FindTime": "TimeIs",
    "GetSnapshot": "SnapshotIs",
    "GetMembers": "MembersAre",
    "GetMove": "MoveIs",
    "GetRoom": "RoomIs",
    "GetIdentity": "IdentityIs",
    "GetFloor": "FloorIs",
    "GetApplied": "AppliedIs",
}


def table(name: str) -> list[list[str]]:
    """Return a table's rows, without its head."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    lines = PAGE.partition(begin)[2].partition(end)[0].splitlines()[2:]
    assert lines
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(text: str) -> tuple[str, ...]:
    return () if text == DASH else tuple(text.split(", "))


def test_a_datagram_is_known_by_its_first_octet() -> None:
    octets = [int(row[0]) for row in table("datagrams")]
    assert octets == [scheduler.FRAME[0], call_tracker.CALL[0]]


def test_every_call_is_there_with_its_answer() -> None:
    rows = table("calls")
    assert {row[0]: row[2] for row in rows} == ANSWERS
    others = {each.__name__ for each in calls.Call.__args__} - ANSWERS.keys()
    assert others == set()
    answers = {each.__name__ for each in calls.Answer.__args__} - set(ANSWERS.values())
    assert answers == {"Refused"}
    for call, fields, answer, its_fields in rows:
        assert getattr(calls, call).__struct_fields__ == (*OF_EVERY_CALL, *names(fields))
        assert getattr(calls, answer).__struct_fields__ == ("number", *names(its_fields))


def test_the_kinds_of_records_are_there() -> None:
    kinds = [int(row[0].split()[0]) for row in table("records")]
    assert kinds == [
        journal_records.HARD_STATE,
        journal_records.INSTALLED,
        journal_records.COMPACTED,
        journal_records.GIVEN_UP,
        journal_records.ENTRY,
        journal_records.ENTRY_AGAIN,
    ]


def test_the_octets_of_a_state_are_there() -> None:
    codes = files._HEAD.format[1:]
    firsts = [int(row[0].split(DASH)[0]) for row in table("state")]
    sizes = [struct.calcsize(f">{code}") for code in codes]
    assert firsts == [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    assert table("state")[1][2] == str(files.VERSION)


@pytest.mark.parametrize("row", table("commands"), ids=lambda row: row[0])
def test_the_commands_of_the_cluster_are_there(row: list[str]) -> None:
    assert getattr(declarations, row[0]).__struct_fields__ == names(row[1])


def test_the_commands_are_all() -> None:
    wanted = {each.__name__ for each in declarations.Command.__args__}
    assert {row[0] for row in table("commands")} == wanted


def test_the_figures_of_an_outbox_are_there() -> None:
    pacing = Pacing()
    assert f"an answer has {pacing.answer_timeout_s} s" in PAGE
    assert f"and {pacing.answer_timeout_max_s:.0f} s at most" in PAGE
    assert f"not answered in {pacing.give_up_s:.0f} s, while nothing else is" in PAGE
    assert f"at most {pacing.waiting_bytes_max >> 20} MiB" in PAGE
    assert f"`{OWN_MARK.hex(' ')}`" in PAGE
    assert f"While {pacing.busy_bytes >> 10} KiB or more" in PAGE
    assert f"less than {pacing.gather_bytes >> 10} KiB waits" in PAGE
