"""Three primaries with a stream that they all hold, whose disks can be lost."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import TYPE_CHECKING

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))
COUNT = 40
LINES = [f"order {number}" for number in range(COUNT)]


class Trio:
    """Three primaries with a stream that they all hold."""

    def __init__(self, folder: Path, members: dict[str, Member]) -> None:
        self.folder = folder
        self.members = members

    def url(self, name: str) -> str:
        return self.members[name].url

    def fill(self) -> None:
        linked(self.members.values())
        create = ("stream", "create", self.url("a"), "orders", "--replicas", "a,b,c")
        within(READY_TIMEOUT_S, lambda: ran(*create).returncode == 0, "the cluster has begun")
        (self.folder / "lines").write_text("\n".join(LINES))
        done("send", self.url("b"), "stream/orders", "--file", str(self.folder / "lines"))

    def wipe(self, *names: str) -> None:
        for name in names:
            if not self.members[name].was_killed:
                self.members[name].kill()
            shutil.rmtree(self.folder / name)

    def start(self, *names: str) -> None:
        for name in names:
            self.members[name].start()
        for name in names:
            within(READY_TIMEOUT_S, self.members[name].listens, f"{name} listens")

    def kept(self, name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / name / "cluster.json").read_bytes())
        return found

    def reads(self, name: str) -> bool:
        read = ("receive", self.url(name), "stream/orders", "--from", "first", "--timeout", "5")
        return ran(*read, "--count", str(COUNT)).stdout.splitlines() == LINES

    def problem(self, name: str) -> str:
        return ran("stream", "list", self.url(name)).stderr


@contextlib.contextmanager
def trios(folder: Path, configuration: str = "") -> Iterator[Trio]:
    """Run three for the length of a `with` block.

    Args:
        folder: Takes their data directories, configurations and logs.
        configuration: What each `cogwork.toml` says besides.
    """

    def head(name: str) -> str:
        return f'data_dir = "{folder / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(folder, IDS, EDGES, configuration, head=head) as members:
        made = Trio(folder, members)
        made.fill()
        yield made


def holds(trio: Trio, name: str) -> Callable[[], bool]:
    """Return whether a container's own directory has all records."""
    dump = ("log", "dump", "orders", "--data", str(trio.folder / name))
    return lambda: ran(*dump).stdout.splitlines() == LINES
