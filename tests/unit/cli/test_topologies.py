"""Which containers of a local mesh are linked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.cli.process.topologies import NAMED, TopologyError, topology_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "count", "pairs"),
    [
        ("line", 4, ["c1-c2", "c2-c3", "c3-c4"]),
        ("ring", 4, ["c1-c2", "c2-c3", "c3-c4", "c4-c1"]),
        ("ring", 2, ["c1-c2"]),
        ("star", 4, ["c1-c2", "c1-c3", "c1-c4"]),
        ("mesh", 3, ["c1-c2", "c1-c3", "c2-c3"]),
        *((name, 1, []) for name in NAMED),
    ],
)
def test_each_topology_has_its_links(name: str, count: int, pairs: list[str]) -> None:
    topology = topology_of(count, name)
    assert topology.ids == [f"c{number}" for number in range(1, count + 1)]
    assert ["-".join(pair) for pair in topology.pairs] == pairs


@pytest.mark.parametrize("name", list(NAMED))
def test_each_link_is_dialled_once(name: str) -> None:
    topology = topology_of(6, name)
    dialled = [{one, other} for one in topology.ids for other in topology.dialled_by(one)]
    assert len(dialled) == len(topology.pairs)
    assert all(set(pair) in dialled for pair in topology.pairs)


def test_a_file_names_the_containers(tmp_path: Path) -> None:
    file = tmp_path / "links"
    file.write_text("# two towns\nnorth south\nsouth north\n\nsouth east # and one more\nisland\n")
    topology = topology_of(4, str(file))
    assert topology.ids == ["north", "south", "east", "island"]
    assert topology.pairs == [("north", "south"), ("east", "south")]
    assert topology.dialled_by("south") == ["north"]
    assert topology.dialled_by("east") == ["south"]
    assert topology.neighbours_of("south") == ["east", "north"]
    assert topology.neighbours_of("island") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n", "found 2 containers, expected 3"),
        ("a b c\n", 'links:1: found "a b c", expected two different ids, or one'),
        ("a b\nc c\n", 'links:2: found "c c", expected two different ids, or one'),
        ("a b\n\0c\n", "links:2: ids need printable characters"),
        ("a b\nb \udcff\n", "links:2: found the byte 0xff, expected text in UTF-8"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "links"
    file.write_text(text, errors="surrogateescape")
    with pytest.raises(TopologyError) as failure:
        topology_of(3, str(file))
    assert message in str(failure.value)


def test_what_is_no_topology_and_no_file_is_named() -> None:
    with pytest.raises(TopologyError, match="expected one of line, ring, star, mesh"):
        topology_of(3, "ringg")
