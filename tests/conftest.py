"""Lets tests of every kind import the helpers that lie beside this file."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from proton_sockets import closing_sockets
from suite import FAILURES_VARIABLE, FailureRecorder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import Scheduling

HERE = Path(__file__).parent

LONGEST_FIRST = ("spark", "oslo", "system", "conformance")
"""Folders whose files take longest: begun last, one of them would be waited for alone. Those of
`spark` keep the processors busy, those of `oslo` and `conformance` mostly wait."""

EXAMPLES = int(os.environ.get("COGWORK_EXAMPLES", "25"))
"""Of each property, or a multiple of it; `make soak` has more."""

# How fast a machine is says nothing of what runs on it.
settings.register_profile(
    "whatever the load",
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("whatever the load")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C reach the programs under test, also where this run was started in the background.

    A shell without job control has its background processes ignore SIGINT, and they pass that on.
    Where the suite asks for it, failures are written down by the process that hears of all of them.
    """
    failures = os.environ.get(FAILURES_VARIABLE)
    if failures and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureRecorder(Path(failures)))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _closes_sockets() -> Iterator[None]:
    """Leave no socket of Proton's open for the tests that follow."""
    with closing_sockets():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect tests without looking for garbage: hundreds of modules are loaded, and stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have no search for garbage ever look at these modules again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have what takes longest begin first, and files that compute beside files that wait."""
    files: dict[str, list[Path]] = {folder: [] for folder in LONGEST_FIRST}
    for item in items:
        found = files.get(item.path.relative_to(HERE).parts[0])
        if found is not None and item.path not in found[-1:]:
            found.append(item.path)
    turns = {path: at / len(each) for each in files.values() for at, path in enumerate(each)}
    items.sort(key=lambda item: turns.get(item.path, 1.0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling | None:
    """Give each process whole files, and all that share a session of Spark to one of them.

    A session takes 15 CPU-s to start, with its Python workers and all that is compiled in the first
    queries.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415  # where it is in use, it is there

    sharing = {each.name for each in (HERE / "spark").glob("test_*.py") if has_session(each)}

    class OneSession(LoadFileScheduling):  # type: ignore[misc]  # xdist tells no types
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "spark" if Path(file).name in sharing else file

    return OneSession(config, log)


def has_session(file: Path) -> bool:
    """Return whether tests in a file use the session of Spark that they share."""
    return "spark: SparkSession" in file.read_text()
