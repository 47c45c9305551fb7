"""What management shows, against what its documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cogwork.container.management import rows
from cogwork.container.management.inventory import Entities, links_of, mesh_of
from cogwork.container.mesh import rows as mesh_rows
from cogwork.nodes.management import node, operations
from cogwork.plugin.mesh import LinkRow

PAGE = (Path(__file__).parents[3] / "docs" / "management.md").read_text()

ATTRIBUTES = {
    "container": rows.CONTAINER,
    "connection": rows.CONNECTION,
    "session": rows.SESSION,
    "link": rows.LINK,
    "address": rows.ADDRESS,
    "queue": rows.QUEUE,
    "node": rows.NODE,
    "org.cogwork.link": mesh_rows.LINK,
    "org.cogwork.mesh": mesh_rows.MESH,
}


class Linked:
    """A container with two links."""

    def links(self) -> list[LinkRow]:
        return [
            LinkRow("amqps://ann@h:1", "out", "up", "south", 2, since_s=1.5, bytes_in=7),
            LinkRow("amqp://[::2]:5672", "out", "refused", None, 1, since_s=2, error="no"),
        ]

    def add_link(self, url: str, cost: int) -> None:
        raise NotImplementedError

    def remove_link(self, url: str) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise AssertionError

    def snapshot(self) -> dict[str, object]:
        nobody: dict[str, object] = {"links": [], "containers": [], "shards": []}
        return {"id": "north", "incarnation": 1, "leaving": None, **nobody}


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


@pytest.mark.parametrize(
    "name", ["amqps://ann@h:1", "h:1", "H:1", "amqp://h:1", "amqps://ann:secret@h:1/"]
)
def test_a_link_is_found_by_its_host_and_port(name: str) -> None:
    row = links_of(Linked()).find(name)
    assert row is not None
    assert tuple(row) == mesh_rows.LINK
    assert (row["name"], row["neighbour"], row["bytes_in"]) == ("amqps://ann@h:1", "south", 7)
    assert row["since"] == "1970-01-01T00:00:01.500+00:00"


def test_a_link_that_is_not_there_is_not_found() -> None:
    links = links_of(Linked())
    assert len(links) == 2
    assert links.find("[::2]:5672") is not None
    assert links.find("h:2") is None
    assert links.find("no link") is None


def test_the_mesh_is_found_by_the_container_that_sees_it() -> None:
    row = mesh_of(Linked(), "north").find("north")
    assert row is not None
    assert tuple(sorted(row)) == tuple(sorted(mesh_rows.MESH))
    assert mesh_of(Linked(), "north").find("south") is None


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_every_attribute_is_in_the_documentation(kind: str) -> None:
    section = PAGE.partition("## Attributes")[2]
    line = re.search(rf"^\| `{kind}` \| (.*) \|$", section, re.MULTILINE)
    assert line
    assert tuple(re.findall(r"`([\w-]+)`", line[1])) == ATTRIBUTES[kind]


def test_limits_are_in_the_documentation() -> None:
    assert f"at most {operations.PAGE_MAX} entities" in PAGE
    assert f"at most {node.REQUEST_SIZE_BYTES_MAX // 1024} KiB" in PAGE
