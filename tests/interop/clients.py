"""The clients under test, and addresses that no two tests share."""

from __future__ import annotations

import itertools

CLIENTS = ("proton", "rhea", "cogwork")

_numbers = itertools.count(1)


def fresh_address(prefix: str = "interop/") -> str:
    """Return an address below `prefix` that was not used before."""
    return f"{prefix}{next(_numbers)}"
