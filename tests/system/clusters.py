"""Containers with directories of their own, in one cluster, whose replicas are moved."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d", "e", "f")
"""The last one has no data directory."""

EDGES = (
    *(("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("e", "c"), ("e", "d")),
    *(("f", "a"), ("f", "d"), ("f", "e")),
)


def command(*words: str, code: int = 0) -> str:
    """Run a command in this process; return what it prints, on stderr where that is all."""
    found = ran(*words)
    assert found.returncode == code, f"{found}"
    return found.stdout or found.stderr


class Cluster:
    """Containers with directories of their own, which know each other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.members: dict[str, Member] = {}
        self.groups: dict[str, str] = {}

    def head(self, name: str) -> str:
        text = '[cluster]\nprimaries = ["a", "b", "c"]\n'
        return text if name == "f" else f'data_dir = "{self.folder / name}"\n{text}'

    def url(self, name: str) -> str:
        return self.members[name].url

    def create(self, stream: str, replicas: str) -> None:
        command(
            "stream", "create", self.url("a"), stream, "--engine", "raft", "--replicas", replicas
        )

    def move(self, stream: str, replicas: str, *more: str, at: str = "f", code: int = 0) -> str:
        move = ("stream", "move", self.url(at), stream, "--replicas", replicas)
        return command(*move, *more, code=code)

    def shown(self, stream: str, at: str = "f") -> dict[str, Any]:
        row: dict[str, Any] = json.loads(command("stream", "show", self.url(at), stream, "--json"))
        return row

    def records(self, stream: str, count: int, at: str = "f") -> list[str]:
        read = ("receive", self.url(at), f"stream/{stream}", "--from", "first")
        return command(*read, "--count", str(count)).splitlines()

    def holders(self, stream: str) -> set[str]:
        """Return who has files of a stream."""
        for file in self.folder.glob("?/streams/*/declaration.json"):
            with contextlib.suppress(FileNotFoundError):
                self.groups[json.loads(file.read_bytes())["stream"]] = file.parent.name
        group = self.groups[stream]
        return {name for name in IDS if (self.folder / name / "streams" / group).exists()}

    def restart(self, name: str) -> None:
        """Start one that has ended, and wait until it can be asked for something."""
        self.members[name].start()
        within(READY_TIMEOUT_S, self.members[name].listens, f"{name} listens")
        within(READY_TIMEOUT_S, lambda: self._are_linked(name, "f"), f"f has a way to {name}")

    def _are_linked(self, *names: str) -> bool:
        return all(self.members[name].reaches(set(names)) for name in names)


@contextlib.contextmanager
def clustered(folder: Path) -> Iterator[Cluster]:
    """Run them for the length of a `with` block; `folder` takes their directories."""
    made = Cluster(folder)
    with meshed(folder, IDS, EDGES, head=made.head) as members:
        made.members = members
        linked(members.values())
        yield made
