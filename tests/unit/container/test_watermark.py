"""How much memory there is, and when publishers wait for some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.container.connections.watermark import Watermark, available_bytes

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [("max", str(300 * MIB), 300), (str(200 * MIB), "max", 200), (str(100 * MIB), "junk", 100)],
)
def test_the_least_limit_of_the_control_groups_holds(
    tmp_path: Path, outer: str, inner: str, expected: int
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text(f"{outer}\n")
    (tmp_path / "a" / "b" / "memory.max").write_text(f"{inner}\n")
    own = tmp_path / "cgroup"
    own.write_text("1:name=systemd:/x\n0::/a/b\n")
    assert available_bytes(tmp_path, own) == expected * MIB


@pytest.mark.parametrize("controllers", ["memory", "cpu,memory"])
def test_control_groups_of_version_1_have_limits_too(tmp_path: Path, controllers: str) -> None:
    (tmp_path / "memory" / "a" / "b").mkdir(parents=True)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    (tmp_path / "memory" / "a" / "memory.limit_in_bytes").write_text(f"{200 * MIB}\n")
    own = tmp_path / "cgroup"
    own.write_text(f"5:cpuset:/x\n4:{controllers}:/a/b\n1:name=systemd:/x:y\n0::/z\n")
    assert available_bytes(tmp_path, own) == 200 * MIB


def test_the_machines_memory_holds_where_there_is_no_control_group(tmp_path: Path) -> None:
    assert available_bytes(tmp_path, tmp_path / "none") > 64 * MIB


def test_publishers_wait_above_it_and_go_on_somewhat_below() -> None:
    told: list[bool] = []
    watermark = Watermark(told.append)
    watermark.look(0.5, 0)
    most = watermark.limit_bytes
    for used in (most, most + 1, most + 2, most, int(most * 0.94), most):
        watermark.look(0.5, used)
    assert told == [True, False]
