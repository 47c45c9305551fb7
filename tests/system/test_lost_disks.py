"""Containers whose disks are lost: none of them elects or commits before it has caught up."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within
from .trios import COUNT, IDS, LINES, Trio, holds, trios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    with trios(tmp_path) as made:
        yield made


def test_founders_have_one_uuid_and_two_empty_ones_do_not_outvote_records(trio: Trio) -> None:
    uuids = {str(trio.kept(name)["uuid"]) for name in IDS}
    assert len(uuids) == 1
    assert len(uuids.pop()) == 36
    trio.members["a"].kill()
    trio.wipe("b", "c")
    trio.start("b", "c")
    within(
        READY_TIMEOUT_S,
        lambda: (
            "the cluster begins as soon as" in trio.problem("b")
            or "no answer comes from a" in trio.problem("b")
        ),
        "they do not begin without a",
    )
    trio.start("a")
    within(READY_TIMEOUT_S, lambda: "have lost their replicas" in trio.problem("c"), "it is told")
    assert trio.kept("b")["is_joined"] is True
    trio.members["a"].kill()
    dump = ("log", "dump", "orders", "--data", str(trio.folder / "a"))
    assert done(*dump).stdout.splitlines() == LINES


def test_one_empty_voter_is_given_everything_and_counts_again(trio: Trio) -> None:
    trio.wipe("c")
    trio.start("c")
    within(READY_TIMEOUT_S, holds(trio, "c"), "c has everything")
    assert trio.kept("c")["is_joined"] is True
    assert trio.kept("c")["uuid"] == trio.kept("a")["uuid"]
    trio.members["a"].kill()
    within(READY_TIMEOUT_S, lambda: trio.reads("c"), "b and c are a majority")
    trio.members["c"].kill()
    trio.start("a", "c")
    within(READY_TIMEOUT_S, lambda: trio.reads("c"), "it is a member as before after a restart")


def test_an_empty_voter_is_no_majority_with_one_that_may_lack_records(trio: Trio) -> None:
    trio.members["b"].kill()
    trio.wipe("c")
    trio.start("c")
    within(READY_TIMEOUT_S, lambda: "no answer comes from b" in trio.problem("c"), "c waits for b")
    create = ran("stream", "create", trio.url("a"), "other", "--engine", "raft")
    assert create.returncode != 0
    assert "b" in create.stderr.partition("no answer comes from")[2]
    trio.start("b")
    within(READY_TIMEOUT_S, holds(trio, "c"), "c has everything")
    within(READY_TIMEOUT_S, lambda: trio.reads("a"), "all is well")


def says(trio: Trio, name: str, words: tuple[str, ...]) -> bool:
    log = trio.members[name].log()
    return all(word in log for word in words)


def without_checksum(kept: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in kept.items() if key != "checksum"}


OTHER = "b0a3c3c0-0000-4000-8000-000000000000"


def test_a_container_of_another_cluster_is_not_linked(trio: Trio) -> None:
    trio.members["c"].kill()
    kept = trio.kept("c")
    file = trio.folder / "c" / "cluster.json"
    file.write_text(json.dumps(without_checksum({**kept, "uuid": OTHER})))
    trio.start("c")
    for name in ("a", "c"):
        words = ("another cluster: container", OTHER, str(kept["uuid"]))
        within(READY_TIMEOUT_S, partial(says, trio, name, words), f"{name} names both")
    assert trio.members["a"].reached() == {"a", "b"}
    file.write_text(json.dumps(kept))
    trio.members["c"].kill()
    trio.start("c")
    within(READY_TIMEOUT_S, lambda: trio.reads("c"), "it is taken again")


def test_secondaries_keep_the_cluster_and_are_held_to_it(tmp_path: Path) -> None:
    """One of them is in no cluster: it is linked with all."""

    def head(name: str) -> str:
        if name == "n":
            return f'data_dir = "{tmp_path / name}"\n'
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a"]\n'

    edges = (("a", "s"), ("a", "n"), ("s", "n"))
    with meshed(tmp_path, ("a", "s", "n"), edges, head=head) as members:
        linked(members.values())

        def kept(name: str) -> dict[str, object]:
            found: dict[str, object] = json.loads((tmp_path / name / "cluster.json").read_bytes())
            return found

        within(
            READY_TIMEOUT_S, lambda: kept("s").get("uuid") == kept("a").get("uuid"), "s has joined"
        )
        assert kept("s")["is_joined"] is True
        assert kept("n")["uuid"] != kept("a")["uuid"]
        members["s"].kill()
        (tmp_path / "s" / "cluster.json").write_text(
            json.dumps(without_checksum({**kept("s"), "uuid": OTHER}))
        )
        members["s"].start()
        within(READY_TIMEOUT_S, members["s"].listens, "s listens")
        within(READY_TIMEOUT_S, lambda: OTHER in members["a"].log(), "a refuses s")
        within(READY_TIMEOUT_S, lambda: members["s"].reached() >= {"s", "n"}, "n takes s")
        create = ("stream", "create", members["s"].url, "orders", "--replicas", "a")
        refused = ran(*create)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr


def test_directories_of_before_adopt_one(trio: Trio) -> None:
    for name in IDS:
        trio.members[name].kill()
        (trio.folder / name / "cluster.json").unlink()
    trio.start(*IDS)
    within(READY_TIMEOUT_S, lambda: trio.reads("a"), "they go on")
    within(
        READY_TIMEOUT_S,
        lambda: (
            len({trio.kept(name).get("uuid") for name in IDS}) == 1
            and bool(trio.kept("a").get("uuid"))
        ),
        "all have the same",
    )
    assert not any(trio.kept(name).get("is_joined") for name in IDS)


def test_the_only_one_that_is_left_makes_a_new_cluster(trio: Trio) -> None:
    queue = ("queue", "declare", trio.url("a"), "queue/jobs", "--durability", "replicated")
    done(*queue)
    done("send", trio.url("a"), "queue/jobs", "job", "--count", "5")
    before = trio.kept("a")["uuid"]
    epoch = json.loads(done("stream", "show", trio.url("a"), "orders", "--json").stdout)["epoch"]
    within(READY_TIMEOUT_S, holds(trio, "a"), "a has everything")
    trio.members["a"].kill()
    trio.wipe("b", "c")
    data = str(trio.folder / "a")
    wrong = ran("cluster", "recover", "--data", data, "--only", "b")
    assert wrong.returncode == 1
    assert "it is container 'a's, not 'b's" in wrong.stderr.replace("''s", "'s")
    made = done("cluster", "recover", "--data", data, "--only", "a", "--json")
    assert "warning: use this only if a majority of the cluster is lost for good" in made.stderr
    facts = json.loads(made.stdout)
    assert facts["streams"]["orders"] == COUNT
    assert facts["problems"] == []
    assert trio.kept("a")["uuid"] == facts["uuid"] != before

    trio.start("a")
    within(READY_TIMEOUT_S, lambda: trio.reads("a"), "a has all records, alone")
    done("send", trio.url("a"), "stream/orders", "more")
    row = json.loads(done("stream", "show", trio.url("a"), "orders", "--json").stdout)
    assert (row["voters"], row["next"]) == (["a"], COUNT + 1)
    assert row["epoch"] > epoch
    done("stream", "create", trio.url("a"), "other", "--engine", "raft")
    take = ("receive", trio.url("a"), "queue/jobs", "--count", "5", "--timeout", "20")
    assert done(*take).stdout.splitlines() == ["job"] * 5
    beyond = ran("receive", trio.url("a"), "stream/orders", "--from", "1000", "--count", "1")
    assert beyond.returncode != 0
    assert "1000" in beyond.stderr


def test_a_container_in_use_is_not_recovered(trio: Trio) -> None:
    refused = ran("cluster", "recover", "--data", str(trio.folder / "a"), "--only", "a")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert trio.reads("b")


def test_founders_made_by_hand_begin_without_each_other(tmp_path: Path) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    first = json.loads(done("cluster", "init", "--data", str(tmp_path / "a"), "--json").stdout)
    done("cluster", "init", "--data", str(tmp_path / "b"), "--uuid", first["uuid"])
    again = ran("cluster", "init", "--data", str(tmp_path / "b"))
    assert again.returncode != 0
    assert "it is not empty" in again.stderr
    with meshed(tmp_path, ("a", "b"), (("a", "b"),), head=head) as members:
        linked(members.values())
        create = ("stream", "create", members["a"].url, "orders", "--replicas", "a,b")
        within(READY_TIMEOUT_S, lambda: ran(*create).returncode == 0, "two of three begin")
