"""The picture of the packages: what it leaves out, what it tells, and that it stays the same."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "architecture.py"
PICTURE = ROOT / "docs" / "architecture.svg"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_an_import_that_others_imply_has_no_arrow(program: dict[str, Any]) -> None:
    chain = {("d", "c"), ("c", "b"), ("b", "a")}
    implied = {("d", "a"), ("d", "b"), ("c", "a")}
    assert program["reduced"](chain | implied, ["a", "b", "c", "d"]) == chain


def test_two_ways_of_one_length_are_both_shown(program: dict[str, Any]) -> None:
    diamond = {("d", "b"), ("d", "c"), ("b", "a"), ("c", "a")}
    assert program["reduced"](diamond | {("d", "a")}, ["a", "b", "c", "d"]) == diamond


def test_imports_are_found_however_they_are_written(
    program: dict[str, Any], tmp_path: Path
) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        "import cogwork.amqp.codec\n"
        "from cogwork import client, __version__\n"
        "from cython.cimports.cogwork.dataplane.core import Core\n"
        "from os import path\n"
        "def late():\n    from cogwork.io.loop import EventLoop\n"
    )
    assert program["imports_of"](source) == {"amqp", "client", "__version__", "dataplane", "io"}
    declarations = tmp_path / "module.pxd"
    declarations.write_text("from libc.stdint cimport int64_t\nfrom cogwork.log cimport Log\n")
    assert program["imports_of"](declarations) == {"log"}


def test_a_picture_that_is_out_of_date_names_each_difference(tmp_path: Path) -> None:
    stale = tmp_path / "stale.svg"
    text = PICTURE.read_text()
    assert text.count('data-from="dataplane" data-to="amqp"') == 1
    text = text.replace('data-from="dataplane" data-to="amqp"', 'data-from="log" data-to="amqp"')
    stale.write_text(text.replace('data-package="cli"', 'data-package="shell"'))
    checked = run("--check", stale)
    assert checked.returncode == 1
    first, *found = checked.stderr.splitlines()
    assert first.endswith("run `make architecture`")
    assert [re.sub(r"\d+", "N", line) for line in found] == [
        "missing: cli in row N",
        "no longer: shell in row N",
        "missing: dataplane imports amqp",
        "no longer: log imports amqp",
    ]


def test_the_same_sources_always_give_the_same_picture(
    program: dict[str, Any], tmp_path: Path
) -> None:
    drawn = tmp_path / "drawn.svg"
    assert run(drawn, PYTHONHASHSEED="7").returncode == 0
    assert drawn.read_text() == program["svg_of"](program["read"]())


def test_boxes_of_a_layer_stand_apart() -> None:
    boxes = re.findall(r'data-row="(\d+)"><rect class="[a-z ]+" x="([-\d.]+)"', PICTURE.read_text())
    assert len(boxes) >= 20
    places = sorted((int(row), float(x)) for row, x in boxes)
    width = float(re.findall(r'<rect class="package" .*? width="(\d+)"', PICTURE.read_text())[0])
    assert [
        (one, other)
        for one, other in pairwise(places)
        if one[0] == other[0] and other[1] - one[1] < width + 10
    ] == []
