"""Replicas need containers of one cluster: whoever configured none hears what to configure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from forked import forked

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "n")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("n", "a"))


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[dict[str, Member]]:
    """Run containers that are linked, each a cluster of its own; the last one has no disk."""

    def head(name: str) -> str:
        return "" if name == "n" else f'data_dir = "{tmp_path / name}"\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as made:
        linked(made.values())
        yield made


def test_what_is_not_one_cluster_holds_no_replicas(apart: dict[str, Member]) -> None:
    url = apart["a"].url
    for kind, create in (
        ("stream", ("stream", "create", url, "orders", "--replicas", "a,b,c")),
        ("queue", ("queue", "declare", url, "work/jobs", "--durability", "replicated")),
    ):
        words = create if kind == "stream" else (*create, "--option", 'replicas=["a","b","c"]')
        refused = ran(*words)
        assert refused.returncode == ExitCode.ERROR, refused
        assert "container 'b' can hold no replica: its cluster is another one" in refused.stderr
        assert "--primaries a,b,c" in refused.stderr
        assert json.loads(done(kind, "list", url, "--json").stdout) == []
    refused = ran("stream", "create", url, "orders", "--replicas", "a,n")
    assert "container 'n' can hold no replica: it has no data directory" in refused.stderr
    assert done("stream", "create", url, "orders", "--replicas", "a").returncode == 0


def test_primaries_of_the_command_line_are_one(tmp_path: Path) -> None:
    names, ports = ("a", "b", "c"), free_ports(3)
    processes = []
    try:
        for at, (name, port) in enumerate(zip(names, ports, strict=True)):
            words = ["serve", "--id", name, "--listen", f"127.0.0.1:{port}"]
            words += ["--data", str(tmp_path / name), "--primaries", "a, b,c", "--cluster", "west"]
            words += [word for each in ports[:at] for word in ("--link", f"127.0.0.1:{each}")]
            with (tmp_path / f"{name}.log").open("wb") as log:
                processes.append(forked(*words, stdout=log, stderr=log))
        url = f"amqp://127.0.0.1:{ports[2]}"

        def is_created() -> bool:
            create = ("stream", "create", url, "orders", "--replicas", "a,b,c")
            return ran(*create).returncode == 0

        within(READY_TIMEOUT_S, is_created, "the stream is made")
        row = json.loads(done("stream", "show", url, "orders", "--json").stdout)
        assert (row["state"], row["voters"]) == ("open", ["a", "b", "c"])
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_primary_that_is_away_does_not_hinder(tmp_path: Path) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    edges = (("a", "b"), ("b", "c"), ("c", "a"))
    with meshed(tmp_path, ("a", "b", "c"), edges, head=head) as members:
        linked(members.values())
        members["c"].kill()
        members["a"].served.run(
            "stream", "create", members["a"].url, "orders", "--replicas", "a,b,c"
        )
        members["b"].kill()
        missing = ran("stream", "create", members["a"].url, "other", "--replicas", "a,b")
        assert missing.returncode != 0
        assert "no answer comes from b, c" in missing.stderr, missing


def test_a_move_without_a_majority_of_what_is_moved_says_who_is_missing(tmp_path: Path) -> None:
    """The cluster goes on, but those that hold the stream and the queue do not."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    names = ("a", "b", "c", "d", "e")
    edges = [(one, other) for one in names for other in names if one < other]
    with meshed(tmp_path, names, edges, head=head) as members:
        linked(members.values())
        url = members["a"].url
        create = ("stream", "create", url, "orders", "--replicas", "c,d,e")
        within(READY_TIMEOUT_S, lambda: ran(*create).returncode == 0, "the stream is made")
        held = ("--durability", "replicated", "--option", 'replicas=["c","d","e"]')
        done("queue", "declare", url, "queue/jobs", *held)
        within(
            READY_TIMEOUT_S,
            lambda: json.loads(done("queue", "list", url, "--json").stdout)[0]["owner"] is not None,
            "the queue has an owner",
        )
        for name in ("d", "e"):
            members[name].kill()
        for move in (("stream", "move", url, "orders"), ("queue", "relocate", url, "queue/jobs")):
            missing = ran(*move, "--replicas", "a,b,c")
            assert missing.returncode != 0
            assert "cannot be moved now: a majority of c, d, e has to be up" in missing.stderr
            assert "no answer comes from d, e" in missing.stderr
        row = json.loads(done("stream", "show", url, "orders", "--json").stdout)
        assert row["wanted"] == ["c", "d", "e"], "nothing is declared"
        members["d"].start()
        back = ("stream", "move", url, "orders", "--replicas", "a,b,c")
        within(READY_TIMEOUT_S, lambda: ran(*back).returncode == 0, "a majority is enough")
        members["a"].kill()
        members["b"].kill()
        missing = ran("stream", "move", members["c"].url, "orders", "--replicas", "c")
        assert "no answer comes from a, b" in missing.stderr


def test_the_old_name_of_the_key_is_taken_with_a_warning(tmp_path: Path) -> None:
    head = f'id = "test"\ndata_dir = "{tmp_path / "a"}"\n'
    with served(tmp_path, '[cluster]\nvoters = ["test"]\n', head=head) as container:
        container.run("stream", "create", container.url, "orders", "--engine", "raft")
        assert container.run("stream", "list", container.url)
    log = "".join(each.read_text() for each in tmp_path.glob("*log*"))
    assert "[cluster] voters is deprecated: use primaries" in log


def test_who_cannot_be_current_says_what_is_missing(tmp_path: Path) -> None:
    """A primary that is up, and has no data directory, is not said to be unreachable."""

    def head(name: str) -> str:
        if name == "a":
            return ""
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a"]\n'

    with meshed(tmp_path, ("a", "b"), (("a", "b"),), head=head) as members:
        linked(members.values())

        def told() -> str:
            return ran("stream", "list", members["b"].url).stderr

        within(READY_TIMEOUT_S, lambda: "a is up without a data directory" in told(), "it is told")
        assert "no answer comes" not in told()


def test_clusters_with_other_names_are_not_linked(tmp_path: Path) -> None:
    def named(name: str) -> str:
        return "" if name == "n" else f'[cluster]\nname = "{name}st"\n'

    edges = (("we", "ea"), ("we", "n"), ("n", "ea"))
    with meshed(tmp_path, ("we", "ea", "n"), edges, head=named) as members:
        west, east, other = members.values()
        text = "in the cluster 'east', and we in 'west': give both the same [cluster] name"
        within(READY_TIMEOUT_S, lambda: text in west.log(), "one refuses the other")
        within(READY_TIMEOUT_S, lambda: other.reaches({"we", "ea"}), "without a name it has both")
        linked_with = json.loads(done("mesh", west.url, "--json").stdout)["containers"]
        neighbours = {row["id"]: row["neighbours"] for row in linked_with}["we"]
        assert list(neighbours) == ["n"]
        assert east.listens()
