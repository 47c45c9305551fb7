"""A data directory of which a part is damaged or gone: what its container says, and to whom."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

from .arrow_readers import publish
from .clusters import command
from .meshes import Member, meshed
from .served import COGWORK, READY_TIMEOUT_S, done, ended, within

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 120_000


def stocked(folder: Path, member: Member) -> None:
    """Leave a stream of which a part is sealed, and no container."""
    within(READY_TIMEOUT_S, member.listens, "it listens")
    command("stream", "create", member.url, "orders", "--engine", "raft")
    publish(member.url, "orders", RECORDS)
    within(READY_TIMEOUT_S, lambda: len(segments(folder)) > 2, "some are sealed")
    member.signal(signal.SIGTERM)
    assert member.process is not None
    member.process.wait(READY_TIMEOUT_S)


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "streams").glob("*/*.seg"))


def problem_of(member: Member) -> str | None:
    row = json.loads(done("stream", "show", member.url, "orders", "--json").stdout)
    problem: str | None = row["problem"]
    return problem


def test_damage_is_told_to_people_and_a_log_that_is_gone_is_no_new_one(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    head = f'data_dir = "{data_dir}"\n'
    with meshed(tmp_path, ("a",), (), head=lambda _name: head) as members:
        member = members["a"]
        stocked(tmp_path, member)

        shutil.move(data_dir / "wal", tmp_path / "wal")
        refused = ended("serve", "--config", str(member.configure()))
        assert refused.returncode != 0
        assert f"{data_dir}/wal is missing: put it back" in refused.stderr
        assert not (data_dir / "wal").exists(), "nothing is made where something is missing"
        shutil.move(tmp_path / "wal", data_dir / "wal")

        damaged = segments(tmp_path)[0]
        octets = bytearray(damaged.read_bytes())
        octets[len(octets) // 2] ^= 0x10
        damaged.write_bytes(octets)
        member.start()
        within(READY_TIMEOUT_S, member.listens, "it listens")
        assert problem_of(member) is None
        read = (*COGWORK, "receive", member.url, "stream/orders", "--from", "first")
        with subprocess.Popen(read, stdout=subprocess.DEVNULL) as reader:
            try:
                within(90, lambda: problem_of(member) is not None, "it says that it is stuck")
                assert "records that are wanted cannot be read" in (problem_of(member) or "")
            finally:
                reader.kill()
        within(READY_TIMEOUT_S, lambda: problem_of(member) is None, "nobody wants them any more")
        assert str(damaged) in member.log()
