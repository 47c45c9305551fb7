"""Which containers of a local mesh are linked: a line, a ring, a star, all, or as a file says."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("NAMED", "Topology", "TopologyError", "topology_of")

Pairs = list[tuple[str, str]]


class TopologyError(CogworkError):
    """A topology that cannot be."""


class Topology:
    """Containers, and who is linked with whom.

    Attributes:
        ids: The containers, in order.
        pairs: Each link once.
    """

    def __init__(self, ids: Sequence[str], pairs: Pairs) -> None:
        self.ids = list(ids)
        self.pairs = pairs

    def dialled_by(self, container: str) -> list[str]:
        """List the containers that one dials: the later one of each pair dials the earlier one."""
        order = {name: at for at, name in enumerate(self.ids)}
        linked = [pair for pair in self.pairs if container in pair]
        others = [one if other == container else other for one, other in linked]
        return [other for other in others if order[other] < order[container]]

    def neighbours_of(self, container: str) -> list[str]:
        """List the containers that one is linked with."""
        return sorted(
            (one if other == container else other)
            for one, other in self.pairs
            if container in (one, other)
        )


def _ring(ids: Sequence[str]) -> Pairs:
    around = [*pairwise(ids), (ids[-1], ids[0])]
    return around if len(ids) > 2 else list(pairwise(ids))


NAMED: dict[str, Callable[[Sequence[str]], Pairs]] = {
    "line": lambda ids: list(pairwise(ids)),
    "ring": _ring,
    "star": lambda ids: [(ids[0], other) for other in ids[1:]],
    "mesh": lambda ids: list(combinations(ids, 2)),
}


def topology_of(count: int, name: str) -> Topology:
    """Make a topology.

    Args:
        count: Of containers; they are called c1, c2 and so on, unless a file names them.
        name: One of `NAMED`, or a file: in each line the ids of two linked containers, or of one.

    Raises:
        TopologyError: There is none of this name, the file cannot be read or says something else,
            or it has more or fewer containers.
    """
    if name in NAMED:
        ids = [f"c{number}" for number in range(1, count + 1)]
        return Topology(ids, NAMED[name](ids))
    topology = _read(_text_of(Path(name)), name)
    if len(topology.ids) != count:
        raise TopologyError(f"{name}: found {len(topology.ids)} containers, expected {count}")
    return topology


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        known = ", ".join(NAMED)
        raise TopologyError(
            f"unknown topology '{file}' (expected one of {known}, or a file)"
        ) from error
    except OSError as error:
        raise TopologyError(f"cannot read '{file}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"found the byte {error.object[error.start]:#04x}, expected text in UTF-8"
        raise TopologyError(f"{file}:{line}: {found}") from error


def _read(text: str, name: str) -> Topology:
    ids: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not "".join(words).isprintable():
            raise TopologyError(f"{name}:{number}: ids need printable characters")
        ids |= dict.fromkeys(words)
        if len(words) == 2 and words[0] != words[1]:
            pairs[min(words), max(words)] = None
        elif len(words) > 1:
            expected = "two different ids, or one"
            raise TopologyError(f'{name}:{number}: found "{line.strip():.40}", expected {expected}')
    return Topology(list(ids), list(pairs))
