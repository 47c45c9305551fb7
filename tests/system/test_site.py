"""The documentation site is built without a warning: no dead link, no page that is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (site / "index.html").exists()
    shown = (site / "reference/api.html").read_text()
    assert [each for each in documented() if f'id="{each}"' not in shown] == []


def documented() -> list[str]:
    """List what the page of the Python API names, down to the methods that it chooses."""
    page = (ROOT / "docs/reference/api.md").read_text()
    found = []
    for name, members in re.findall(
        r"^::: (\S+)\n(?: .*\n)*?(?: +members: \[(.*)\]\n|\n)", page, re.M
    ):
        kind = name.rpartition(".")[2]
        found += [name] * (kind != "errors")
        found += [f"{name}.{each}" for each in members.split(", ") if each]
    assert len(found) > 80
    return found
