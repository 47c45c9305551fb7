"""Plug-ins that are installed, and lack something."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cogwork.plugins import BUILT_IN, PluginError, load

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

METADATA = """\
Metadata-Version: 2.1
Name: abacus
Version: 1.0
Provides-Extra: quick
"""

POINTS = """\
[cogwork.engines]
quick = abacus_quick:Host
slow = abacus_quick:Host
bent = abacus_bent:Host
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another package's engines installed."""
    information = tmp_path / "abacus-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(POINTS)
    (tmp_path / "abacus_quick.py").write_text("import beads_of_glass\n")
    (tmp_path / "abacus_bent.py").write_text("raise OSError('it is bent')\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_missing_extra_is_named() -> None:
    says = r"^engine 'quick' needs beads_of_glass, which is missing: pip install 'abacus\[quick\]'$"
    with pytest.raises(PluginError, match=says):
        load("cogwork.engines", "quick", "engine")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("slow", "cannot be loaded from abacus_quick:Host: No module named 'beads_of_glass'"),
        ("bent", "cannot be loaded from abacus_bent:Host: it is bent"),
    ],
)
def test_what_no_extra_mends_is_told_as_it_is(name: str, says: str) -> None:
    with pytest.raises(PluginError) as caught:
        load("cogwork.engines", name, "engine")
    assert caught.value.lack == says


def test_ours_are_the_entry_points_of_the_project() -> None:
    groups = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    assert {name: each for name, each in groups.items() if name.startswith("cogwork.")} == BUILT_IN


def test_ours_are_loaded_without_reading_what_is_installed() -> None:
    program = (
        "import sys; from cogwork.plugins import load; "
        "assert load('cogwork.nodes', 'queue', 'node kind').__name__ == 'QueueNode'; "
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
