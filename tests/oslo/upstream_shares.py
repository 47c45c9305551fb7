"""The functional tests that oslo.messaging ships, run against containers of ours.

They read two variables for where to connect, and most of them wait more than they work: so each
share of them is run by a process of its own, all at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

RUNNER = Path(__file__).with_name("upstream_run.py")

TIMEOUT_S = 100.0


@dataclass(frozen=True)
class Share:
    """What one process runs.

    Attributes:
        url: The transport URL, for calls and notifications alike.
        module: Upstream's module, below `oslo_messaging.tests.functional`.
        tests: Names of tests in it: `Class.method`, and in parentheses the scenario.
    """

    url: str
    module: str
    tests: tuple[str, ...]


@dataclass
class Verdicts:
    """What became of tests, and why.

    Attributes:
        passed: Names.
        skipped: Names, and upstream's reason.
        failed: Names, and what was seen.
    """

    passed: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run(shares: list[Share], packages: Path, folder: Path) -> Verdicts:
    """Run all shares, at once; what fails is run once more, one by one.

    For some of upstream's tests hold a clock to what they do (205 notifications are three batches
    only where a hundred take less than two seconds), which a machine that runs all at once fails.

    Args:
        shares: What to run.
        packages: A directory that Python looks for packages in first.
        folder: Takes what the processes say.
    """
    verdicts = _run(shares, packages, folder, "upstream")
    for share in shares:
        for name in sorted(set(share.tests) & set(verdicts.failed)):
            print(f"{name} is run once more: {verdicts.failed[name][-2000:]}")  # noqa: T201  # shown where the test fails
            again = _run([replace(share, tests=(name,))], packages, folder, f"again-{name}")
            if not again.failed:
                del verdicts.failed[name]
                verdicts.passed |= again.passed
    return verdicts


def _path() -> str:
    """Return where programs are found: beside Python first, as in a virtual environment."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _run(shares: list[Share], packages: Path, folder: Path, log_name: str) -> Verdicts:
    logs = [folder / f"{log_name}-{number}" for number in range(len(shares))]
    told = [
        {
            "url": share.url,
            "module": f"oslo_messaging.tests.functional.{share.module}",
            "tests": share.tests,
            "log": str(log),
        }
        for share, log in zip(shares, logs, strict=True)
    ]
    with (folder / f"{log_name}.err").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(RUNNER), json.dumps(told)],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(packages), "PATH": _path()},
            cwd=folder,
            start_new_session=True,
        )
    try:
        code = process.wait(TIMEOUT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):  # all that it parted into
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert code == 0, (folder / f"{log_name}.err").read_text()[-2000:]
    verdicts = Verdicts()
    for share, log in zip(shares, logs, strict=True):
        _gather(share, log, verdicts)
    return verdicts


def _gather(share: Share, log: Path, verdicts: Verdicts) -> None:
    errors = Path(f"{log}.err").read_text(errors="replace")
    last = dict.fromkeys(share.tests, ("lost", f"never begun: {errors[-2000:]}"))
    for line in Path(f"{log}.out").read_text(errors="replace").splitlines():
        if line.startswith('{"test": '):
            fact = json.loads(line)
            name = fact["test"].removeprefix(f"oslo_messaging.tests.functional.{share.module}.")
            last[name] = fact["outcome"], fact["text"]
    for name, (outcome, text) in last.items():
        if outcome == "passed":
            verdicts.passed.add(name)
        elif outcome == "skipped":
            verdicts.skipped[name] = text
        else:
            verdicts.failed[name] = f"{outcome}: {text}"
