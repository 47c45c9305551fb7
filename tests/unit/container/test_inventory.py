"""What management shows, against what its documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cogwork.container import rows
from cogwork.container.inventory import Entities
from cogwork.nodes.management import node, operations

PAGE = (Path(__file__).parents[3] / "docs" / "management.md").read_text()

ATTRIBUTES = {
    "container": rows.CONTAINER,
    "connection": rows.CONNECTION,
    "session": rows.SESSION,
    "link": rows.LINK,
    "address": rows.ADDRESS,
    "queue": rows.QUEUE,
    "node": rows.NODE,
}


def numbers(count: int) -> Entities[int]:
    return Entities(
        ("name",),
        lambda: range(count),
        str,
        lambda number: {"name": str(number)},
        lambda name: int(name) if int(name) < count else None,
    )


def test_a_page_is_a_part_of_the_whole() -> None:
    found = numbers(10)
    assert len(found) == 10
    assert [row["name"] for row in found.rows(3, 4)] == ["3", "4", "5", "6"]
    assert list(found.rows(9, 4)) == [{"name": "9"}]
    assert list(found.rows(10, 4)) == []


def test_what_may_not_be_seen_is_not_counted() -> None:
    even = numbers(10).rows(1, 3, lambda name: int(name) % 2 == 0)
    assert [row["name"] for row in even] == ["2", "4", "6"]


def test_one_is_found_by_its_name() -> None:
    assert numbers(10).find("7") == {"name": "7"}
    assert numbers(10).find("17") is None


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_every_attribute_is_in_the_documentation(kind: str) -> None:
    section = PAGE.partition("## Attributes")[2]
    line = re.search(rf"^\| `{kind}` \| (.*) \|$", section, re.MULTILINE)
    assert line
    assert tuple(re.findall(r"`([\w-]+)`", line[1])) == ATTRIBUTES[kind]


def test_limits_are_in_the_documentation() -> None:
    assert f"at most {operations.PAGE_MAX} entities" in PAGE
    assert f"at most {node.REQUEST_SIZE_BYTES_MAX // 1024} KiB" in PAGE
