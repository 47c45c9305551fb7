"""`cogwork doctor` at running containers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cogwork.cli.exit_codes import ExitCode

from .meshes import linked
from .served import READY_TIMEOUT_S, ran, served, within
from .trios import trios

if TYPE_CHECKING:
    from pathlib import Path


def examined(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """Run it; return the exit code, and what is not well."""
    found = ran("doctor", *words, "--json")
    assert found.stderr == ""
    checks = json.loads(found.stdout)["checks"]
    assert len(checks) >= 1
    return found.returncode, [each for each in checks if each["status"] != "OK"]


def test_one_that_is_well(tmp_path: Path) -> None:
    with served(tmp_path, head=f'data_dir = "{tmp_path / "data"}"\n') as container:
        code, bad = examined(container.url, "--config", str(tmp_path / "cogwork.toml"))
    assert {each["check"] for each in bad} <= {"cluster"}, "it is alone"
    assert code == ExitCode.OK


def test_one_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    with served(tmp_path) as container:
        code, bad = examined("amqp://user:secret@127.0.0.1:1", container.url)
    assert code == ExitCode.ERROR
    assert [each["check"] for each in bad] == ["connection", "disk"]
    assert "secret" not in str(bad)


def test_whoever_may_not_manage_is_told(tmp_path: Path) -> None:
    rights = '[anonymous]\npermissions = [{ address = "#", rights = ["send"] }]\n'
    with served(tmp_path, rights) as container:
        code, bad = examined(container.url)
    assert code == ExitCode.ERROR
    assert [each["check"] for each in bad] == ["connection"]


def test_a_cluster_with_a_member_that_was_killed(tmp_path: Path) -> None:
    with trios(tmp_path) as trio:
        linked(trio.members.values())
        urls = [each.url for each in trio.members.values()]
        within(READY_TIMEOUT_S, lambda: examined(*urls)[1] == [], "all are well")
        trio.members["c"].kill()

        def is_told() -> bool:
            code, bad = examined(urls[0])
            told = " ".join(each["found"] for each in bad)
            assert {each["status"] for each in bad if each["check"] == "cluster"} <= {"WARNING"}
            return "no answer from c" in told and code == ExitCode.ERROR  # its link is down

        within(READY_TIMEOUT_S, is_told, "the doctor names it")
        trio.members["b"].kill()
        within(
            READY_TIMEOUT_S,
            lambda: any(
                each["check"] == "cluster" and each["status"] == "FAIL"
                for each in examined(urls[0])[1]
            ),
            "without a majority it fails",
        )
