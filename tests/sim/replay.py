"""Scenarios that are replayed in processes of their own, whose sets have other orders."""

from __future__ import annotations

import os
import subprocess
import sys


def told_by_each(code: str) -> set[bytes]:
    """Run a program several times; return what it said, each different answer once."""
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for salt in ("1", "2", "3")
    }
