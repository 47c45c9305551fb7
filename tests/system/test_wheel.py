"""The wheel of `make wheel`, in an environment without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from cogwork.bench.servers.process import free_ports

from .served import READY_TIMEOUT_S, within

ROOT = Path(__file__).parents[2]

BUILD_TIMEOUT_S = 3600
"""On a machine that does nothing else, some minutes."""

PROGRAM = """
import asyncio, sys
import cogwork

async def main():
    async with cogwork.connect(sys.argv[1]) as client:
        await client.publish("queue/orders", "from the wheel")

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it, or take one that was built: COGWORK_WHEEL."""
    built = os.environ.get("COGWORK_WHEEL")
    if built is not None:
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, str(ROOT / "tools" / "wheel.py"), "--to", str(folder)]
    subprocess.run(words, check=True, timeout=BUILD_TIMEOUT_S, stdout=subprocess.DEVNULL)
    (found,) = folder.glob("*.whl")
    assert [path.suffix for path in folder.iterdir() if path != found] == [".gz"]
    return found


@pytest.mark.soak
@pytest.mark.timeout(BUILD_TIMEOUT_S + 300)
def test_it_installs_and_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    assert "manylinux_2_17" in wheel.name
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    # Nothing but the environment's own programs: no cc, and no sources of this project.
    only = {"PATH": str(home / "bin"), "HOME": str(tmp_path)}
    python, command = str(home / "bin" / "python"), str(home / "bin" / "cogwork")
    install = [python, "-m", "pip", "install", "--quiet", "--no-warn-script-location", str(wheel)]
    subprocess.run(install, env=only, check=True, timeout=300)

    def run(*words: str) -> str:
        return subprocess.run(
            words, env=only, cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True
        ).stdout

    (port,) = free_ports(1)
    url, log = f"amqp://127.0.0.1:{port}", tmp_path / "log"
    serve = [command, "serve", "--listen", f"127.0.0.1:{port}", "--data", str(tmp_path / "data")]
    with log.open("wb") as output:
        process = subprocess.Popen(serve, env=only, cwd=tmp_path, stdout=output, stderr=output)
    try:
        within(READY_TIMEOUT_S, lambda: " listens on " in log.read_text(), "it listens")
        run(python, "-c", PROGRAM, url)
        assert run(command, "receive", url, "queue/orders", "--count", "1") == "from the wheel\n"
    finally:
        process.terminate()
        assert process.wait(30) == 0
