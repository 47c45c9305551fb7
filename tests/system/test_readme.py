"""The first program that somebody sees does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from cogwork.testing import container

README = Path(__file__).parents[2] / "README.md"


def test_the_program_of_the_readme_runs() -> None:
    programs = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert "asyncio.run(main())" in programs[0]
    with container() as url:
        program = programs[0].replace("amqp://localhost", url)
        assert program != programs[0]
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{'delay_min': 11}\n", "")
