"""How much memory there is, and when publishers wait for some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.container.watermark import Watermark, available_bytes

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
