"""Lets tests of every kind import the helpers that lie beside this file."""

import signal

from hypothesis import HealthCheck, settings

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
