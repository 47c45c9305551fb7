"""How many files and connections the process may have open."""

from __future__ import annotations

import resource

__all__ = ("raise_file_limit",)


def raise_file_limit() -> None:
    """Take as many descriptors as the process may have.

    The soft limit is there for programs that call `select`, which knows descriptors up to 1023.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
