"""A replica that its container cannot open is made anew by moving it away and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .clusters import clustered, command
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 50


@pytest.mark.parametrize("damaged", ["declaration.json", "00000000000000000000.seg"])
def test_it_takes_no_restart(tmp_path: Path, damaged: str) -> None:
    with clustered(tmp_path) as made:
        made.create("orders", "a,b,c")
        made.members["a"].served.run(
            "send", made.url("a"), "stream/orders", "hello", "--count", str(COUNT)
        )
        within(READY_TIMEOUT_S, lambda: "c" in made.holders("orders"), "c has a replica")
        made.members["c"].kill()
        (tmp_path / "c" / "streams" / made.groups["orders"] / damaged).write_bytes(b"garbage" * 99)
        made.restart("c")

        def state() -> str:
            return str(made.shown("orders", at="c")["state"])

        within(READY_TIMEOUT_S, lambda: state() == "failed", "c cannot use what it has")
        made.move("orders", "a,b", at="a")
        within(READY_TIMEOUT_S, lambda: state() == "open", "c has it without a replica")
        assert made.records("orders", COUNT, at="c") == ["hello"] * COUNT
        assert made.holders("orders") == {"a", "b"}
        made.move("orders", "a,b,c", at="a")
        assert made.holders("orders") == {"a", "b", "c"}
        assert made.records("orders", COUNT, at="c") == ["hello"] * COUNT
        assert made.members["c"].lives == 2


def test_a_move_without_a_majority_says_who_is_missing(tmp_path: Path) -> None:
    with clustered(tmp_path) as made:
        made.create("orders", "a,d,e")
        for name in "bc":
            made.members[name].kill()
        told = made.move("orders", "a,d", at="a", code=1)
        assert "a majority of a, b, c has to be up and linked" in told
        assert "no answer comes from b, c" in told
        assert made.shown("orders", at="a")["wanted"] == ["a", "d", "e"]


def test_records_are_read_from_the_directory_of_a_container_that_is_gone(tmp_path: Path) -> None:
    with clustered(tmp_path) as made:
        made.create("orders", "a,b,c")
        lines = [f"order {number}" for number in range(COUNT)]
        (tmp_path / "lines").write_text("\n".join(lines))
        command(
            "send", made.url("f"), "stream/orders", "--file", str(tmp_path / "lines"), "--durable"
        )
        command("stream", "trim", made.url("a"), "orders", "--before", "10")
        within(READY_TIMEOUT_S, lambda: made.shown("orders", at="b")["first"] == 10, "trimmed")
        made.members["b"].kill()
        data = str(tmp_path / "b")
        files = {each: each.read_bytes() for each in (tmp_path / "b").rglob("*") if each.is_file()}
        assert command("log", "dump", "stream/orders", "--data", data).splitlines() == lines[10:]
        rows = [
            json.loads(line)
            for line in command(
                "log", "dump", "orders", "--data", data, "--from", "40", "--json"
            ).splitlines()
        ]
        assert [row["offset"] for row in rows] == list(range(40, COUNT))
        assert rows[0]["message"]["body"] == lines[40]
        assert {each: each.read_bytes() for each in files} == files, "nothing has changed"
        told = command("log", "dump", "other", "--data", data, code=1)
        assert "there is no replica of a stream 'other' (expected one of $cluster, orders)" in told
