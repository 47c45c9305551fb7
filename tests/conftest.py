"""Lets tests of every kind import the helpers that lie beside this file."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LONGEST_FIRST = ("spark", "oslo", "system", "conformance")
"""Folders whose files take longest: begun last, one of them would be waited for alone."""

# How fast a machine is says nothing of what runs on it.
settings.register_profile(
    "whatever the load", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("whatever the load")


def pytest_configure() -> None:
    """Lets Ctrl-C reach the programs under test, also where this run was started in the background.

    A shell without job control has its background processes ignore SIGINT, and they pass that on.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has what takes longest begin first."""
    here = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(here).parts[0]
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=rank)
