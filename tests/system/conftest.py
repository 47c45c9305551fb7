"""What many of these tests run against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """One container for all tests of a module, configured by its `CONFIGURATION` if it has one."""
    with container(getattr(request.module, "CONFIGURATION", "")) as running:
        yield running
