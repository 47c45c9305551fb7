"""The examples of calls run, and say what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cogwork.testing import container

FOLDER = Path(__file__).parents[2] / "examples" / "rpc"


def test_the_example_calls_a_service_of_another_process() -> None:
    with container() as url:
        command = [sys.executable, "-u", str(FOLDER / "service.py"), "host-3", url]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert service.stdout is not None
            assert "host-3 serves compute" in service.stdout.readline()
            calls = [sys.executable, str(FOLDER / "calls.py"), url]
            said = subprocess.run(calls, check=True, capture_output=True, text=True, timeout=30)
        finally:
            service.terminate()
            service.wait(10)
            assert service.stdout is not None
            service.stdout.close()
    assert "'host': 'host-3'" in said.stdout
    assert "vm 7 on host-3, line 2" in said.stdout
    for kind in ("BadArguments: ", "RemoteError: ", "Unreachable: exclusive/rpc/compute/nobody"):
        assert kind in said.stdout
    assert said.stderr == ""
