"""The programs that somebody sees first do what their pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cogwork.testing import container

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "prints"),
    [
        ("README.md", "{'delay_min': 11}\n"),
        ("docs/client.md", "delay {'delay': 12}\n"),
        ("docs/cogs.md", "70 70\n"),
        ("docs/rpc.md", "vm 7 runs\n"),
    ],
)
def test_the_first_program_of_a_page_runs(page: str, prints: str) -> None:
    program = PROGRAM.findall((ROOT / page).read_text())[0]
    assert "asyncio.run(main())" in program
    with container() as url:
        done = subprocess.run(
            [sys.executable, "-c", program.replace("amqp://localhost", url)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, prints, "")
