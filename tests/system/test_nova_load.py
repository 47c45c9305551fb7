"""A load like that of nova while containers are killed; `make soak` has the long form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOAD = Path(__file__).parents[2] / "examples" / "nova" / "load.py"

COMPUTES = int(os.environ.get("COGWORK_NOVA_COMPUTES", "30"))
MINUTES = float(os.environ.get("COGWORK_NOVA_MINUTES", "0.1"))
KILL_EACH_S = float(os.environ.get("COGWORK_NOVA_KILL_EACH_S", "2.5"))

DRIVER = os.environ.get("COGWORK_NOVA_DRIVER", "cogwork")

BESIDES_S = 150.0
"""To begin and to end: connections, and what was killed last."""


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + BESIDES_S + 30)
def test_nothing_hangs_is_lost_or_left_while_containers_are_killed(tmp_path: Path) -> None:
    options: dict[str, object] = {"computes": COMPUTES, "minutes": MINUTES, "driver": DRIVER}
    options["kill-each"] = KILL_EACH_S
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    with (tmp_path / "progress").open("wb") as progress:
        done = subprocess.run(
            [sys.executable, str(LOAD), "--json", *words],
            stdout=subprocess.PIPE,
            stderr=progress,
            timeout=60 * MINUTES + BESIDES_S,
            check=False,
        )
    said = (tmp_path / "progress").read_text()
    print(said, done.stdout.decode())  # noqa: T201  # the seed, and how it went
    ledger = json.loads(done.stdout)
    assert ledger["wrong"] == []
    assert ledger["good"] is True
    assert done.returncode == 0
    counts = ledger["counts"]
    assert counts["containers killed"] >= 1
    assert counts["computes that answer"] == COMPUTES
    assert counts["notifications taken"] >= counts["notifications accepted"] > 0


def test_what_cannot_be_is_refused_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, str(LOAD), "--computes", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("error: --computes: more than 0 is expected\n")
